"""DefaultPreemption: who is eligible, where it helps, what it says, and how victims are evicted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.waiting import until

from bayplan.api.pod import Pod, PodCondition
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.offline.case import evaluate_one
from bayplan.framework import ClusterEvent, CycleState, Depends, Error, Hint, NodeColumns, NodeInfo, Plugin, Status
from bayplan.framework.events import ActionType, Resource
from bayplan.framework.handle import LastingState
from bayplan.framework.offline import FixedNominator
from bayplan.plugins.intree.default_preemption import DefaultPreemption
from bayplan.preemption import search
from bayplan.preemption.eviction import EvictionsUnderWay
from bayplan.testing import HOSTNAME, Harness, apart, expect, node, pdb, pod, selector, verdict_table

NAME = "DefaultPreemption"
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def low(name: str, on: str, cpu: Any = 3, **more: Any) -> Pod:
    return pod(name, cpu=cpu, node=on, priority=more.pop("priority", 1), **more)


NEW = pod("new", cpu=3, priority=10)


# What it says


def test_where_nothing_can_be_evicted_preemption_says_so() -> None:
    """A request beyond what any node offers, and a taint: neither ends when pods leave."""
    nodes = [node("tainted", taints=["k:NoSchedule"]), *(f"n{i}" for i in range(7))]

    expect(Harness(nodes=nodes).schedule(pod(cpu=64))).message(
        "0/8 nodes are available: 1 node(s) had untolerated taint(s), 7 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_never_preempts_says_so() -> None:
    outcome = Harness(nodes=["n1"], pods=[low("a", "n1")]).schedule(
        pod("new", cpu=3, priority=10, preemption_policy="Never")
    )

    expect(outcome).pending().message(
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert outcome.nominated_node == ""


def test_nodes_without_lower_pods_are_told_apart_from_hopeless_ones() -> None:
    harness = Harness(nodes=["n1", node("small", cpu=1)], pods=[low("equal", "n1", priority=10)])

    expect(harness.schedule(NEW)).message_says(
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_a_nomination_says_nothing() -> None:
    outcome = Harness(nodes=["n1"], pods=[low("a", "n1")]).schedule(NEW)

    expect(outcome).message("0/1 nodes are available: 1 Insufficient cpu.").preempts(["a"], on="n1")


def test_what_still_stands_in_the_way_is_named() -> None:
    pods = [low("a", "n1", cpu=1), low("b", "n1", priority=50)]

    expect(Harness(nodes=["n1"], pods=pods).schedule(NEW)).message_says(
        "preemption: 0/1 nodes are available: 1 Insufficient cpu."
    )


# Who is eligible


@pytest.mark.parametrize(
    ("notice", "priority", "waits"), [(True, 1, True), (False, 1, False), (True, 10, False)], ids=str
)
def test_a_pod_waits_for_victims_that_are_already_leaving(notice: bool, priority: int, waits: bool) -> None:
    leaving = low("leaving", "n1", cpu=2, terminating=True, priority=priority)
    if notice:
        condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
        leaving.status.conditions = [condition]
    harness = Harness(nodes=["n1"], pods=[leaving, low("other", "n1", cpu=2)])
    outcome = harness.schedule(pod("new", cpu=3, priority=10, nominated="n1"))

    says = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (says in outcome.message) is waits, verdict_table(outcome)


def test_a_nominated_node_that_is_hopeless_does_not_make_a_pod_wait() -> None:
    leaving = low("leaving", "bad", cpu=2, terminating=True)
    leaving.status.conditions = [PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")]
    nodes = [node("bad", taints=["k:NoSchedule"]), "n1"]
    harness = Harness(nodes=nodes, pods=[leaving, low("a", "n1")])

    expect(harness.schedule(pod("new", cpu=3, priority=10, nominated="bad"))).preempts(["a"], on="n1")


# Whom it chooses


def test_as_many_pods_as_possible_stay_and_the_most_important_first() -> None:
    pods = [low("p3", "n1", cpu=1, priority=3), low("p1", "n1", cpu=1), low("p2", "n1", cpu=2, priority=2)]

    expect(Harness(nodes=["n1"], pods=pods).schedule(pod("new", cpu=1, priority=10))).preempts(["p1"], on="n1")
    expect(Harness(nodes=["n1"], pods=pods).schedule(NEW)).preempts(["p2", "p1"], on="n1")


def test_of_equal_priority_the_one_that_started_last_goes() -> None:
    pods = [low("old", "n1", cpu=2, started=EARLY), low("young", "n1", cpu=2, started=LATE)]

    expect(Harness(nodes=["n1"], pods=pods).schedule(pod("new", cpu=2, priority=10))).preempts(["young"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([low("a", "n1", priority=2)], [low("b", "n2", priority=1)]),
        ([low("a", "n1", cpu=2), low("c", "n1", cpu=2)], [low("b", "n2", cpu=4)]),
        ([low("a", "n1", started=EARLY)], [low("b", "n2", started=LATE)]),
    ],
    ids=["lowest highest victim", "fewest and smallest sum", "latest started"],
)
def test_the_cheapest_node_is_nominated(one: list[Pod], other: list[Pod]) -> None:
    wanted = pod("new", cpu=4, priority=10)

    expect(Harness(nodes=["n1", "n2"], pods=[*one, *other]).schedule(wanted)).preempts(["b"], on="n2")


def test_budgets_are_spared_where_possible() -> None:
    pods = [low("covered", "n1", labels={"app": "web"}), low("free", "n2", priority=5)]
    harness = Harness(nodes=["n1", "n2"], pods=pods, objects=[pdb("web", {"app": "web"})])

    expect(harness.schedule(NEW)).preempts(["free"], on="n2")


def test_a_budget_is_broken_when_there_is_no_other_way() -> None:
    harness = Harness(
        nodes=["n1"], pods=[low("covered", "n1", labels={"app": "web"})], objects=[pdb("web", {"app": "web"})]
    )

    expect(harness.schedule(NEW)).preempts(["covered"], on="n1")


def test_a_budget_with_a_selector_nobody_can_read_stands_in_nobodys_way() -> None:
    broken = pdb("broken", selector(is_in={"app": []}))
    harness = Harness(nodes=["n1"], pods=[low("a", "n1", labels={"app": "web"})], objects=[broken])

    expect(harness.schedule(NEW)).preempts(["a"], on="n1")
    assert harness.complaints == []


def test_room_is_kept_for_nominated_pods_of_no_lower_priority() -> None:
    waiting = pod("waiting", cpu=3, priority=20, nominated="n1")
    harness = Harness(nodes=["n1"], pods=[low("a", "n1"), waiting])

    expect(harness.schedule(NEW)).pending()
    assert harness.schedule(NEW).nominated_node == ""


def test_filters_that_look_at_pods_are_asked_for_each_victim() -> None:
    """Anti-affinity names one pod; the others stay."""
    pods = [low("enemy", "n1", cpu=1, labels={"app": "db"}), low("friend", "n1", cpu=1)]
    wanted = pod("new", cpu=1, priority=10, affinity=apart(HOSTNAME, {"app": "db"}))

    expect(Harness(nodes=["n1"], pods=pods).schedule(wanted)).preempts(["enemy"], on="n1")


def test_nodes_without_lower_pods_are_not_tried_where_filters_look_at_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pod a host, all of one priority: with thousands of nodes a dry run on each took longer than the decision."""
    tried: list[int] = []

    class Noted(search.NodeTrial):
        def __init__(self, *arguments: Any) -> None:
            tried.append(arguments[4])
            super().__init__(*arguments)

    monkeypatch.setattr(search, "NodeTrial", Noted)
    mine: dict[str, Any] = {"labels": {"app": "web"}, "affinity": apart(HOSTNAME, {"app": "web"})}
    pods = [low("low", "n1", cpu=1, **mine), *(low(f"p{i}", f"n{i}", cpu=1, priority=10, **mine) for i in (2, 3))]
    harness = Harness(nodes=["n1", "n2", "n3"], pods=pods)

    expect(harness.schedule(pod("new", cpu=1, priority=10, **mine))).preempts(["low"], on="n1")
    assert len(tried) == 1

    expect(harness.schedule(pod("weak", cpu=1, priority=1, **mine))).message_says(
        "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
    )
    assert len(tried) == 1


