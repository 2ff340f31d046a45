"""No file over 500 lines and no function over 80, so that everything can be read in one go.

An exception is listed here by name, with the reason why splitting it would make it harder to read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 80

LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


def sources() -> Iterator[Path]:
    for folder in ("src", "tests", "bench", "docs", "examples"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield node.name, node.end_lineno - node.lineno + 1


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_files_are_short_enough_to_read() -> None:
    long = {
        name_of(path): lines
        for path in sources()
        if (lines := len(path.read_text().splitlines())) > MOST_LINES_OF_A_FILE
    }

    assert {name: lines for name, lines in long.items() if name not in LONG_FILES} == {}


def test_functions_are_short_enough_to_see_at_once() -> None:
    long = {
        f"{name_of(path)}:{name}": lines
        for path in sources()
        for name, lines in functions(path)
        if lines > MOST_LINES_OF_A_FUNCTION
    }

    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}


def test_exceptions_are_still_needed() -> None:
    """An exception that outlived its reason is deleted."""
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in sources()}
    found = {f"{name_of(path)}:{name}": lines for path in sources() for name, lines in functions(path)}

    assert [name for name in LONG_FILES if lengths.get(name, 0) <= MOST_LINES_OF_A_FILE] == []
    assert [name for name in LONG_FUNCTIONS if found.get(name, 0) <= MOST_LINES_OF_A_FUNCTION] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path)
        for path in sorted((ROOT / "src").rglob("*.py"))
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]

    assert silent == []
