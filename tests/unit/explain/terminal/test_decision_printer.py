"""The lines of `bayplan up`, each from a claim."""

from __future__ import annotations

from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.claims.pods import LOGGED, PutOnHold, RefusedLater
from bayplan.explain.terminal.decision_printer import DecisionPrinter
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Code, Status
from bayplan.loop.decide import decide
from bayplan.testing import Harness, node, pod


def told(*, nominated: str = "", cpu: int = 1) -> list[str]:
    harness = Harness(nodes=[node("n1", cpu=4), node("n2", cpu=4)])
    decider = next(iter(harness.scheduler.deciders.values()))
    info: PodInfo = harness.info(pod("web", cpu=cpu))
    info.nominated_node_name = nominated
    lines: list[str] = []
    DecisionPrinter(lines.append).decided(QueuedPod(info, 0.0), decide(decider, info), 0.0001)
    return lines


def test_a_node_that_was_nominated_is_not_said_to_be_the_only_one_that_fits() -> None:
    assert told(nominated="n2") == ["default/web -> n2 (it had been nominated to it) [0.10 ms]"]
    assert told()[0].startswith("default/web -> n") and "2 nodes fit, one of 2 best" in told()[0]


def test_why_a_pod_waits_is_in_kube_schedulers_words() -> None:
    [line] = told(cpu=9)

    assert line.startswith("default/web waits: 0/2 nodes are available: 2 Insufficient cpu.")


def test_a_pod_at_permit_waits_until_the_first_plugin_gives_up_and_refusals_name_point_and_plugin() -> None:
    lines: list[str] = []
    claims: list[LOGGED] = []
    printer = DecisionPrinter(lines.append, note=claims.append)
    info = Harness(nodes=[node("n1")]).info(pod("web"))
    printer.held_at_permit(info, "n1", {"Gang": 60.0, "Quota": 10.0})
    for point in ("Reserve", "Permit", "PreBind", "Bind"):
        printer.refused_after_choice(info, "n1", point, Status(Code.UNSCHEDULABLE, ("no seat",), plugin="Seats"))

    assert lines[0] == "default/web is held at Permit by Gang and Quota on n1, for 10 s at most"
    assert lines[3] == "default/web was given n1 and then refused at PreBind by Seats: no seat."
    assert [type(claim) for claim in claims] == [PutOnHold, *[RefusedLater] * 4]


def test_a_pod_that_preempts_again_is_told_again() -> None:
    """Somebody else took the room: the same message, and another victim."""
    harness = Harness(nodes=[node("n1", cpu=4)])
    decider = next(iter(harness.scheduler.deciders.values()))
    lines: list[str] = []
    printer = DecisionPrinter(lines.append)
    vip = QueuedPod(harness.info(pod("vip", cpu=4, priority=10)), 0.0)
    for name in ("first", "second"):
        low = harness.info(pod(name, cpu=4))
        harness.scheduler.assume(low, "n1")
        printer.decided(vip, decide(decider, vip.info), 0.0001)
        printer.decided(vip, decide(decider, vip.info), 0.0001)
        harness.scheduler.cache.forget(low.uid)

    preempts = [line for line in lines if " preempts " in line]
    assert preempts == ["default/vip preempts default/first on n1", "default/vip preempts default/second on n1"]
