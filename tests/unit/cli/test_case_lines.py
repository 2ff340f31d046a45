"""Cases as lines, in and out."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Run

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "1"}}}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
FITS = {"id": "fits", "objects": [NODE], "pod": POD}
PENDING = {"id": "pending", "objects": [], "pods": [POD]}


def write(path: Path, *cases: Any) -> str:
    path.write_text("".join(json.dumps(case) + "\n\n" for case in cases))
    return str(path)


def test_one_result_a_line(run: Run, tmp_path: Path) -> None:
    ran = run("evaluate", "--cases", write(tmp_path / "a.jsonl", FITS, PENDING))
    first, second = map(json.loads, ran.out.splitlines())

    assert ran.status == 0
    assert first["id"] == "fits" and first["result"]["best"] == ["n"]
    assert second["id"] == "pending" and second["result"][0]["feasible"] == 0


def test_zipped_files_are_read_whatever_they_are_called(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(json.dumps(FITS).encode()))

    assert json.loads(run("evaluate", "--cases", str(path)).out)["id"] == "fits"


def test_standard_input_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    zipped = gzip.compress(json.dumps(FITS).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(zipped))))  # type: ignore[arg-type]

    assert json.loads(run("evaluate", "--cases", "-").out)["id"] == "fits"


def test_a_bad_line_is_told_and_does_not_stop_the_others(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": \n[]\n{"id": "no pod", "objects": []}\n' + json.dumps(FITS) + "\n")
    ran = run("evaluate", "--cases", str(path))
    lines = [json.loads(line) for line in ran.out.splitlines()]

    assert ran.status == 2
    assert [line["id"] for line in lines] == [1, 2, "no pod", "fits"]
    assert ["error" in line for line in lines] == [True, True, True, False]
    assert [error.split(": ")[:3] for error in ran.errors] == [
        ["error", str(path), f"line {number}"] for number in (1, 2, 3)
    ]


def test_a_cut_off_file_is_an_error_after_what_could_be_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(json.dumps(FITS).encode() + b"\n")[:-8])
    ran = run("evaluate", "--cases", str(path))

    assert ran.status == 2
    assert "cannot be read on" in ran.errors[0]


def test_pods_that_find_no_node_can_be_an_exit_status(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", FITS, PENDING)

    assert run("evaluate", "--cases", path, "--require-schedulable").status == 1
    assert run("evaluate", "--cases", write(tmp_path / "b.jsonl", FITS), "--require-schedulable").status == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cases", "nowhere"],
        ["--cases", "a", "-f", "b"],
        ["--cases", "a", "--pod", "b"],
        ["--cases", "a", "-o", "yaml"],
    ],
)
def test_wrong_uses_are_refused(run: Run, arguments: list[str]) -> None:
    ran = run("evaluate", *arguments)

    assert ran.status == 2
    assert len(ran.errors) == 1
    assert ran.out == ""
