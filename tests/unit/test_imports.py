"""`.importlinter` is complete: no module of the tree can be forgotten in a contract that lists modules by hand.

import-linter checks the contracts (`make check`). What is checked here is that each names every module it is about.
"""

from __future__ import annotations

import configparser
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "bayplan"

FOR_AUTHORS = ("columns", "device_findings", "devices", "objects", "promises")
"""Modules of the framework that plugins import by name; everything else is in `bayplan.framework` itself."""
MAY_SPEAK_HTTP = {
    "apiserver": "is an HTTP server",
    "app": "wires client and server together",
    "cli": "is a client of schedulers and API servers",
    "client": "is the HTTP client",
    "deploy": "reads clusters through the client",
    "explain": "serves its answers",
    "leader": "uses the client",
    "plan": "runs simulations",
    "server": "is an HTTP server",
    "sim": "runs the API server",
    "testing": "runs the API server",
}
MAY_DRAW_ON_TERMINALS = {
    "cli": "is the command line",
    "explain": "draws its tables",
}


@cache
def contract(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    return parser[f"importlinter:contract:{name}"]


def listed(name: str, option: str) -> set[str]:
    return set(contract(name)[option].split())


def modules_in(folder: Path) -> set[str]:
    """The names of modules and packages directly in a package."""
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def test_every_room_has_a_floor() -> None:
    floors = {room for floor in contract("rooms")["layers"].split("\n") for room in floor.replace("|", " ").split()}

    assert floors == modules_in(PACKAGE)
    assert contract("rooms").getboolean("exhaustive")


def test_the_engine_is_protected_rather_than_the_modules_of_the_contract_listed() -> None:
    """A protected package names who may import it, so that a new module of the contract is kept from it by default."""
    assert contract("contract-below-runtime")["type"] == "protected"
    assert listed("contract-below-runtime", "protected_modules") == {"bayplan.framework.runtime"}
    assert not any(m.startswith("bayplan.framework") for m in listed("contract-below-runtime", "allowed_importers"))


def test_plugins_are_kept_from_every_module_of_the_framework_that_is_no_part_of_the_contract() -> None:
    modules = {f"bayplan.framework.{name}" for name in modules_in(PACKAGE / "framework")}
    forbidden = {name for name in listed("plugins", "forbidden_modules") if name.startswith("bayplan.framework.")}

    assert forbidden == modules - {f"bayplan.framework.{name}" for name in FOR_AUTHORS}


def test_everything_that_a_decision_calls_in_the_upper_rooms_is_kept_from_io() -> None:
    """What `decide` imports of the rooms that have I/O and waiting elsewhere in them."""
    graph = grimp.build_graph("bayplan")
    called = graph.find_upstream_modules("bayplan.loop.decide") | {"bayplan.loop.decide"}
    rooms = ("bayplan.loop.", "bayplan.queue.", "bayplan.cache.", "bayplan.cluster.", "bayplan.framework.runtime.")
    sources = listed("no-io-in-decisions", "source_modules")
    forgotten = {
        module
        for module in called
        if module.startswith(rooms) and not any(module == s or module.startswith(f"{s}.") for s in sources)
    }

    assert forgotten == set()
    assert {source for source in sources if source.startswith("bayplan.loop.")} <= called


def test_every_room_either_may_speak_http_or_is_kept_from_it() -> None:
    kept = {source.removeprefix("bayplan.") for source in listed("http", "source_modules")}

    assert kept | MAY_SPEAK_HTTP.keys() == modules_in(PACKAGE)
    assert kept & MAY_SPEAK_HTTP.keys() == set()


def test_every_room_either_may_draw_on_terminals_or_is_kept_from_it() -> None:
    kept = {source.removeprefix("bayplan.") for source in listed("terminal", "source_modules")}

    assert kept | MAY_DRAW_ON_TERMINALS.keys() == modules_in(PACKAGE)
    assert kept & MAY_DRAW_ON_TERMINALS.keys() == set()


def test_an_exception_that_no_import_needs_fails_the_check() -> None:
    """import-linter reports such exceptions, unless a contract says otherwise."""
    assert "unmatched_ignore_imports_alerting" not in (ROOT / ".importlinter").read_text()
