"""Attributes of plugins that look fixed and are not."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from bayplan.framework import Depends, Plugin, PluginArgs
from bayplan.framework.reading import reading_of

SEEN: dict[str, int] = {}
ZONES: list[str] = []


class ChangedArgs(Plugin):
    class Args(PluginArgs):
        points: int = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.args.points

    def post_bind(self, state: Any, pod: Any, node_name: Any) -> None:
        self.args.points += 1


class SharedDefault(Plugin):
    class Args(PluginArgs):
        zones: list[str] = msgspec.field(default_factory=lambda: ZONES)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(node.labels.get("zone") in self.args.zones)


class FilledArgs(Plugin):
    class Args(PluginArgs):
        zones: list[str] = []

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(node.labels.get("zone") in self.args.zones)

    def post_bind(self, state: Any, pod: Any, node_name: Any) -> None:
        zones = self.args.zones
        zones.append(node_name)


class FilledInside(Plugin):
    class Args(PluginArgs):
        groups: dict[str, list[str]] = {}

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(self.args.groups.get("a", ()))

    def post_bind(self, state: Any, pod: Any, node_name: Any) -> None:
        for group in self.args.groups.values():
            group.append(node_name)


class ArgsThatCount(Plugin):
    class Args(PluginArgs):
        points: int = 1

        def bump(self) -> None:
            self.points += 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.args.points  # type: ignore[no-any-return]

    def post_bind(self, state: Any, pod: Any, node_name: Any) -> None:
        self.args.bump()


class ComputedArgs(Plugin):
    class Args(PluginArgs):
        points: int = 1

        @property
        def twice(self) -> int:
            return len(SEEN)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.args.points  # type: ignore[no-any-return]


class SetTwice(Plugin):
    def setup(self) -> None:
        self.points = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points

    def post_bind(self, state: Any, pod: Any, node_name: Any) -> None:
        self.points = 2


class SetByCallback(Plugin):
    def setup(self) -> None:
        def changed(old: Any, new: Any) -> None:
            self.points = 3

        self.points = 1
        self.callback = changed

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points


class SetLater(Plugin):
    def setup(self) -> None:
        self.points = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points

    async def pre_bind(self, state: Any, pod: Any, node_name: Any) -> None:
        self.setup()


class SetFromOutside(Plugin):
    def setup(self) -> None:
        self.points = 1
        SEEN[str(self)] = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points


class Alias(Plugin):
    def setup(self) -> None:
        self.zones = ZONES

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(node.name in self.zones)


class ClassCounter(Plugin):
    count = 0

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.count

    @classmethod
    def bump(cls) -> None:
        cls.count += 1


class CountedElsewhere(Plugin):
    total = 0

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.total


def bump_total() -> None:
    CountedElsewhere.total = 3


class ClassTable(Plugin):
    TABLE: ClassVar[dict[str, int]] = {"a": 1}

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.TABLE.get(node.name, 0)


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        (ChangedArgs, "`post_bind` may give arguments"),
        (SharedDefault, "`args.zones` can be changed in place"),
        (FilledArgs, "`post_bind` may change `zones` in place"),
        (ArgsThatCount, "`bump` may give arguments"),
        (ComputedArgs, "property `twice`"),
        (SetTwice, "`post_bind` sets it"),
        (SetByCallback, "`self.points` may change"),
        (SetLater, "`pre_bind` may give"),
        (SetFromOutside, "`setup` may give"),
        (Alias, "`self.zones` can be changed in place"),
        (ClassCounter, "more than one place"),
        (CountedElsewhere, "more than one place"),
        (ClassTable, "`self.TABLE` may change"),
    ],
)
def test_an_attribute_that_may_change_is_not_read(plugin: type[Plugin], why: str) -> None:
    found = reading_of(plugin(), "score")

    assert found.depends is Depends.CLUSTER
    assert why in found.obstacle


def test_lists_inside_a_dict_of_arguments_may_not_be_changed() -> None:
    plugin = FilledInside(FilledInside.Args(groups={"a": []}))

    assert "`post_bind` may change `groups` in place" in reading_of(plugin, "score").obstacle
