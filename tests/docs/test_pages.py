"""What Markdown says is still true: names exist, links lead somewhere."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, anchors, dotted_names, links, pages

NAMES = sorted({(page.relative_to(ROOT).as_posix(), name) for page in pages() for name in dotted_names(page)})
LINKS = sorted({(page.relative_to(ROOT).as_posix(), link) for page in pages() for link in links(page)})
FIRST_SCREEN_LINES = 18


def resolve(name: str) -> object:
    """The module or attribute of that dotted name; raises where it ends."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize(("page", "name"), NAMES)
def test_every_dotted_name_exists(page: str, name: str) -> None:
    assert resolve(name) is not None


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_every_link_leads_somewhere(page: str, link: str) -> None:
    name, _, anchor = link.partition("#")
    target = (ROOT / page).parent.joinpath(name) if name else ROOT / page

    assert target.exists()
    assert not anchor or anchor in anchors(target)


def test_the_first_screen_says_what_it_is_and_what_to_type() -> None:
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:FIRST_SCREEN_LINES])

    assert "![" in first
    assert "make demo" in first and "make test" in first


def test_every_room_is_in_the_plan_of_the_house() -> None:
    plan = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = [path.parent.name for path in (ROOT / "src" / "bayplan").glob("*/__init__.py")]

    assert [room for room in sorted(rooms) if f"| `{room}` |" not in plan] == []


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in Path(ROOT / "docs" / "decisions").glob("*.md"))

    assert numbers == list(range(1, len(numbers) + 1))
