"""`bayplan sweep` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bayplan.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
SWEEP = ["sweep", str(EXAMPLES / "plan" / "workload.yaml"), "--until", "10m", "--processes", "1"]
CLUSTER = ["--cluster", str(EXAMPLES / "simulate" / "cluster.yaml")]


def test_a_sweep_is_a_table_of_means_and_is_resumed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [*SWEEP, *CLUSTER, "--variant", f"packed={EXAMPLES / 'simulate' / 'packed.yaml'}", "--seeds", "4-5"]

    assert main(command) == 0
    table = capsys.readouterr().out
    page = ["--html", "sweep.html"]
    assert main([*command, *page, "-o", "json", "--fail-if", "nodes.empty > base.nodes.empty"]) == 1
    said = capsys.readouterr()
    html = (tmp_path / "sweep.html").read_text()

    assert table.splitlines()[0].split() == ["workload,", "2", "seeds", "default", "packed"]
    assert "condition `nodes.empty > base.nodes.empty` holds for packed on workload" in said.err
    assert "4 of 4 results were in sweep-results already" in said.err
    assert [each["seed"] for each in json.loads(said.out)["results"]] == [4, 5, 4, 5]
    assert len(list((tmp_path / "sweep-results").iterdir())) == 4
    assert "<td>empty nodes, mean</td>" in html and "2 seeds (4 to 5)" in html
    assert html.count('class="dot d1"') == 2 * html.count("<figure>") > 0
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (SWEEP, "no cluster to run on"),
        ([*SWEEP, *CLUSTER, "--seeds", "x"], "--seeds: `x` are no seeds; write 10, 3-7 or 1,5,9"),
        (["sweep", "none.yaml", *CLUSTER], "none.yaml: cannot be read"),
        ([*SWEEP, *CLUSTER, "--html", "none/page.html"], "--html none/page.html: cannot be written"),
    ],
)
def test_wrong_input_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str) -> None:
    assert main(arguments) == 2
    assert problem in capsys.readouterr().err
