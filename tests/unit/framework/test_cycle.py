"""State under typed keys."""

from __future__ import annotations

import pytest

from bayplan.framework.cycle import CycleState, StateKey

SEATS = StateKey[int]("Mine/seats")


class Counter:
    def __init__(self, number: int) -> None:
        self.number = number

    def clone(self) -> Counter:
        return Counter(self.number)


COUNTER = StateKey[Counter]("Mine/counter")


def test_a_value_is_found_under_its_key() -> None:
    state = CycleState()
    assert state.get(SEATS) is None
    assert SEATS not in state
    state.put(SEATS, 3)

    assert state[SEATS] == 3
    assert SEATS in state
    with pytest.raises(KeyError):
        state[COUNTER]


def test_keys_of_the_same_name_are_different_keys() -> None:
    state = CycleState()
    state.put(SEATS, 3)

    assert state.get(StateKey[int]("Mine/seats")) is None
    assert "Mine/seats" in repr(SEATS)


def test_a_clone_may_be_changed_without_the_original_noticing() -> None:
    state = CycleState()
    state.put(COUNTER, Counter(1))
    state.put(SEATS, 3)
    state.skip_filter |= {"A"}
    twin = state.clone()
    twin[COUNTER].number = 9
    twin.put(SEATS, 4)
    twin.skip_filter |= {"B"}
    twin.skip_score |= {"B"}
    twin.pods_to_activate["default/web"] = None

    assert state[COUNTER].number == 1
    assert state[SEATS] == 3
    assert state.skip_filter == {"A"}
    assert state.skip_score == set()
    assert state.pods_to_activate == {}
    assert twin.skip_filter == {"A", "B"}
