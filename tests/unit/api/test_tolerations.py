"""Tolerations against taints."""

from __future__ import annotations

import pytest

from bayplan.api.pod import Toleration
from bayplan.api.tolerations import UNSCHEDULABLE_TAINT, first_untolerated, is_tolerated, tolerates
from bayplan.testing import taint, toleration


@pytest.mark.parametrize(
    ("stated", "against", "expected"),
    [
        ("spot=yes:NoSchedule", "spot=yes:NoSchedule", True),
        ("spot=yes:NoSchedule", "spot=no:NoSchedule", False),
        ("spot=yes:NoSchedule", "spot=yes:NoExecute", False),
        ("spot=yes:NoSchedule", "gpu=yes:NoSchedule", False),
        ("spot=yes", "spot=yes:NoExecute", True),
        ("spot", "spot=anything:NoExecute", True),
        ("spot:NoSchedule", "spot=anything:NoSchedule", True),
        ("*", "gpu=x:NoExecute", True),
        ("*:NoSchedule", "gpu=x:NoExecute", False),
        ("spot=", "spot:NoSchedule", True),
    ],
)
def test_key_value_and_effect_must_agree_where_they_are_given(stated: str, against: str, expected: bool) -> None:
    assert tolerates(toleration(stated), taint(against)) is expected


def test_no_operator_means_equal_and_an_unknown_one_tolerates_nothing() -> None:
    assert tolerates(Toleration(key="spot", value="yes"), taint("spot=yes:NoSchedule"))
    assert not tolerates(Toleration(key="spot", value="no"), taint("spot=yes:NoSchedule"))
    assert not tolerates(Toleration(key="spot", operator="Gt", value="1"), taint("spot=2:NoSchedule"))


def test_an_empty_key_with_equal_still_compares_the_value() -> None:
    assert tolerates(Toleration(value="yes"), taint("spot=yes:NoSchedule"))
    assert not tolerates(Toleration(), taint("spot=yes:NoSchedule"))


def test_the_first_taint_that_nobody_lets_through_is_found() -> None:
    taints = [taint("a:NoSchedule"), taint("soft:PreferNoSchedule"), taint("b:NoExecute"), taint("c:NoSchedule")]

    assert first_untolerated(taints, [toleration("a")]) == taint("b:NoExecute")
    assert first_untolerated(taints, [toleration("*")]) is None
    assert first_untolerated(taints, [], ("PreferNoSchedule",)) == taint("soft:PreferNoSchedule")
    assert first_untolerated([], []) is None


def test_a_cordoned_node_is_one_with_a_taint() -> None:
    assert is_tolerated(UNSCHEDULABLE_TAINT, [toleration("node.kubernetes.io/unschedulable")])
    assert not is_tolerated(UNSCHEDULABLE_TAINT, [toleration("node.kubernetes.io/unschedulable:NoExecute")])