def test_every_tie_is_told_when_a_decision_is_explained() -> None:
    names = [f"n{i:02}" for i in range(20)]
    pods = [low(f"p-{name}", name, started=EARLY) for name in names]
    harness = Harness(nodes=names, pods=pods)

    assert evaluate_one(harness.scheduler, NEW)["preemption"]["nominatedNodes"] == names


@pytest.mark.parametrize(("count", "tried"), [(37, 37), (150, 100), (2000, 200)])
def test_as_many_candidates_are_tried_as_configured(count: int, tried: int) -> None:
    """Vector A20: ten per cent, but a hundred at least."""
    names = [f"n{i}" for i in range(count)]
    harness = Harness(nodes=names, pods=[low(f"p{i}", name) for i, name in enumerate(names)])
    info = harness.info(NEW)
    decision = harness.scheduler.decide(info)
    plugin: DefaultPreemption = harness.plugin(NAME)
    assert decision.diagnosis is not None
    found = plugin.search(decision.state, info, plugin.helpful_rows(decision.diagnosis))

    assert found.candidate_count == tried
    assert len(plugin.all_candidates(found)) == tried


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage: must be 0 to 100"),
        ({"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute: must not be negative"),
        ({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, "cannot be 0 together"),
    ],
)
def test_arguments_that_make_no_sense_are_named(args: dict[str, int], says: str) -> None:
    assert any(says in problem for problem in msgspec.convert(args, DefaultPreemption.Args).validate())


