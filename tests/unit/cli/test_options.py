"""Options that every command declares the same way."""

from __future__ import annotations

from typing import Annotated

import pytest
from cyclopts import App, CycloptsError

from bayplan.cli.options import Names, option


def parse(*arguments: str) -> tuple[list[str] | None, bool]:
    app = App(result_action="return_value")

    @app.default
    def command(
        *,
        file: Annotated[Names, option("--file", "-f", metavar="FILE", about="files")] = None,
        flag: Annotated[bool, option("--flag", about="a flag")] = False,
    ) -> tuple[list[str] | None, bool]:
        return file, flag

    result: tuple[list[str] | None, bool] = app(list(arguments), exit_on_error=False, print_error=False)
    return result


def test_an_option_may_be_repeated() -> None:
    assert parse("-f", "a", "--file", "b") == (["a", "b"], False)


def test_a_hyphen_stands_for_standard_input() -> None:
    assert parse("-f", "-") == (["-"], False)


def test_a_forgotten_value_does_not_swallow_the_next_option() -> None:
    with pytest.raises(CycloptsError, match="found the option `--flag`"):
        parse("-f", "--flag")


def test_flags_have_no_negative_twin() -> None:
    assert parse("--flag") == (None, True)
    with pytest.raises(CycloptsError):
        parse("--no-flag")
