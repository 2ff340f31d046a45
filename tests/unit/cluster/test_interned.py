"""Numbers for keys: shared while somebody holds them, used again when nobody does."""

from __future__ import annotations

from bayplan.cluster.axes import ABSENT
from bayplan.cluster.interned import Interned


def test_equal_keys_share_a_number_until_the_last_holder_lets_go() -> None:
    interned: Interned[str] = Interned()
    number = interned.hold("a")
    assert interned.hold("a") == number
    assert interned.holders(number) == 2

    interned.release(number)
    assert interned.find("a") == number
    interned.release(number)

    assert interned.find("a") == ABSENT
    assert len(interned) == 0


def test_a_number_that_nobody_holds_goes_to_the_next_new_key() -> None:
    interned: Interned[str] = Interned()
    interned.release(interned.hold("a"))
    kept = interned.hold("b")
    fresh = interned.hold("c")

    assert (kept, fresh) == (0, 1)
    assert interned.keys == ["b", "c"]
    assert [interned.find(key) for key in "abc"] == [ABSENT, 0, 1]


def test_keys_one_after_the_other_need_two_numbers() -> None:
    interned: Interned[int] = Interned()
    before = interned.hold(-1)
    for key in range(10_000):
        after = interned.hold(key)
        interned.release(before)
        before = after

    assert len(interned.keys) == 2
