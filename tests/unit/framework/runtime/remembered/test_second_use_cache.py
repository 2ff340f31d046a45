"""What is kept: things asked for twice, as many as memory allows, the least recently used let go first."""

from __future__ import annotations

from bayplan.framework.runtime.remembered.second_use_cache import SecondUseCache


def _memory(most_bytes: int = 1_000_000) -> SecondUseCache[object]:
    return SecondUseCache[object](bytes_per_row=10, most_bytes=most_bytes)


def test_the_first_time_a_thing_is_made_for_the_asker_alone() -> None:
    memory = _memory()
    first = memory.find("a", object, rows=10)
    second = memory.find("a", object, rows=10)
    third = memory.find("a", object, rows=10)

    assert first is not second
    assert second is third
    assert len(memory) == 1


def test_an_offer_replaces_what_was_kept() -> None:
    memory = _memory()
    for _ in range(2):
        memory.offer("a", object(), rows=10)
    fresh = object()
    memory.offer("a", fresh, rows=10)

    assert memory.get("a") is fresh


def test_larger_tables_leave_room_for_fewer_things() -> None:
    memory = _memory(most_bytes=10 * 100 * 1000)
    for rows, kept in ((1000, 100), (1250, 80), (100_000, 64)):
        for number in range(200):
            for _ in range(2):
                memory.offer((rows, number), object(), rows=rows)
        assert len(memory) == kept


def test_what_was_used_last_stays_longest() -> None:
    memory = _memory(most_bytes=1)
    for number in range(64):
        for _ in range(2):
            memory.offer(number, object(), rows=1)
    assert memory.get(0) is not None

    for _ in range(2):
        memory.offer("new", object(), rows=1)

    assert memory.get(0) is not None
    assert memory.get(1) is None


def test_sightings_are_forgotten_in_the_end() -> None:
    memory = _memory()
    memory.offer("rare", object(), rows=1)
    for number in range(10_000):
        memory.offer(number, object(), rows=1)
    memory.offer("rare", object(), rows=1)

    assert memory.get("rare") is None
    assert len(memory) == 0


def test_things_that_take_much_beside_their_rows_are_few() -> None:
    memory = _memory()
    for number in range(50):
        for _ in range(2):
            memory.offer(number, object(), rows=1)
            memory.offer(f"bulky {number}", object(), rows=1, bulk=1024 * 1024)

    assert all(memory.get(number) is not None for number in range(50))
    assert [number for number in range(50) if memory.get(f"bulky {number}") is not None] == list(range(46, 50))


def test_a_thing_that_is_larger_than_all_may_be_together_is_not_kept() -> None:
    memory: SecondUseCache[object] = SecondUseCache(bytes_per_row=1, most_bytes=2**30)
    for _ in range(3):
        memory.offer("huge", object(), rows=1, bulk=64 * 1024 * 1024)
        memory.offer("small", object(), rows=1)

    assert memory.get("huge") is None
    assert memory.get("small") is not None
