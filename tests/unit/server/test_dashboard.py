"""The files of the dashboard: complete, small, and fetched at once."""

from __future__ import annotations

import re
from pathlib import Path

import bayplan.server

STATIC = Path(bayplan.server.__file__).parent / "static"
SCRIPTS = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))
MOST_LINES = 200


def test_every_script_is_named_in_the_page_so_that_none_waits_for_another() -> None:
    page = (STATIC / "index.html").read_text()
    named = re.findall(r'(?:src|href)="([\w/]+\.js)"', page)

    assert sorted(named) == SCRIPTS


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
