"""Access of commands to a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bayplan.cli.cluster_access import connect
from bayplan.cli.output import CommandError
from bayplan.client.errors import ConnectionFailed

ADDRESS = "http://127.0.0.1:9"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    named = {"name": "here"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{**named, "context": {"cluster": "here", "user": "here"}}],
        "clusters": [{**named, "cluster": {"server": ADDRESS}}],
        "users": [{**named, "user": {}}],
    }
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))
    return str(file)


async def test_a_watch_that_breaks_names_the_server(kubeconfig: str) -> None:
    with pytest.raises(CommandError) as broken:
        async with connect(kubeconfig, None, None):
            raise ConnectionFailed("the stream broke: cut off", may_have_been_processed=True)

    assert str(broken.value) == f"{ADDRESS}: the stream broke: cut off"


async def test_a_server_that_does_not_answer_is_named_once(kubeconfig: str) -> None:
    with pytest.raises(CommandError) as silent:
        async with connect(kubeconfig, None, None) as cluster:
            await cluster.resources()

    assert str(silent.value).count(ADDRESS) == 1
