"""Images by row: the set, the column, and the size that the first node reported."""

from __future__ import annotations

from bayplan.cluster.image_index import ImageIndex
from bayplan.testing.build import node


def test_the_column_follows_the_set_once_somebody_asked() -> None:
    index = ImageIndex()
    index.set_row(0, node("a", images={"app:1": 100}))
    state = index.get("app:1")
    assert state is not None
    assert state.held(3).tolist() == [True, False, False]

    index.set_row(2, node("c", images={"app:1": 300}))
    index.set_row(0, node("a", images={"other:1": 5}))

    assert state.held(3).tolist() == [False, False, True]
    assert state.rows == {2}
    assert state.size_bytes == 100


def test_rows_beyond_the_column_are_there_when_it_has_grown() -> None:
    index = ImageIndex()
    index.set_row(0, node("a", images={"app:1": 1}))
    state = index.get("app:1")
    assert state is not None
    state.held(1)

    index.set_row(4, node("e", images={"app:1": 1}))

    assert state.held(6).tolist() == [True, False, False, False, True, False]


def test_an_image_that_no_node_has_is_forgotten_with_its_size() -> None:
    index = ImageIndex()
    index.set_row(0, node("a", images={"app:1": 1}))
    index.set_row(0, None)
    assert index.get("app:1") is None

    index.set_row(1, node("b", images={"app:1": 9}))

    state = index.get("app:1")
    assert state is not None
    assert state.size_bytes == 9
