from __future__ import annotations

from typing import Any

import pytest

from bayplan.framework import Depends, Plugin, PluginArgs, normalize_highest
from bayplan.framework.checks import check_plugin, problems_of
from bayplan.framework.errors import PluginError


def score(self: Any, state: Any, pod: Any, node: Any) -> int:
    return 1


def plugin(**members: Any) -> type[Plugin]:
    return type("Mine", (Plugin,), {"score": score, **members})


def only(**members: Any) -> str:
    (problem,) = problems_of(plugin(**members))
    return problem


def test_a_proper_plugin_has_no_problems() -> None:
    class Proper(Plugin):
        """Both forms, ready normaliser, hooks, helpers of its own, unused and extra parameters."""

        class Args(PluginArgs):
            label_key: str = ""

        filter_depends = Depends.NODE
        reasons = ("node(s) did not do",)
        normalize = normalize_highest

        def setup(self) -> None: ...
        def sign(self, pod: Any) -> int:
            return 1

        def filter(self, _state: Any, pod: Any, node: Any, *, strict: bool = True) -> None: ...
        def score(self, state: Any, pod: Any, node: Any, more: int = 0) -> int:
            return 1

        @staticmethod
        def permit(*args: Any, **keywords: Any) -> None: ...

        async def pre_bind(self, state: Any, pod: Any, node_name: str) -> None: ...
        def count_labels(self) -> int:
            return 0

    assert problems_of(Proper) == []
    assert check_plugin(Proper) is Proper


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (3, "is of type int, not a class; write `class MyPlugin(Plugin): ...`"),
        (dict, "is not a Plugin; write `class dict(Plugin)`"),
        (Plugin, "is the base class itself"),
    ],
)
def test_what_is_no_plugin_is_refused_with_what_to_write(candidate: Any, expected: str) -> None:
    with pytest.raises(PluginError) as caught:
        check_plugin(candidate)

    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"name": ""}, "has no name; write `name = 'Mine'`"),
        ({"name": 3}, "`name` must be a text"),
        ({"name": "my plugin"}, "holds a space"),
        ({"Args": dict}, "`Args` is not a PluginArgs; write `class Args(PluginArgs):`"),
        ({"depends": 1}, "`depends` must be a Depends, found int 1"),
        ({"score_depends": "NODE"}, "`score_depends` must be a Depends or None"),
        ({"reasons": "one"}, "`reasons` must be a tuple of texts"),
        ({"watches": ["x"]}, "`watches` must be a tuple of classes"),
        ({"permissions": ("pods",)}, "`permissions` must be a tuple of Permissions"),
        ({"allow_parallel_pre_bind": 1}, "`allow_parallel_pre_bind` must be True or False"),
        ({"__init__": lambda self: None}, "override `setup(self)` instead"),
        ({"filter": 3}, "`filter` is int 3, not a method; write `def filter(self, state, pod, node)`"),
        ({"filter": lambda self, pod, node: None}, "`filter` takes (pod, node), the contract is (state, pod, node)"),
        ({"filter": lambda self, pod, state, node: None}, "write `def filter(self, state, pod, node)`"),
        ({"filter": lambda self, state, pod, node, strict: None}, "has a parameter `strict` that is never given"),
        ({"filter": lambda: None}, "`filter` lacks `self`"),
        ({"bind": lambda self, state, pod, node_name: None}, "`bind` must be async"),
        ({"sign": lambda self: None}, "`sign` takes (nothing), the contract is (pod)"),
        ({"Filter": score}, "`Filter` is not an extension point; write `def filter(self, state, pod, node)`"),
        ({"PreFilter": score}, "write `def pre_filter(self, state, pod, nodes)`"),
        ({"PreBind": score}, "write `async def pre_bind(self, state, pod, node_name)`"),
        ({"Name": score}, "write the class attribute `name = ...`"),
        ({"NormalizeScore": score}, "write `normalize(self, state, pod, scores)`"),
        ({"normalize_score": score}, "write `normalize(self, state, pod, scores)`"),
        ({"postfilter": score}, "write `def post_filter(self, state, pod, diagnosis)`"),
        ({"reserv": score}, "write `def reserve(self, state, pod, node_name)`"),
        ({"event_to_register": score}, "write `def events_to_register(self)`"),
        ({"filterr": score}, "`filterr` is not an extension point; write `def filter(self, state, pod, node)`"),
        ({"is_idl": score}, "`is_idl` is not a promise; write `def is_idle(self, pod)`"),
        ({"accept_all": score}, "`accept_all` is not a promise; write `def accepts_all(self, pod, nodes)`"),
        ({"is_within_bound": True}, "`is_within_bound` is not a promise; write `is_within_bounds = True`"),
        ({"score_depend": Depends.NODE}, "`score_depend` is not a promise; write `score_depends = Depends.NODE`"),
        ({"is_idl": True}, "`is_idl` is not a promise; write `def is_idle(self, pod)`"),
        ({"is_within_bounds": "yes"}, "`is_within_bounds` must be True or False, found str 'yes'"),
        ({"is_idle": lambda self: True}, "`is_idle` takes (nothing), the contract is (pod)"),
        ({"sort_key": lambda self, queued: (), "less": lambda self, first, second: True}, "both `less` and `sort_key`"),
        ({"pre_bind_pre_flight": lambda self, state, pod, node_name: None}, "without `pre_bind`"),
    ],
)
def test_each_mistake_says_what_to_write_instead(members: dict[str, Any], expected: str) -> None:
    assert expected in only(**members)


def test_companions_must_be_complete() -> None:
    added = {"add_pod": lambda self, state, pod, added, node: None}
    problems = problems_of(plugin(**added))

    assert any("a dry run needs both" in problem for problem in problems)
    assert any("without `pre_filter`" in problem for problem in problems)


def test_a_class_without_any_extension_point_is_refused() -> None:
    empty = type("Empty", (Plugin,), {})
    lone = type("Lone", (Plugin,), {"normalize": normalize_highest})

    assert "defines no extension point" in problems_of(empty)[0]
    assert "`normalize` without `score`" in problems_of(lone)[0]


def test_a_field_whose_type_cannot_be_read_is_named() -> None:
    class Odd(PluginArgs):
        field: NoSuchType  # type: ignore[name-defined]  # noqa: F821

    assert "NoSuchType" in only(Args=Odd)


def test_all_problems_of_a_class_come_in_one_error() -> None:
    with pytest.raises(PluginError) as caught:
        check_plugin(plugin(name="", depends=1, Filter=score))

    assert len(caught.value.problems) == 3
    assert str(caught.value).startswith("plugin class `Mine`: 3 problems\n  - ")
