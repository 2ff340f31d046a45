"""One class for a name: a reader who meets a class in one room does not take it for that of another."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "bayplan"

SHARED = {
    "NodeAffinity": "the part of a pod's spec, and the plugin of that name",
    "ResourceWeight": "arguments of plugins, named as in KubeSchedulerConfiguration",
    "Score": "an expectation of the test kit, and an argument of ExpressionPolicy",
    "ScoringStrategy": "arguments of plugins, named as in KubeSchedulerConfiguration",
}
"""Names that two classes have, each with the reason."""


def classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                found[statement.name].append(path.relative_to(SOURCE).as_posix())
    return found


def test_no_two_classes_have_one_name() -> None:
    assert {name: places for name, places in classes().items() if len(places) > 1 and name not in SHARED} == {}


def test_exceptions_are_still_needed() -> None:
    assert all(len(classes()[name]) > 1 for name in SHARED)
