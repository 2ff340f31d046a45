"""What a decision file says about a pod."""

from __future__ import annotations

from typing import Any

from bayplan.explain.claims.pods import Chosen, Preempted, RefusedLater, Unplaced
from bayplan.explain.file_answers import explained_from_records
from bayplan.explain.model import PodExplanation
from bayplan.loop.record import DecisionRecord, Preemption, Victim


def record(time: float, pod: str = "web", uid: str = "one", **fields: Any) -> DecisionRecord:
    fields = {"nodes": 3, "outcome": "bound", "node": "n1", "chosen_by": "only node"} | fields
    return DecisionRecord(number=int(time), time=time, pod=f"default/{pod}", uid=uid, profile="p", **fields)


def explained(*records: DecisionRecord, pod: str = "web") -> PodExplanation:
    found = explained_from_records(f"default/{pod}", records)
    assert found is not None and found.note == "From records alone: what has become of it since is not known."
    return found


def test_a_pod_that_was_bound_was_placed_and_may_be_gone() -> None:
    found = explained(record(2.0), record(1.0, uid="another"))

    assert isinstance(found.claim, Chosen) and found.state == "placed"
    assert found.verdict == "default/web was placed on n1, the only one of 3 nodes that fitted; nothing was scored."
    assert [each.uid for each in found.attempts] == ["one"]


def test_a_pod_that_was_refused_after_the_choice_is_not_said_to_run() -> None:
    stopped = {"stopped_at": "PreBind", "stopped_by": "Licences", "error": "none is free", "outcome": "unschedulable"}
    refused = explained(record(1.0, **stopped))
    lost = explained(record(1.0, outcome="error", error="the API server said no", message="the API server said no"))

    assert isinstance(refused.claim, RefusedLater) and refused.state == lost.state == "unknown"
    assert refused.verdict == "default/web was given n1 and then refused at PreBind by Licences: none is free."
    assert lost.verdict == "default/web got no node at its last attempt: the API server said no."


def test_a_pod_that_found_no_node_is_not_said_to_be_gone() -> None:
    found = explained(record(1.0, node="", outcome="unschedulable", message="0/3 nodes are available"))

    assert isinstance(found.claim, Unplaced) and found.state == "unknown"
    assert found.verdict == "default/web got no node at its last attempt: 0/3 nodes are available."


def test_a_victim_is_explained_from_the_record_of_its_preemptor_and_a_later_pod_of_its_name_is_not() -> None:
    preemption = Preemption(node="n1", victims=(Victim(pod="default/web", uid="one"),), time=60.0)
    vip = record(61.0, "vip", "v", preemption=preemption)
    victim = explained(vip, record(1.0))
    unseen = explained(vip, record(1.0, uid="older"))
    later = explained(record(90.0, uid="two"), vip, record(1.0))

    assert victim.verdict == "default/web was preempted on n1 at 1970-01-01 00:01:00 UTC to make room for default/vip."
    assert victim.state == "gone" and victim.decision is not None and victim.decision.node == "n1"
    assert isinstance(unseen.claim, Preempted) and unseen.attempts == [] and unseen.decision is None
    assert isinstance(later.claim, Chosen) and later.uid == "two"


def test_a_pod_that_nobody_wrote_about_is_not_known() -> None:
    assert explained_from_records("default/else", [record(1.0)]) is None
