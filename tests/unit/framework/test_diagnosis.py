"""Why a pod fits nowhere, letter for letter."""

from __future__ import annotations

import numpy as np

from bayplan.cluster.axes import Rows
from bayplan.framework.diagnosis import Diagnosis, FitError, fit_message
from bayplan.framework.status import Code, Pending, Status, Unresolvable, Unschedulable
from bayplan.testing import Harness


def rows(*numbers: int) -> Rows:
    return np.array(numbers, dtype=np.intp)


def test_reasons_are_sorted_as_text() -> None:
    """Vector A17: "12 ..." comes before "3 ..."."""
    taints, cpu = Unresolvable("node(s) had untolerated taint(s)"), Unschedulable("Insufficient cpu")
    diagnosis = Diagnosis(total_nodes=15, groups=[(taints, rows(0, 1, 2)), (cpu, rows(*range(3, 15)))])

    expected = "0/15 nodes are available: 12 Insufficient cpu, 3 node(s) had untolerated taint(s)."
    assert diagnosis.message == expected


def test_a_node_with_two_reasons_counts_in_both() -> None:
    """Vector A18."""
    both, cpu = Unschedulable("Insufficient cpu", "Insufficient memory"), Unschedulable("Insufficient cpu")
    diagnosis = Diagnosis(total_nodes=2, groups=[(both, rows(0)), (cpu, rows(1))])

    assert diagnosis.message == "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."


def test_nodes_that_were_not_looked_at_share_a_status() -> None:
    absent = Unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")
    diagnosis = Diagnosis(total_nodes=5, groups=[(Unschedulable("full"), rows(0))], absent=absent)

    expected = "0/5 nodes are available: 1 full, 4 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert diagnosis.message == expected


def test_a_refusal_before_any_node_has_no_counts() -> None:
    rejection = Unresolvable("pod affinity terms conflict").by("NodeAffinity")
    diagnosis = Diagnosis(total_nodes=8, absent=rejection, pre_filter_message=rejection.message)
    diagnosis.post_filter_message = "not found"

    assert diagnosis.message == "0/8 nodes are available: pod affinity terms conflict. not found"
    assert diagnosis.unschedulable_plugins == {"NodeAffinity"}


def test_what_preemption_says_comes_last_without_a_full_stop_of_its_own() -> None:
    message = fit_message(1, {"Insufficient cpu": 1}, post_filter_message="preemption: no.")

    assert message == "0/1 nodes are available: 1 Insufficient cpu. preemption: no."
    assert fit_message(3, {}) == "0/3 nodes are available:"


def test_the_sentence_is_put_together_once_and_again_when_it_goes_on() -> None:
    """One pod may be refused for thousands of reasons."""
    diagnosis = Diagnosis(total_nodes=1, absent=Unschedulable(*(f"Insufficient r{place}" for place in range(2))))
    first = diagnosis.message

    assert diagnosis.message is first == "0/1 nodes are available: 1 Insufficient r0, 1 Insufficient r1."
    diagnosis.post_filter_message = "no more"
    assert diagnosis.message == f"{first} no more"


def test_the_plugins_to_blame_are_those_that_rejected() -> None:
    groups = [
        (Unschedulable("a").by("One"), rows(0)),
        (Pending("b").by("Two"), rows(1)),
        (Status(Code.UNSCHEDULABLE, ("c",)), rows(2)),
    ]
    diagnosis = Diagnosis(total_nodes=3, groups=groups, unschedulable_plugins=["Extender"])

    assert diagnosis.unschedulable_plugins == {"One", "Two", "Extender"}
    assert diagnosis.pending_plugins == {"Two"}
    assert diagnosis.rows_with(Code.PENDING) == [1]


def test_a_refusal_after_a_node_was_chosen_counts_that_node_alone() -> None:
    diagnosis = Diagnosis.of_one_node(Unschedulable("not today").by("Mine"))

    assert diagnosis.message == "0/1 nodes are available: 1 not today."
    assert diagnosis.unschedulable_plugins == {"Mine"}


def test_statuses_can_be_asked_for_by_node() -> None:
    table = Harness(nodes=["n1", "n2"]).cluster.nodes
    full = Unschedulable("full")
    diagnosis = Diagnosis(total_nodes=2, groups=[(full, rows(1))], table=table)

    assert diagnosis.status_by_node() == {"n2": full}
    assert Diagnosis(total_nodes=2, groups=[(full, rows(1))]).names(rows(1)) == []


def test_the_error_carries_the_sentence() -> None:
    diagnosis = Diagnosis(total_nodes=1, groups=[(Unschedulable("full"), rows(0))])

    assert str(FitError(diagnosis)) == diagnosis.message
