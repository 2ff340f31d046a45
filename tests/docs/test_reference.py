"""The reference says what the classes say today, and the comparison counts what the tutorials hold."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from tests.docs.markdown import ROOT, blocks


def _maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_reference_make", ROOT / "docs" / "reference" / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["intree.md", "community.md", "configuration.md", "contract.md"])
def test_the_reference_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / "reference" / name).read_text() == _maker().pages()[name], (
        "run `python docs/reference/make.py`"
    )


def test_every_community_plugin_says_how_it_differs_from_its_original() -> None:
    text = (ROOT / "docs" / "reference" / "community.md").read_text()

    entries = text.split("\n## ")[1:]
    assert entries
    assert [entry.split("\n")[0] for entry in entries if "**Differs from the original**" not in entry] == []


def test_the_comparison_counts_the_lines_of_the_tutorials() -> None:
    table = (ROOT / "docs" / "comparison.md").read_text()
    rows = re.findall(r"^\| \[[^\]]+\]\((tutorials/[\w-]+\.md)\) \|(.*)\|$", table, re.MULTILINE)

    assert len(rows) == 5
    for page, cells in rows:
        first = next(block for block in blocks(ROOT / "docs" / page) if block.language == "python")
        lines = [line for line in first.text.splitlines() if line.strip()]
        assert int(cells.split("|")[4]) == len(lines), page
