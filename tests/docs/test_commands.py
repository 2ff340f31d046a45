"""Every `bayplan` command in a `console` block of a page runs and prints what the page shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import structlog

from bayplan.cli.main import main
from tests.docs.markdown import ROOT, Command, blocks, commands, pages

SHOWN = [
    pytest.param(page, command, id=f"{page.name}: {command.line}")
    for page in pages()
    for command in commands(page)
    if command.line.startswith("bayplan ")
]
OTHERS = ("make ", "kubectl ", "export ", "cd ")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the repository's files can be named as pages name them, and written beside."""
    for folder in ("examples", "tests", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.mark.parametrize(("page", "command"), SHOWN)
def test_commands_of_pages_run_and_print_what_is_shown(
    page: Path, command: Command, workplace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for block in blocks(page):
        if block.title.endswith((".py", ".yaml")):
            (workplace / block.title).write_text(block.text)
    try:
        status = main(shlex.split(command.line)[1:])
    finally:
        structlog.reset_defaults()
    out, err = capfd.readouterr()
    printed = [line.rstrip() for line in (out + err).splitlines()]

    assert status == 0, err
    assert [line for line in command.shown if line != "..." and line not in printed] == []


def test_pages_show_commands() -> None:
    assert len(SHOWN) > 5


def test_no_command_is_of_an_unknown_sort() -> None:
    """A command that is neither ours nor well known would be shown without ever being tried."""
    typed = [command.line for page in pages() for command in commands(page)]

    assert [line for line in typed if not line.startswith(("bayplan ", *OTHERS))] == []
