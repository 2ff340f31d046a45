"""A plugin whose code reads one of everything that a reading takes for fixed. Its file changes none of it."""

from __future__ import annotations

import math
from typing import Any

from bayplan.framework import Plugin, PluginArgs

FAVOURITE = "a"


def extra(name: str) -> int:
    return 0


class Base(Plugin):
    PREFERRED = "a"

    class Args(PluginArgs):
        zone: str = "a"
        zones: list[str] = []

    def setup(self) -> None:
        self.own = "a"
        self.table = {"a": 1}

    def _bonus(self, name: str) -> int:
        return 0


class Fixed(Base):
    """Prefers node `a` for six reasons, each of which someone else can change."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        name = node.labels.get("name", "")
        points = 1 if name == FAVOURITE else 0
        points += 1 if name == self.PREFERRED else 0
        points += 1 if name == self.args.zone else 0
        points += 1 if name in self.args.zones else 0
        points += 1 if name == self.own else 0
        points += self.table.get(name, 0)
        return points + self._bonus(name) + extra(name) + math.floor(0.5) + len("")
