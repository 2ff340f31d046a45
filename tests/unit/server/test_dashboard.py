"""The files of the dashboard: complete, small, and fetched at once."""

from __future__ import annotations

import re
from pathlib import Path

import bayplan.server

STATIC = Path(bayplan.server.__file__).parent / "static"
SCRIPTS = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))
MOST_LINES = 200


def test_scripts_of_every_page_are_named_in_the_document_so_that_none_waits_for_another() -> None:
    document = (STATIC / "index.html").read_text()
    named = re.findall(r'(?:src|href)="([\w/]+\.js)"', document)

    assert sorted(named) == sorted(_needed("app.js"))


def test_each_page_is_a_script_that_is_fetched_when_it_is_shown() -> None:
    fetched = re.findall(r'\(await import\("\./([\w/]+\.js)"\)\)\.(\w+)', (STATIC / "app.js").read_text())
    missing = [f"{name}: {page}" for name, page in fetched if f"function {page}(" not in (STATIC / name).read_text()]
    used = _needed("app.js").union(*(_needed(name) for name, _ in fetched))

    assert missing == []
    assert sorted(used) == SCRIPTS


def _needed(name: str) -> set[str]:
    """A script and all that it imports at once."""
    found, waiting = set(), [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            targets = re.findall(r'^import \{[^}]*\} from "([^"]+)";', (STATIC / each).read_text(), re.MULTILINE)
            waiting += [((STATIC / each).parent / to).resolve().relative_to(STATIC).as_posix() for to in targets]
    return found


def test_every_import_leads_to_a_script_and_every_name_is_exported_there() -> None:
    missing = []
    for name in SCRIPTS:
        text = (STATIC / name).read_text()
        for names, target in re.findall(r'^import \{([^}]*)\} from "([^"]+)";', text, re.MULTILINE):
            source = ((STATIC / name).parent / target).resolve()
            exported = set(re.findall(r"^export (?:async )?(?:const|function|class) (\w+)", source.read_text(), re.M))
            missing += [f"{name}: {each.strip()}" for each in names.split(",") if each.strip() not in exported]

    assert missing == []


def test_scripts_are_short_and_say_what_they_are_for() -> None:
    long = {name: lines for name in SCRIPTS if (lines := len((STATIC / name).read_text().splitlines())) > MOST_LINES}
    silent = [name for name in SCRIPTS if not (STATIC / name).read_text().startswith("// ")]

    assert (long, silent) == ({}, [])


def test_nothing_is_fetched_from_elsewhere_and_nothing_is_parsed_as_markup() -> None:
    for path in [*STATIC.rglob("*.js"), *STATIC.glob("*.css"), *STATIC.glob("*.html")]:
        text = path.read_text()
        found = re.findall(r"https?://[^\s\"')]+", text)
        assert set(found) <= {"http://www.w3.org/2000/svg"}, path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), path.name
