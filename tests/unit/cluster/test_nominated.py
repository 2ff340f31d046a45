"""Nominated pods in columns are the nominated pods, asked one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.cluster.changes import NameLog
from bayplan.cluster.nominated import NominatedRows
from bayplan.cluster.pod_info import PodInfo
from bayplan.queue.nominations import Nominations
from bayplan.testing import node, pod

NODES = [f"n{number}" for number in range(4)]
PODS = [f"p{number}" for number in range(5)]
names, places = st.sampled_from(PODS), st.sampled_from(NODES)


class NominationsMachine(RuleBasedStateMachine):
    """Nominations, pods and nodes come and go; whoever asks must leave room for the right ones."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.server: dict[str, Pod] = {}
        self.nominator = Nominations(lambda namespace, name: self.server.get(name))
        self.table = self.cache.cluster.nodes
        self.rows = NominatedRows(self.nominator, self.table)
        self.server.update((name, pod(name, cpu=1, priority=0, uid=name)) for name in PODS)

    @rule(name=names, cpu=st.integers(1, 3), priority=st.integers(0, 2))
    def change(self, name: str, cpu: int, priority: int) -> None:
        self.server[name] = pod(name, cpu=cpu, priority=priority, uid=name)

    @rule(name=names, place=st.sampled_from([*NODES, ""]))
    def nominate(self, name: str, place: str) -> None:
        self.nominator.add(self.cache.info(self.server[name]), place)

    @rule(name=places)
    def add_node(self, name: str) -> None:
        added: Node = node(name)
        self.cache.add_node(added)

    @rule(name=places)
    def remove_node(self, name: str) -> None:
        self.cache.remove_node(name)

    @rule(name=names, place=places)
    def arrive(self, name: str, place: str) -> None:
        self.cache.remove_pod(name)
        self.cache.add_pod(pod(name, uid=name, cpu=1, node=place))

    @rule(name=names)
    def leave(self, name: str) -> None:
        self.cache.remove_pod(name)

    @rule(number=st.integers(0, 9))
    def name_a_new_resource(self, number: int) -> None:
        self.cache.info(pod("odd", requests={f"example.com/r{number}": 1}))

    @rule()
    def fall_behind(self) -> None:
        for _ in range(9000):
            self.nominator.changes.record("elsewhere")

    def expected(self, asking: PodInfo, name: str) -> list[PodInfo]:
        present = self.table.at(self.table.row_of[name]).pods
        return [
            other
            for other in self.nominator.nominated_pods(name)
            if other.priority >= asking.priority and other.uid != asking.uid and other.uid not in present
        ]

    @invariant()
    def nobody_is_told_apart_from_somebody(self) -> None:
        assert self.rows.is_empty() == (not list(self.nominator.nominated_nodes()))

    @invariant()
    def columns_are_sums_of_pods(self) -> None:
        for asking in (pod("new", priority=1), pod("low", priority=0), pod("high", priority=9), *self.server.values()):
            info = self.cache.info(asking)
            expected = {self.table.row_of[name]: self.expected(info, name) for name in self.table.row_of}
            beside = self.rows.usage_beside(info)

            assert {row: self.rows.pods_on(row, info) for row in expected} == expected
            rows = [] if beside is None else beside.rows.tolist()
            assert rows == sorted(row for row, pods in expected.items() if pods)
            if beside is not None:
                for row in rows:
                    assert beside.count[row] == len(expected[row])
                    assert beside.nonzero[0, row] == sum(p.usage.nonzero_cpu for p in expected[row])
                    assert beside.nonzero[1, row] == sum(p.usage.nonzero_memory for p in expected[row])
                    used = np.zeros(len(beside.used), dtype=np.int64)
                    for place, amount in (pair for p in expected[row] for pair in p.usage.vector):
                        used[place] += amount
                    assert beside.used[:, row].tolist() == used.tolist()


TestNominations = NominationsMachine.TestCase
TestNominations.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


class Forgetful:
    """A nominator that keeps no log."""

    def __init__(self) -> None:
        self.pods: dict[str, list[PodInfo]] = {}

    def nominated_pods(self, node_name: str) -> list[PodInfo]:
        return self.pods.get(node_name, [])

    def nominated_nodes(self) -> list[str]:
        return list(self.pods)


def test_a_nominator_without_a_log_is_asked_about_everybody() -> None:
    cache = Cache()
    cache.add_node(node("n1"))
    nominator = Forgetful()
    rows = NominatedRows(nominator, cache.cluster.nodes)
    asking, waiting = cache.info(pod("new")), cache.info(pod("waiting"))

    assert rows.usage_beside(asking) is None
    nominator.pods["n1"] = [waiting]
    assert rows.pods_on(0, asking) == [waiting]
    nominator.pods.clear()
    assert rows.usage_beside(asking) is None


def test_many_priorities_do_not_fill_memory() -> None:
    cache = Cache()
    cache.add_node(node("n1"))
    nominator = Forgetful()
    nominator.pods["n1"] = [cache.info(pod(f"w{number}", priority=number)) for number in range(30)]
    rows = NominatedRows(nominator, cache.cluster.nodes)

    for number in range(30):
        beside = rows.usage_beside(cache.info(pod("new", priority=number)))
        assert beside is not None
        assert beside.count[0] == 30 - number
        assert len(rows._levels) <= 8


def test_a_log_that_is_too_short_says_so() -> None:
    log = NameLog()
    for number in range(20_000):
        log.record(f"n{number}")

    assert log.since(20_000) == set()
    assert log.since(19_998) == {"n19998", "n19999"}
    assert log.since(5) is None
    assert log.since(20_001) is None


def test_those_who_share_a_log_tell_of_the_same_nominations() -> None:
    class Other:
        def __init__(self, changes: NameLog | None) -> None:
            self.changes = changes

        def nominated_pods(self, node_name: str) -> list[PodInfo]:
            return []

        def nominated_nodes(self) -> list[str]:
            return []

    nominator = Nominations(lambda namespace, name: None)
    rows = NominatedRows(nominator, Cache().cluster.nodes)
    rows.refresh()

    assert rows.is_of(nominator)
    assert rows.is_of(Other(nominator.changes))
    assert not rows.is_of(Other(NameLog()))
    assert not rows.is_of(Other(None))
