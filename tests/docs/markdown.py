"""Markdown as tests read it: fenced blocks, links, dotted names, with the line they stand on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_LINK_TARGET = re.compile(r"\]\([^)]*\)")
_NO_ANCHOR = re.compile(r"[^\w\- ]")
_NAME = re.compile(r"\bbayplan(?:\.[A-Za-z_]\w*)+\b(?!\()")
_OWN_FOLDERS = ("docs", "examples", "tests", "bench", "src")


class Block(NamedTuple):
    language: str
    title: str
    text: str


class Command(NamedTuple):
    line: str
    """What is typed."""
    shown: tuple[str, ...]
    """What the page shows as its output; `...` stands for any lines."""


def pages() -> list[Path]:
    return sorted(ROOT.glob("*.md")) + [p for folder in _OWN_FOLDERS for p in sorted((ROOT / folder).rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    return [Block(*match.groups()) for match in _FENCE.finditer(page.read_text())]


def commands(page: Path) -> Iterator[Command]:
    """The commands of `console` blocks, which start with `$ `."""
    for block in blocks(page):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                line, *shown = part.rstrip("\n").split("\n")
                yield Command(line, tuple(shown))


def links(page: Path) -> list[str]:
    """Where relative links lead."""
    prose = _FENCE.sub("", page.read_text())
    return [link for link in _LINK.findall(prose) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Where `#...` of a link may lead: the headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text()), flags=re.MULTILINE)
    return {_NO_ANCHOR.sub("", _LINK_TARGET.sub("", heading).lower()).replace(" ", "-") for heading in headings}


def dotted_names(page: Path) -> set[str]:
    """Modules and attributes of ours; domain names such as `bayplan.dev` are none."""
    return {name for name in _NAME.findall(page.read_text()) if not name.startswith("bayplan.dev")}