# Eviction


class Api:
    """Writes down what is asked of it; fails when told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []
        self.fails_on = ""

    async def patch_pod_status(
        self, pod: PodInfo, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        what = condition.message if condition else f"nominate {nominated_node_name!r}"
        self.calls.append(("patch", pod.name, what))

    async def delete_pod(self, pod: PodInfo) -> None:
        if pod.name == self.fails_on:
            raise RuntimeError("gone wrong")
        self.calls.append(("delete", pod.name, ""))


class Preempting:
    """A cluster in which the plugin is about to evict, with every port written down."""

    def __init__(self, *pods: Pod, waiting: tuple[Pod, ...] = ()) -> None:
        self.harness = Harness(nodes=["n1"], pods=pods)
        self.api, self.tasks, self.activated, self.events = Api(), list[Awaitable[None]](), list[str](), list[str]()
        self.held: dict[str, Any] = {}
        real = self.harness.plugin(NAME).handle
        handle = SimpleNamespace(
            lasting=LastingState(),
            review_candidates=None,
            cluster=real.cluster,
            dry_run=real.dry_run,
            nominator=FixedNominator(self.harness.info(each) for each in waiting),
            api=self.api,
            waiting_pods=self.held,
            start_task=lambda name, work: self.tasks.append(work),
            activate=lambda infos: self.activated.extend(info.name for info in infos),
            recorder=SimpleNamespace(event=lambda pod, **said: self.events.append(f"{pod.name}: {said['note']}")),
        )
        self.plugin = DefaultPreemption(None, handle)  # type: ignore[arg-type]
        self.info = self.harness.info(NEW)
        decision = self.harness.scheduler.decide(self.info)
        self.result = self.plugin.post_filter(decision.state, self.info, decision.diagnosis)  # type: ignore[arg-type]


async def test_victims_are_told_and_deleted_the_last_one_last() -> None:
    one = Preempting(low("a", "n1", cpu=2, priority=2), low("b", "n1", cpu=2))
    await one.tasks[0]
    message = "default-scheduler: preempting to accommodate a higher priority pod"

    assert one.api.calls == [("patch", "a", message), ("delete", "a", ""), ("patch", "b", message), ("delete", "b", "")]
    assert one.events == [f"{name}: Preempted by pod uid-default-new on node n1" for name in ("a", "b")]
    assert one.plugin.pre_enqueue(one.info) is None


async def test_the_preemptor_is_held_back_until_its_last_victim_is_leaving() -> None:
    one = Preempting(low("a", "n1"))
    held = one.plugin.pre_enqueue(one.info)
    assert held is not None
    assert held.message == "waiting for the preemption for this pod to be finished"
    assert one.plugin.pre_enqueue(one.harness.info(pod("somebody-else"))) is None
    await one.tasks[0]

    assert one.plugin.pre_enqueue(one.info) is None


@pytest.mark.parametrize("happens", ["leaves", "is told to go", "loses its node", "stays", "falls behind"])
async def test_whoever_is_no_longer_held_back_is_named(happens: str) -> None:
    """As soon as PreEnqueue lets a preemptor pass, the log has its name; nobody has to ask about everybody."""
    one = Preempting(low("a", "n1"), low("bystander", "n1", cpu="100m", priority=20))
    cache, answered = one.harness.scheduler.cache, asyncio.Event()

    async def waits_for_an_answer(pod: PodInfo) -> None:
        await answered.wait()

    one.api.delete_pod = waits_for_an_answer  # type: ignore[method-assign]
    position = one.plugin.releases().position
    task = asyncio.ensure_future(one.tasks[0])
    await until(lambda: one.plugin.releases().since(position) == {"default/new"})
    position = one.plugin.releases().position
    cache.remove_pod("uid-default-bystander")
    assert one.plugin.releases().since(position) == set()

    if happens == "leaves":
        cache.remove_pod("uid-default-a")
    elif happens == "is told to go":
        cache.add_pod(low("a", "n1", terminating=True))
    elif happens == "loses its node":
        cache.remove_node("n1")
    elif happens == "falls behind":
        cache.remove_pod("uid-default-a")
        changes = cache.cluster.nodes.row_changes
        seen = changes.position
        while changes.since(seen) is not None:
            changes.append(0)
    is_held = one.plugin.pre_enqueue(one.info) is not None
    assert is_held == (happens == "stays")
    assert one.plugin.releases().since(position) == (set() if is_held else {"default/new"})
    position = one.plugin.releases().position
    answered.set()
    await task

    assert one.plugin.releases().since(position) == {"default/new"}
    assert one.plugin.handle.lasting.get(EvictionsUnderWay).waiting_on == {}


async def test_few_victims_are_told_to_go_at_a_time() -> None:
    """The writer has other things to do: bindings, and the nomination of the preemptor."""
    one = Preempting(*(low(f"v{i}", "n1", cpu="50m") for i in range(80)))
    answered, under_way, most = asyncio.Event(), 0, 0

    async def waits_for_an_answer(pod: PodInfo, **said: Any) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await answered.wait()
        under_way -= 1

    one.api.patch_pod_status = waits_for_an_answer  # type: ignore[method-assign]
    task = asyncio.ensure_future(one.tasks[0])
    await until(lambda: under_way == 32)
    answered.set()
    await task

    assert most == 32
    assert len(one.api.calls) == len(one.events) > 32


async def test_nominations_of_lower_pods_to_the_node_are_cleared() -> None:
    lower = pod("lower", priority=2, nominated="n1")
    higher = pod("higher", priority=50, cpu="100m", nominated="n1")
    one = Preempting(low("a", "n1"), waiting=(lower, higher))
    await one.tasks[0]

    assert one.api.calls[0] == ("patch", "lower", "nominate ''")
    assert all(name != "higher" for _, name, _ in one.api.calls)


async def test_a_failed_eviction_wakes_the_preemptor() -> None:
    one = Preempting(low("a", "n1"))
    one.api.fails_on = "a"
    with pytest.raises(RuntimeError, match="gone wrong"):
        await one.tasks[0]

    assert one.activated == ["new"]
    assert one.plugin.pre_enqueue(one.info) is None


async def test_a_victim_that_waits_at_permit_is_let_go_without_the_api() -> None:
    one = Preempting(low("a", "n1"))
    one.held["uid-default-a"] = SimpleNamespace(preempt=lambda plugin, message: True)
    await one.tasks[0]

    assert one.api.calls == []
    assert one.events == ["a: Preempted by pod uid-default-new on node n1 (in kube-scheduler memory)."]


def test_victims_that_are_already_leaving_need_no_eviction() -> None:
    one = Preempting(low("a", "n1", terminating=True))

    assert one.tasks == []
    assert one.plugin.pre_enqueue(one.info) is None


def test_deleted_pods_wake_only_those_held_back() -> None:
    (registered,) = DefaultPreemption().events_to_register()

    assert registered.event == ClusterEvent(Resource.POD, ActionType.DELETE)
    assert registered.hint is not None
    assert registered.hint(None, None, None) is Hint.SKIP  # type: ignore[arg-type]


# Filters that fail


class Failing(Plugin):
    """Fails on some nodes, which NodeResourcesFit rejects before it unless pods leave."""

    depends = Depends.NODE
    nodes: frozenset[str] = frozenset()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Error(f"no answer for {node.name}") if node.name in self.nodes else None


class FailingOnPods(Failing):
    depends = Depends.CLUSTER


class FailingToFollow(Failing):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        return Error("lost") if node.name in self.nodes else None


FAILURES = [
    pytest.param(Failing, 'running "Failing" filter plugin: no answer for n1', id="in columns"),
    pytest.param(FailingOnPods, 'running "FailingOnPods" filter plugin: no answer for n1', id="node by node"),
    pytest.param(FailingToFollow, 'running RemovePod on PreFilter plugin "FailingToFollow": lost', id="moving pods"),
]


@pytest.mark.parametrize(("kind", "reason"), FAILURES)
@pytest.mark.parametrize("remember", [True, False])
def test_a_filter_that_fails_in_the_dry_run_is_what_preemption_says(
    kind: type[Failing], reason: str, remember: bool
) -> None:
    harness = Harness(nodes=["n1"], pods=[low("a", "n1")], plugins=[kind], remember=remember)
    harness.plugin(kind.__name__).nodes = {"n1"}

    expect(harness.schedule(NEW)).message_says(f"1 Insufficient cpu. preemption: {reason}")


@pytest.mark.parametrize(("kind", "_reason"), FAILURES)
def test_a_failure_on_one_node_does_not_keep_another_from_being_nominated(kind: type[Failing], _reason: str) -> None:
    harness = Harness(nodes=["n1", "n2"], pods=[low("a", "n1"), low("b", "n2")], plugins=[kind])
    harness.plugin(kind.__name__).nodes = {"n1"}

    expect(harness.schedule(NEW)).preempts(["b"], on="n2")


def test_a_node_is_tried_again_after_a_failure() -> None:
    harness = Harness(nodes=["n1"], pods=[low("a", "n1")], plugins=[Failing])
    plugin = harness.plugin("Failing")
    plugin.nodes = {"n1"}
    harness.schedule(NEW)
    plugin.nodes = set()

    expect(harness.schedule(NEW)).preempts(["a"], on="n1")


def test_different_failures_are_listed() -> None:
    harness = Harness(nodes=["n1", "n2"], pods=[low("a", "n1"), low("b", "n2")], plugins=[Failing])
    harness.plugin("Failing").nodes = {"n1", "n2"}

    message = harness.schedule(NEW).message
    assert message.split("preemption: ")[1] in {
        f'[running "Failing" filter plugin: no answer for {x}, running "Failing" filter plugin: no answer for {y}]'
        for x, y in (("n1", "n2"), ("n2", "n1"))
    }
