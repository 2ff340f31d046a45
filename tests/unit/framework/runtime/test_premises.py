"""Kept answers end when something from outside changes what the code of a plugin reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.framework.runtime import fixed_plugin
from tests.unit.framework.runtime.fixed_plugin import Base, Fixed, extra

from bayplan.framework import Depends
from bayplan.framework.reading import reading_of
from bayplan.testing import Harness, node, pod


def other_extra(name: str) -> int:
    return 50 if name == "b" else 0


def favour(name: str) -> Callable[..., int]:
    return lambda *_: 50 if _[-1] == name else 0


CHANGES: dict[str, Callable[[pytest.MonkeyPatch, Any], None]] = {
    "a method of the class": lambda patch, plugin: patch.setattr(Base, "_bonus", favour("b")),
    "a method of the subclass": lambda patch, plugin: patch.setattr(Fixed, "_bonus", favour("b"), raising=False),
    "a method of the instance": lambda patch, plugin: patch.setattr(plugin, "_bonus", favour("b")),
    "score itself": lambda patch, plugin: patch.setattr(Fixed, "score", lambda _, s, p, n: 50 * (n.name == "b")),
    "code of a function": lambda patch, plugin: patch.setattr(extra, "__code__", other_extra.__code__),
    "a function of the file": lambda patch, plugin: patch.setattr(fixed_plugin, "extra", other_extra),
    "the class": lambda patch, plugin: patch.setattr(plugin, "__class__", Turned),
    "a builtin of the file": lambda patch, plugin: patch.setattr(fixed_plugin, "len", Turned.count, raising=False),
    "a function of math": lambda patch, plugin: patch.setattr(math, "floor", Turned.count),
}
"""Each makes `b` the better node, or does no harm but must be noticed."""
VALUES: dict[str, Callable[[pytest.MonkeyPatch, Any], None]] = {
    "a constant of the file": lambda patch, plugin: patch.setattr(fixed_plugin, "FAVOURITE", "b"),
    "a constant of the class": lambda patch, plugin: patch.setattr(Base, "PREFERRED", "b"),
    "a constant on the subclass": lambda patch, plugin: patch.setattr(Fixed, "PREFERRED", "b", raising=False),
    "a constant on the instance": lambda patch, plugin: patch.setattr(plugin, "PREFERRED", "b"),
    "an argument": lambda patch, plugin: patch.setattr(plugin.args, "zone", "b"),
    "all arguments": lambda patch, plugin: patch.setattr(plugin, "args", Base.Args(zone="b")),
    "a list of arguments": lambda patch, plugin: plugin.args.zones.append("b"),
    "an attribute": lambda patch, plugin: patch.setattr(plugin, "own", "b"),
    "a table": lambda patch, plugin: plugin.table.update(b=50),
}


class Turned(Fixed):
    name = "Fixed"

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 50 if node.name == "b" else 0

    @staticmethod
    def count(value: Any) -> int:
        return 0


def nodes() -> list[Any]:
    return [node(name, labels={"name": name}, cpu=64, pods=500) for name in ("a", "b")]


@pytest.mark.parametrize("change", [*CHANGES, *VALUES])
def test_a_change_from_outside_ends_the_keeping_of_answers(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness(nodes=nodes(), plugins=[Fixed], args={"Fixed": {"zones": ["a"]}})
    plugin: Any = harness.plugin("Fixed")
    found = reading_of(plugin, "score")
    assert (found.depends, found.obstacle) == (Depends.NODE, "")
    assert harness.schedule(pod("before")).scores["a"]["Fixed"] == 6

    (CHANGES | VALUES)[change](monkeypatch, plugin)
    with capture_logs() as log:
        after = harness.schedule(pod("after"))
        harness.schedule(pod("later"))

    for name in ("a", "b"):
        assert after.scores[name]["Fixed"] == plugin.score(None, None, nodes_by_name(harness)[name])
    assert [line["plugin"] for line in log if line["log_level"] == "warning"] == ["Fixed"]


def nodes_by_name(harness: Any) -> dict[str, Any]:
    return {each.name: each for each in harness.cluster.columns().infos() if each is not None}


def test_nothing_changed_is_nothing_withdrawn() -> None:
    harness = Harness(nodes=nodes(), plugins=[Fixed], args={"Fixed": {"zones": ["a"]}})
    with capture_logs() as log:
        for number in range(3):
            assert harness.schedule(pod(f"p{number}")).scores["a"]["Fixed"] == 6

    assert log == []
    found = reading_of(harness.plugin("Fixed"), "score").premises
    assert found is not None
    assert found.hold()
