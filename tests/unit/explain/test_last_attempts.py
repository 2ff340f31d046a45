"""What refused each pod after the choice, in one walk over the records."""

from __future__ import annotations

from bayplan.explain.last_attempts import last_refusals
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Error, Status, Unschedulable
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.observe.time_slices import at_once
from bayplan.testing import Harness, node, pod


def attempt(recorder: DecisionRecorder, harness: Harness, name: str, refusal: Status | None = None) -> str:
    """An attempt that ends, by a refusal or with a binding; the uid of its pod."""
    queued = QueuedPod(harness.info(pod(name)), 0.0)
    queued.attempts = 1
    decision = harness.scheduler.decide(queued.info)
    recorder.decided(queued, decision, 0.001)
    if refusal is None:
        recorder.bound(queued, decision.node_name, 0.01)
    else:
        recorder.refused_after_choice(queued.info, decision.node_name, "Reserve", refusal)
        recorder.attempt_failed(queued, refusal, 0.01)
    return queued.uid


def test_the_refusal_of_the_latest_attempt_is_found_by_the_uid_of_the_pod() -> None:
    harness, recorder = Harness(nodes=[node("n1")]), DecisionRecorder(VirtualClock())
    refused = attempt(recorder, harness, "refused", Unschedulable("no seat").by("Seats"))
    failed = attempt(recorder, harness, "failed", Error("no answer").by("Seats"))
    bound = attempt(recorder, harness, "bound", Unschedulable("no seat").by("Seats"))
    attempt(recorder, harness, "bound")
    under_way = QueuedPod(harness.info(pod("refused")), 0.0)
    recorder.decided(under_way, harness.scheduler.decide(under_way.info), 0.001)
    last = at_once(last_refusals(recorder))

    found = [last(uid) for uid in (refused, failed, bound, "nobody")]
    assert [each and each.title for each in found] == [
        "Seats at Reserve: no seat",
        "Seats failed at Reserve: no answer",
        None,
        None,
    ]
    again = DecisionRecorder(VirtualClock())
    again.restore(record for record in reversed(list(recorder)) if record.outcome != "under way")
    assert at_once(last_refusals(again))(refused) == found[0]
