"""Verdict columns and the numbers behind them."""

from __future__ import annotations

import numpy as np

from bayplan.framework.status import SUCCESS, Unresolvable, Unschedulable
from bayplan.framework.verdicts import StatusTable, Verdicts

FULL, WRONG = Unschedulable("full"), Unresolvable("wrong")


def test_a_mask_rejects_with_one_status() -> None:
    verdicts = Verdicts.reject(np.array([True, False]), FULL)

    assert verdicts.ids.tolist() == [1, 0]
    assert verdicts.ids.dtype == np.int32
    assert verdicts.status(1) is FULL
    assert verdicts.status(0) is SUCCESS


def test_numbers_point_into_a_list_of_statuses() -> None:
    verdicts = Verdicts.of(np.array([2, 0, 1]), [SUCCESS, FULL, WRONG])

    assert [verdicts.status(number) for number in verdicts.ids.tolist()] == [WRONG, SUCCESS, FULL]


def test_accepting_everything_needs_no_statuses() -> None:
    assert Verdicts.accept(3).ids.tolist() == [0, 0, 0]


def test_equal_statuses_get_one_number() -> None:
    table = StatusTable()

    assert [table.number(status) for status in (None, SUCCESS, FULL, WRONG, Unschedulable("full"))] == [0, 0, 1, 2, 1]
    assert table.status(2) is WRONG


def test_columns_that_accept_everything_share_what_nobody_may_change() -> None:
    first, second = Verdicts.accept(5), Verdicts.accept(5)

    assert first.accepts_all
    assert not Verdicts.reject(np.array([True]), FULL).accepts_all
    assert first.ids is second.ids
    assert not first.ids.flags.writeable
