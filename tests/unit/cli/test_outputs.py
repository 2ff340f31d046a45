"""`-o` of every command: which forms there are, that each of them can be read, and what an unknown one is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from tests.unit.cli.conftest import Run

from bayplan.cli.main import COMMANDS, make_app
from bayplan.cli.output import Format, WideFormat

EXAMPLES = Path(__file__).parents[3] / "examples"
PRINTED = {"json", "yaml"}
OBJECTS = {"name", *PRINTED}
FORMS: dict[str, set[str]] = {
    "evaluate": set(get_args(WideFormat)),
    "explain": set(get_args(WideFormat)),
    "pending": {"table", "wide", *OBJECTS},
    "top": PRINTED,
    "whatif": {"table", "wide", *PRINTED},
    "simulate": set(get_args(Format)),
    "sweep": set(get_args(Format)),
    "plan capacity": set(get_args(Format)),
    "plan drain": set(get_args(Format)),
    "plan defrag": set(get_args(Format)),
    "replay": set(get_args(Format)),
    "apply": OBJECTS,
    "get": {"table", "wide", *OBJECTS},
    "delete": {"name"},
    "render manifests": OBJECTS,
    "render crds": OBJECTS,
    "plugin show": set(get_args(Format)),
    "doctor": set(get_args(Format)),
}
"""Of every command that answers with objects or figures."""
WITHOUT = {"dashboard", "up", "record", "run", "controllers", "completion", "render image"}
"""They serve, or print a script or a file."""
INTO_A_FOLDER = {"new", "render chart", "render static-pod"}
NEEDED = {"explain": ["pod", "x"], "get": ["pods"], "plan capacity": ["w", "--pools", "p"], "plan drain": ["node-1"]}
NEEDED |= {"simulate": ["w"], "sweep": ["w"], "replay": ["r"], "plugin show": ["NodeResourcesFit"]}


def commands() -> Iterator[tuple[str, Any]]:
    """By name, the inner ones of a command instead of itself."""
    for name in COMMANDS:
        app = make_app(name, "bayplan")[name]
        inner = [each for each in app if not each.startswith("-")]
        yield from ((f"{name} {each}", app[each]) for each in inner) if inner else [(name, app)]


def test_every_command_is_in_one_of_the_tables() -> None:
    assert {name for name, _ in commands()} == FORMS.keys() | WITHOUT | INTO_A_FOLDER


@pytest.mark.parametrize(("name", "app"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_the_forms_of_a_command_are_those_of_the_table(name: str, app: Any) -> None:
    arguments = app.assemble_argument_collection(parse_docstring=False)
    outputs = [each for each in arguments if "-o" in each.names]

    assert len(outputs) == (name in FORMS or name in INTO_A_FOLDER)
    if name in FORMS:
        assert set(outputs[0].get_choices() or ()) == FORMS[name]
        assert set(outputs[0].names) == {"--output", "-o"}


@pytest.mark.parametrize("name", FORMS)
def test_an_unknown_form_is_answered_with_those_that_there_are(name: str, run: Run) -> None:
    ran = run(*name.split(), *NEEDED.get(name, []), "-o", "jsn")

    assert ran.status == 2
    assert "jsn" in ran.errors[0]
    assert all(f"`{form}`" in ran.errors[0] for form in FORMS[name])
    assert ran.out == ""


CLUSTER, POD = str(EXAMPLES / "cluster.yaml"), str(EXAMPLES / "pod.yaml")
FRAGMENTED = str(EXAMPLES / "plan/fragmented.yaml")
OFFLINE = {
    "evaluate": ["evaluate", "-f", CLUSTER, "--pod", POD],
    "plan drain": ["plan", "drain", "node-1", "--cluster", FRAGMENTED],
    "plan defrag": ["plan", "defrag", "--cluster", FRAGMENTED],
    "replay": ["replay", str(EXAMPLES / "simulate/cluster.recording")],
    "render manifests": ["render", "manifests", "--name", "second"],
    "render crds": ["render", "crds"],
    "plugin show": ["plugin", "show", "NodeResourcesFit"],
}


@pytest.mark.parametrize("name", OFFLINE)
def test_programs_read_the_same_from_json_and_from_yaml(name: str, run: Run) -> None:
    as_json, as_yaml = run(*OFFLINE[name], "-o", "json"), run(*OFFLINE[name], "-o", "yaml")

    assert as_json.status == as_yaml.status == 0
    read = json.loads(as_json.out)
    documents = list(yaml.safe_load_all(as_yaml.out))
    # Manifests are separate documents in YAML, as kubectl takes them, and a List in JSON.
    assert _times_left_out(read) == _times_left_out(
        documents[0] if len(documents) == 1 else {"apiVersion": "v1", "kind": "List", "items": documents}
    )


def _times_left_out(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _times_left_out(each) for name, each in value.items() if name not in ("seconds", "time", "times")}
    return [_times_left_out(each) for each in value] if isinstance(value, list) else value


def test_wide_shows_more_nodes_than_the_table(run: Run) -> None:
    narrow, wide = run(*OFFLINE["evaluate"]), run(*OFFLINE["evaluate"], "-o", "wide")

    assert "and 2 more nodes that fit" in narrow.out
    assert "more nodes that fit" not in wide.out and "node-b3" in wide.out


def test_names_of_manifests_are_those_of_kubectl(run: Run) -> None:
    names = run(*OFFLINE["render manifests"], "-o", "name").out.split()

    assert "deployment/second" in names and "serviceaccount/second" in names
