"""`bayplan plan` from the command line: JSON, exit status, wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bayplan.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples" / "plan"
CLUSTER = ["--cluster", str(EXAMPLES / "fragmented.yaml")]
CAPACITY = ["plan", "capacity", str(EXAMPLES / "workload.yaml"), "--pools"]


def test_plans_are_written_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "defrag", *CLUSTER, "-o", "json"]) == 0

    plan = json.loads(capsys.readouterr().out)
    assert plan["emptied"] == ["node-2", "node-3"]
    assert plan["moves"][0] == {
        "pod": "web/search-1",
        "source": "node-2",
        "target": "node-4",
        "feasibleNodes": 3,
    }
    assert plan["commands"][0] == "kubectl cordon node-2"


def test_a_drain_that_is_not_possible_has_the_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "drain", "node-4", *CLUSTER]) == 1

    assert "stays: web/report on node-4: nothing makes it again" in capsys.readouterr().out


def test_a_workload_that_no_mix_is_enough_for_has_the_status_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = (EXAMPLES / "pools.yaml").read_text().replace("count: 40", "count: 1").replace("count: 10", "count: 1")
    (tmp_path / "pools.yaml").write_text(few)

    assert main([*CAPACITY, str(tmp_path / "pools.yaml"), "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["best"] is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["plan", "drain", "node-9", *CLUSTER], "no node `node-9` in the cluster"),
        (["plan", "drain", "node-1"], "no cluster to plan for"),
        (["plan", "defrag", *CLUSTER, "--hours", "-1"], "--hours is -1.0, expected a number of 0 or more"),
        ([*CAPACITY, str(EXAMPLES / "fragmented.yaml")], "fragmented.yaml:2: expected a NodePool"),
        ([*CAPACITY, str(EXAMPLES / "pools.yaml"), "--accept", "wait >"], "--accept: `wait >` is no expression"),
    ],
)
def test_wrong_input_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str) -> None:
    assert main(arguments) == 2
    assert problem in capsys.readouterr().err
