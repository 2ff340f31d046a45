"""Lazy attributes are computed once and can be given beforehand."""

from __future__ import annotations

from bayplan.cluster.lazy import lazy


class _Box:
    asked = 0

    @lazy
    def number(self) -> int:
        """The number."""
        self.asked += 1
        return 7


def test_it_is_computed_when_first_read_and_then_kept() -> None:
    box = _Box()

    assert (box.number, box.number) == (7, 7)
    assert box.asked == 1


def test_a_value_given_beforehand_is_not_computed() -> None:
    box = _Box()
    box.__dict__["number"] = 9

    assert box.number == 9
    assert box.asked == 0


def test_on_the_class_it_shows_its_documentation() -> None:
    assert _Box.number.__doc__ == "The number."
