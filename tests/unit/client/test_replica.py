from __future__ import annotations

import logging

import pytest

from bayplan.client.decoding import PartialMetadata, Rejected
from bayplan.client.replica import Replica

from .support import Meta, Thing


def _thing(name: str, version: int, *, uid: str = "", value: int = 0) -> Thing:
    return Thing(Meta(name, "ns", uid or f"uid-{name}", str(version)), value)


class _Told:
    """Remembers changes as (old value, new value)."""

    def __init__(self) -> None:
        self.changes: list[tuple[int | None, int | None]] = []

    def __call__(self, old: Thing | None, new: Thing | None) -> None:
        assert old is None or new is None or old.metadata.uid == new.metadata.uid
        self.changes.append((old.value if old else None, new.value if new else None))


def test_additions_changes_and_deletions_are_told_with_both_sides() -> None:
    told = _Told()
    replica = Replica[Thing]("things", told)

    replica.keep(_thing("a", 1, value=1))
    replica.keep(_thing("a", 2, value=2))
    replica.drop("ns/a")
    replica.drop("ns/a")

    assert told.changes == [(None, 1), (1, 2), (2, None)]
    assert replica.objects == {}


def test_the_same_version_is_not_told_twice() -> None:
    told = _Told()
    replica = Replica[Thing]("things", told)

    replica.keep(_thing("a", 1, value=1))
    replica.keep(_thing("a", 1, value=1))

    assert told.changes == [(None, 1)]


def test_an_object_made_again_under_its_name_is_a_deletion_and_an_addition() -> None:
    told = _Told()
    replica = Replica[Thing]("things", told)

    replica.keep(_thing("a", 1, uid="x", value=1))
    replica.keep(_thing("a", 5, uid="y", value=2))
    replica.drop("ns/a", uid="x")

    assert told.changes == [(None, 1), (1, None), (None, 2)]
    assert list(replica.objects) == ["ns/a"]


def test_what_a_whole_list_does_not_name_is_dropped() -> None:
    told = _Told()
    replica = Replica[Thing]("things", told)
    for number, name in enumerate("abc"):
        replica.keep(_thing(name, 1, value=number))

    replica.drop_all_but({"ns/b"})

    assert told.changes[3:] == [(0, None), (2, None)]


def test_a_transform_trims_or_leaves_out() -> None:
    told = _Told()
    replica = Replica[Thing]("things", told, transform=lambda item: item if item.value < 5 else None)

    replica.keep(_thing("a", 1, value=1))
    replica.keep(_thing("a", 2, value=7))
    replica.keep(_thing("b", 3, value=9))

    assert told.changes == [(None, 1), (1, None)]


def test_a_callback_that_raises_is_logged_counted_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    def on_change(old: Thing | None, new: Thing | None) -> None:
        raise RuntimeError("boom")

    replica = Replica[Thing]("things", on_change)
    with caplog.at_level(logging.ERROR):
        replica.keep(_thing("a", 1))
        replica.drop("ns/a")

    assert replica.callback_errors == 2
    assert "the change of ns/a in things could not be taken in" in caplog.text


def test_a_transform_that_raises_keeps_the_object_as_it_came(caplog: pytest.LogCaptureFixture) -> None:
    def transform(item: Thing) -> Thing:
        raise RuntimeError("boom")

    told = _Told()
    replica = Replica[Thing]("things", told, transform=transform)
    replica.keep(_thing("a", 1, value=1))

    assert told.changes == [(None, 1)]
    assert replica.callback_errors == 1


def test_a_rejected_version_leaves_the_last_good_one_and_is_listed_until_a_better_one_comes() -> None:
    told = _Told()
    replica = Replica[Thing]("things", told)
    replica.keep(_thing("a", 1, value=1))

    replica.reject(Rejected("ns/a", PartialMetadata(), "bad value"))
    assert replica.objects["ns/a"].value == 1
    assert replica.rejected == {"ns/a": "bad value"}
    replica.keep(_thing("a", 3, value=3))

    assert replica.rejected == {}
    assert replica.decode_errors == 1
    assert told.changes == [(None, 1), (1, 3)]


def test_only_so_many_rejected_objects_are_remembered() -> None:
    replica = Replica[Thing]("things", _Told())
    for number in range(1000):
        replica.reject(Rejected(f"ns/{number}", PartialMetadata(), "bad"))

    assert len(replica.rejected) == 100
    assert replica.decode_errors == 1000
