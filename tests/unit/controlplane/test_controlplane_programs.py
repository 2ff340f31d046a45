"""When end-to-end tests run, are skipped, or fail for want of a build."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.controlplane.fixtures import require_programs
from tests.controlplane.ports import LOOPBACK, free_loopback_port
from tests.controlplane.programs import PROGRAMS, ProgramMissing, cache_folder, missing_programs, program, skip_reason

_SENTENCE = "e2e skipped: Go is not installed; run `make controlplane` where it is"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BAYPLAN_CONTROLPLANE_DIR", str(tmp_path))
    return tmp_path


def fill(folder: Path) -> None:
    for name in PROGRAMS:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def set_go(monkeypatch: pytest.MonkeyPatch, *, installed: bool) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if installed else None)


def test_the_folder_is_the_one_the_build_script_names(folder: Path) -> None:
    assert cache_folder() == folder


def test_a_missing_program_names_the_command_that_builds_it(folder: Path) -> None:
    with pytest.raises(ProgramMissing, match=r"`etcd` is not in .*\nhint: run `make controlplane`"):
        program("etcd")


def test_a_file_that_cannot_be_run_counts_as_missing(folder: Path) -> None:
    fill(folder)
    (folder / "etcd").chmod(0o644)

    assert missing_programs() == ["etcd"]


def test_without_go_and_programs_tests_are_skipped_with_the_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_go(monkeypatch, installed=False)

    assert skip_reason() == _SENTENCE
    with pytest.raises(pytest.skip.Exception, match="Go is not installed"):
        require_programs()


def test_built_programs_run_without_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder)
    set_go(monkeypatch, installed=False)

    require_programs()

    assert skip_reason() is None


def test_with_go_but_no_build_tests_fail_and_say_what_to_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_go(monkeypatch, installed=True)

    with pytest.raises(pytest.fail.Exception, match="run `make controlplane`"):
        require_programs()


def test_ports_are_outside_the_range_of_outgoing_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = tmp_path / "ip_local_port_range"
    ranges.write_text("20000\t60999\n")
    monkeypatch.setattr("tests.controlplane.ports._EPHEMERAL_RANGE_FILE", ranges)

    assert LOOPBACK == "127.0.0.1"
    assert all(12_000 <= free_loopback_port() < 20_000 for _ in range(20))
