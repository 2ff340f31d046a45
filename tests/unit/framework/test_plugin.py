from __future__ import annotations

import inspect
from typing import Any, Generic, TypeVar

import msgspec
import pytest
import structlog

from bayplan.framework import Plugin, PluginArgs
from bayplan.framework.checks import problems_of
from bayplan.framework.points import METHODS, ExtensionPoint, contract_of, defines, extends
from bayplan.framework.promises import SpeedPromises


class ZoneArgs(PluginArgs):
    zone: str = "zone-b"


class PreferZone(Plugin[ZoneArgs]):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(self.args.zone)


def test_the_type_in_brackets_declares_the_arguments() -> None:
    assert PreferZone.Args is ZoneArgs
    assert PreferZone().args.zone == "zone-b"
    assert PreferZone(ZoneArgs(zone="x")).score(None, None, None) == 1
    assert problems_of(PreferZone) == []


def test_a_subclass_keeps_the_arguments_of_its_base() -> None:
    class More(PreferZone): ...

    assert More.Args is ZoneArgs
    assert More.name == "More"


def test_a_base_may_leave_the_arguments_open() -> None:
    some_args = TypeVar("some_args", bound=PluginArgs)

    class Base(Plugin[some_args], Generic[some_args]):
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 0

    class Mine(Base[ZoneArgs]): ...

    assert Mine.Args is ZoneArgs


def test_arguments_that_are_declared_twice_and_differently_are_refused() -> None:
    class Twice(Plugin[ZoneArgs]):
        class Args(PluginArgs): ...

        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 0

    (problem,) = problems_of(Twice)
    assert "declares its arguments twice, as `ZoneArgs` and as `Args`" in problem


def test_arguments_named_before_they_exist_are_refused() -> None:
    class Early(Plugin["Later"]):  # type: ignore[name-defined]
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 0

    (problem,) = problems_of(Early)
    assert "`Args` is not a PluginArgs" in problem


def test_every_declared_method_is_an_extension_point_or_a_known_hook() -> None:
    methods = {name for name, value in vars(Plugin).items() if inspect.isfunction(value) and not name.startswith("_")}
    hooks = {"setup", "teardown", "dry_copy", "grants", "object_remedies", "events_to_register", "pod_gone"}
    assert methods == {*METHODS, *hooks}


@pytest.mark.parametrize("method", METHODS)
def test_every_extension_point_says_when_it_is_called(method: str) -> None:
    assert "*When*" in (inspect.getdoc(getattr(Plugin, method)) or "")
    assert contract_of(method).return_annotation is not inspect.Signature.empty


def test_every_promise_is_documented() -> None:
    for name, value in vars(SpeedPromises).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            assert "*When*" in (inspect.getdoc(value) or ""), name


def test_a_plugin_extends_what_its_class_or_a_base_of_it_defines() -> None:
    class More(PreferZone): ...

    assert extends(More, ExtensionPoint.SCORE)
    assert not extends(More, ExtensionPoint.FILTER)
    assert defines(More(), "score")
    assert not defines(More(), "is_idle")


def test_the_log_of_a_plugin_carries_its_name() -> None:
    with structlog.testing.capture_logs() as lines:
        PreferZone().log.info("no licence left", pod="a/b")

    assert lines == [{"event": "no licence left", "log_level": "info", "plugin": "PreferZone", "pod": "a/b"}]


def test_required_arguments_may_follow_optional_ones() -> None:
    class Args(PluginArgs):
        zone: str = "a"
        weight: int

    assert msgspec.convert({"weight": 3}, Args) == Args(weight=3)


@pytest.mark.parametrize("method", METHODS)
def test_the_text_of_an_extension_point_has_its_four_parts(method: str) -> None:
    text = inspect.getdoc(getattr(Plugin, method)) or ""
    parts = ("*When*", "*Answers*", "*Effect on the queue*", "*Must not*")

    assert [text.count(part) for part in parts] == [1, 1, 1, 1]
    assert sorted(parts, key=text.index) == list(parts)
