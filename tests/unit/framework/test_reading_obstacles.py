"""Plugins of which too much could be derived: each depends on something that changes without notice."""

from __future__ import annotations

import builtins
import functools
import os
import random
import runpy
import time
from json import dumps
from pathlib import Path
from typing import Any

import pytest
from tests.unit.framework.test_reading import Labels, Neighbours, Requested

from bayplan.framework import Depends, Plugin
from bayplan.framework.reading import reading_of

LIMIT = 3
DEFAULTS = ("c",)
SEEN: dict[str, int] = {}
COUNTER = 0


def count_up() -> None:
    global COUNTER  # a name that is given another value
    COUNTER += 1


def remembered(method: Any) -> Any:
    @functools.wraps(method)
    def called(*arguments: Any) -> Any:
        SEEN["calls"] = SEEN.get("calls", 0) + 1
        return method(*arguments)

    return called


class MutableGlobal(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return SEEN.get(node.name, 0)


class ReboundGlobal(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return COUNTER


class Clocked(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(time.monotonic()) % 100


class Dice(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(random.gauss(50, 1))


class File(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        with open("/etc/hostname") as file:
            return len(file.read())


class Opened(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(Path("/etc/hostname").read_text())


class Cached(Plugin):
    def setup(self) -> None:
        self.seen: dict[str, int] = {}

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.seen.setdefault(node.name, len(self.seen))


class Decorated(Plugin):
    @remembered
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class WithProperty(Plugin):
    @property
    def points(self) -> int:
        return len(SEEN)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points


class Named(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(pod.name)


class Annotated(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(pod.annotations.get("points", "0"))


class ReadsState(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(state.skip_filter)


class Reflecting(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        points: int = getattr(node, "row")  # noqa: B009 - what is looked up by name is not read
        return points


class Prepared(Plugin):
    def pre_score(self, state: Any, pod: Any, nodes: Any) -> None:
        SEEN["pods"] = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class GrowingParameter(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self._grow(node.taints)

    def _grow(self, taints: Any) -> int:
        taints += [1]
        return len(taints)


class GrowingInside(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        found = [node.taints]
        found[0] += [1]
        return len(found)


class MutableDefault(Plugin):
    def score(self, state: Any, pod: Any, node: Any, seen: Any = SEEN) -> int:
        return len(seen)


class Environment(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(os.environ.get("POINTS", ""))


class Cache(Plugin):
    @functools.cached_property
    def points(self) -> int:
        return len(SEEN)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class CachedMethod(Plugin):
    @functools.lru_cache  # noqa: B019 - what authors do
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(SEEN)


class Descriptor:
    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> int:
        return len(SEEN)


class Described(Plugin):
    points = Descriptor()

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points


class Meta(type(Plugin)):  # type: ignore[misc]  # a metaclass of the author's own
    pass


class OfMetaclass(Plugin, metaclass=Meta):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class Intercepting(Plugin):
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class Generating(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> Any:
        yield 1


class Logging(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        self.log.info("scored", node=node.name)
        return 1


class Looking(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(self.handle.nodes())


class Walrus(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return sum((LIMIT := len(taint.key)) for taint in node.taints) + LIMIT


class ReadEarly(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        points = 0
        for _ in node.taints:
            points += len(DEFAULTS)  # noqa: F823 - what is being looked for
            DEFAULTS = node.pods  # noqa: N806, F841 - a global name that is local here
        return points


class Recursive(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.score(state, pod, node)


class Imported(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(dumps(node.name))


class InPlace(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        taints = node.taints
        taints += [1]
        return len(taints)


class Shadowing(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len([SEEN.key for SEEN in node.taints]) + len(SEEN)


class OrderOfParts(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(str(pod.spec.node_selector))


class OtherAnnotations(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return sum(len(other.annotations) for other in node.pods.values())


class Overridden(Labels):
    def _bonus(self, node: Any) -> int:
        return len(SEEN)


class Inherited(Labels):
    def setup(self) -> None:
        self._bonus = lambda node: len(SEEN)  # type: ignore[method-assign]  # what a reader must notice


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        (MutableGlobal, "`SEEN` is not a constant"),
        (ReboundGlobal, "more than one place"),
        (Clocked, "`time` is not a constant"),
        (Dice, "random"),
        (File, "with open"),
        (Opened, "Path"),
        (Cached, "self.seen"),
        (Decorated, "reads a variable of the function around it"),
        (WithProperty, "self.points"),
        (Named, "pod.name"),
        (Annotated, "pod.annotations"),
        (ReadsState, "state.skip_filter"),
        (Reflecting, "getattr"),
        (Prepared, "`pre_score` is defined besides `score`"),
        (GrowingParameter, "taints += [1]"),
        (GrowingInside, "found[0] += [1]"),
        (MutableDefault, "defaults"),
        (Environment, "`os` is not a constant"),
        (Cache, "no plain method"),
        (CachedMethod, "not a plain method"),
        (Described, "`self.points` may change"),
        (OfMetaclass, "metaclass"),
        (Intercepting, "`__getattribute__` of its own"),
        (Generating, "yield 1"),
        (Logging, "writes to the log"),
        (Looking, "reaches beyond the pod and the node"),
        (Walrus, "LIMIT :="),
        (ReadEarly, "read before it is assigned"),
        (Recursive, "calls itself"),
        (Imported, "`dumps(...)` is not known to be pure"),
        (InPlace, "taints += [1]"),
        (Shadowing, "`SEEN` is not a constant"),
        (OrderOfParts, "pod.spec.node_selector"),
        (OtherAnnotations, "other.annotations"),
        (Overridden, "`SEEN` is not a constant"),
        (Inherited, "replaced on the instance"),
    ],
)
def test_what_is_not_understood_depends_on_everything(plugin: type[Plugin], why: str) -> None:
    found = reading_of(plugin(), "score")

    assert found.depends is Depends.CLUSTER
    assert why in found.obstacle


def test_a_closure_is_not_read() -> None:
    points = [1]

    class Closure(Plugin):
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return points[0]

    assert "`points`" in reading_of(Closure(), "score").obstacle


def test_a_method_that_was_replaced_is_read_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requested, "score", MutableGlobal.score)
    assert reading_of(Requested(), "score").depends is Depends.CLUSTER

    plugin = Neighbours()
    vars(plugin)["score"] = lambda state, pod, node: len(SEEN)
    assert reading_of(plugin, "score").depends is Depends.CLUSTER


def test_a_builtin_that_was_replaced_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "round", lambda number: len(SEEN))

    class Rounding(Plugin):
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return round(3.5)

    assert "`round` was replaced" in reading_of(Rounding(), "score").obstacle


def test_code_without_source_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text(
        "from bayplan.framework import Plugin\n\nclass Made(Plugin):\n"
        "    def score(self, state, pod, node):\n        return 1\n"
    )
    made = runpy.run_path(str(file))["Made"]
    file.unlink()

    assert "cannot be read" in reading_of(made(), "score").obstacle


def test_an_obstacle_is_located_and_comes_with_advice() -> None:
    found = reading_of(Overridden(), "score")

    line = Overridden._bonus.__code__.co_firstlineno + 1
    assert (found.file, found.line) == (__file__, line)
    assert "setup" in found.advice
