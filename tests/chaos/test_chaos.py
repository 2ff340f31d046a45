"""Six minutes of faults with a fixed seed; `make chaos` runs for as long as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.run import run
from tests.e2e.clusters import Cluster

MINUTES = {"kube-apiserver": 5.0, "embedded": 1.0}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_everybody_gets_what_they_asked_for_whatever_breaks(
    cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    minutes = MINUTES[request.node.callspec.params["cluster"]]
    report = await run(cluster, seed=1, minutes=minutes, folder=tmp_path, say=lambda text: None)

    assert report.problems == [], "\n".join([*report.story, report.text()])
