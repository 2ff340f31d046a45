"""What looks like a mistake of an author, and what does not."""

from __future__ import annotations

from typing import Any

from bayplan.framework import ExtensionPoint, Plugin, StateKey
from bayplan.framework.cautions import state_cautions, unused_points

SEATS = StateKey[int]("seats")
ROWS = StateKey[int]("rows")


class Forgetful(Plugin):
    def pre_score(self, state: Any, pod: Any, nodes: Any) -> None:
        self._prepare(pod, state)

    def _prepare(self, pod: Any, state: Any) -> None:
        state.put(SEATS, 3)
        state.put(ROWS, 3)

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        self._book(state)

    def _book(self, state: Any) -> int:
        return state[SEATS] + (state.get(ROWS) or 0)  # type: ignore[no-any-return]


class Careful(Plugin):
    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> None:
        state.put(SEATS, 1)

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> None:
        state.put(SEATS, 3)
        state.put(ROWS, 3)

    def permit(self, state: Any, pod: Any, node_name: str) -> None:
        if ROWS in state:
            self.seats = state[SEATS] + state[ROWS]

    def post_bind(self, state: Any, pod: Any, node_name: str) -> None:
        try:
            self.rows = state[ROWS]
        except KeyError:
            self.rows = 0


def test_state_that_only_a_point_writes_that_may_be_skipped_is_noticed() -> None:
    found = state_cautions(Forgetful)

    assert len(found) == 1
    assert f"line {Forgetful._book.__code__.co_firstlineno + 1}: `reserve` reads `state[SEATS]`" in found[0]
    assert "`pre_score` alone writes" in found[0]


def test_state_that_is_always_there_or_looked_for_is_fine() -> None:
    assert state_cautions(Careful) == []


def test_points_that_a_profile_leaves_out_are_found() -> None:
    points: dict[ExtensionPoint, tuple[str, ...]] = dict.fromkeys(ExtensionPoint, ())
    assert unused_points(Careful, points) == []

    points[ExtensionPoint.PERMIT] = ("Careful",)
    assert unused_points(Careful, points, ["preFilter"]) == [ExtensionPoint.PRE_SCORE, ExtensionPoint.POST_BIND]
