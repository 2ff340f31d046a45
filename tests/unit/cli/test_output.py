"""What goes to standard output, what to standard error, and in what form."""

from __future__ import annotations

import io
import json
import sys
import threading

import pytest
import yaml

from bayplan.cli import output
from bayplan.cli.output import note, one_line, print_error, print_value, progress, result_console


def test_text_from_outside_cannot_steer_a_terminal() -> None:
    assert one_line("a\x1b[2Jb\nc\td") == "a\\x1b[2Jb c d"
    assert one_line("naïve → ok") == "naïve → ok"


def test_an_error_of_many_lines_becomes_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(["first\n  second"], hint="try\nthis")

    assert capsys.readouterr().err == "error: first second\nhint: try this\n"


def test_notes_stay_off_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    note("by the way")

    assert capsys.readouterr() == ("", "note: by the way\n")


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_machine_forms_read_back_as_written(form: str, read: object, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"pod": "default/ü", "scores": {"n2": {"total": 3}, "n1": {}}, "best": [], "odd": "yes", "number": "010"}
    print_value(value, form)  # type: ignore[arg-type]

    shown = capsys.readouterr().out
    assert read(shown) == value  # type: ignore[operator]
    assert shown.index("n2") < shown.index("n1")


def test_tables_are_wide_enough_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)

    assert result_console().width == 120


def test_the_width_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")

    assert result_console().width == 77


def test_names_are_not_read_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    result_console().print("[red]node[/red] :smile:")

    assert capsys.readouterr().out == "[red]node[/red] :smile:\n"


def test_quick_work_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working"):
        pass

    assert capsys.readouterr().err == ""


def stderr_of_all_threads(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A stand-in for `sys.stderr`: `capsys` loses what comes while it is read, pytest what fixtures set."""
    found = io.StringIO()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def test_slow_work_is_announced_once_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = stderr_of_all_threads(monkeypatch)
    monkeypatch.setattr(output, "_PATIENCE_SECONDS", 0.0)
    with progress("reading\nfile", total=9) as done:
        done.step(3)
        while "\n" not in told.getvalue():
            threading.Event().wait(0.005)

    assert told.getvalue() in ("reading file …\n", "reading file: 3 of 9\n")


def test_a_log_gets_a_line_again_when_it_says_something_new(monkeypatch: pytest.MonkeyPatch) -> None:
    told = stderr_of_all_threads(monkeypatch)
    for name in ("_PATIENCE_SECONDS", "_FIRST_PAUSE_SECONDS", "_LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(f"bayplan.cli.output.{name}", 0.01)
    with progress("counting", total=2) as done:
        while "counting …\n" not in told.getvalue():
            threading.Event().wait(0.005)
        done.step()
        while "counting: 1 of 2\n" not in told.getvalue():
            threading.Event().wait(0.005)

    assert told.getvalue() == "counting …\ncounting: 1 of 2\n"


def test_progress_ends_with_the_work_also_when_it_fails() -> None:
    with pytest.raises(ValueError, match="no"), progress("failing"):
        raise ValueError("no")

    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]
