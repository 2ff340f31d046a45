"""Files that options name by `~`: a shell leaves it as it is in `--config=~/policy.yaml`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bayplan.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
RUN = ["--until=10m", "--processes=1"]
LINES = {
    "evaluate": ["evaluate", "--filename=~/cluster.yaml", "--pod=~/pod.yaml", "--config=~/packed.yaml"],
    "cases": ["evaluate", "--cases=~/cases.jsonl"],
    "simulate": ["simulate", "WORKLOAD", "--cluster=~/cluster.yaml", "--config=~/packed.yaml", "--html=~/page", *RUN],
    "a variant": ["simulate", "WORKLOAD", "--cluster=~/cluster.yaml", "--variant=packed=~/packed.yaml", *RUN],
    "sweep": ["sweep", "WORKLOAD", "--cluster=~/cluster.yaml", "--seeds=1", "--results=~/results", *RUN],
    "plan": ["plan", "defrag", "--cluster=~/fragmented.yaml", "--config=~/packed.yaml"],
    "capacity": ["plan", "capacity", str(EXAMPLES / "plan" / "workload.yaml"), "--pools=~/pools.yaml", "--until=1m"],
    "replay": ["replay", "RECORDING", "--pod=default/web-1", "--pytest", "--to=~/test_moment.py"],
    "decisions": ["simulate", "RECORDING", "--decisions=~/decisions"],
    "write": ["run", "--config=~/packed.yaml", "--write-config-to=~/written.yaml"],
}
WRITTEN = {
    "simulate": "page",
    "sweep": "results",
    "replay": "test_moment.py",
    "decisions": "decisions",
    "write": "written.yaml",
}


@pytest.mark.parametrize("name", LINES)
def test_the_home_folder_is_found_in_every_option(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for file in (*EXAMPLES.glob("simulate/*.yaml"), *EXAMPLES.glob("plan/*.yaml"), EXAMPLES / "pod.yaml"):
        shutil.copy(file, tmp_path)
    (tmp_path / "cases.jsonl").touch()
    workload, recording = EXAMPLES / "simulate" / "workload.yaml", EXAMPLES / "simulate" / "cluster.recording"
    places = {"WORKLOAD": str(workload), "RECORDING": str(recording)}
    status = main([places.get(word, word) for word in LINES[name]])

    assert status == 0, capsys.readouterr().err
    assert name not in WRITTEN or (tmp_path / WRITTEN[name]).exists()
    assert not (tmp_path / "~").exists()
