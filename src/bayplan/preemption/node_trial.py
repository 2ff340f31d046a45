"""Victims on one node, found pod by pod on an overlay: the exact form, for every kind of filter."""

from __future__ import annotations

from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.overlay import OverlayColumns, overlay_of
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.handle import DryRun
from bayplan.framework.status import Status, Unresolvable
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.candidates import Candidate, importance

__all__ = ["NO_VICTIMS", "NodeTrial", "candidate_on", "find_victims"]

NO_VICTIMS = Unresolvable("No preemption victims found for incoming pod")


class NodeTrial:
    """A dry run on one node: pods are removed and added on an overlay, and the filters run again."""

    def __init__(
        self, dry_run: DryRun, state: CycleState, pod: PodInfo, table: NodeTable, row: int, nominated: list[PodInfo]
    ) -> None:
        self._dry_run = dry_run
        self._pod = pod
        self._nominated = nominated
        self._follows = dry_run.follows_pods(state)
        self._state = state.clone() if self._follows else state
        self._overlay: OverlayColumns = overlay_of(table, row)
        self.failure: Status | None = None
        """How a plugin failed to follow the pods; the trial says nothing about the node then."""

    def remove(self, victim: PodInfo) -> None:
        self._follow("remove_pod", victim, self._overlay.remove(0, victim))

    def add(self, victim: PodInfo) -> None:
        self._follow("add_pod", victim, self._overlay.add(0, victim))

    def _follow(self, method: str, victim: PodInfo, node: NodeInfo) -> None:
        if self._follows and self.failure is None:
            self.failure = self._dry_run.run_on_pods(method, self._state, self._pod, victim, node)

    def check(self) -> Status | None:
        """The first rejection of the node, with the nominated pods of the node or without them; None if it fits."""
        added = [other for other in self._nominated if other.uid not in self._overlay.info(0).pods]
        if added:
            kept = self._state
            self._state = self._state.clone() if self._follows else self._state
            for other in added:
                self.add(other)
            status = self._run_filters()
            for other in added:
                self._overlay.remove(0, other)
            self._state = kept
            if status is not None:
                return status
        return self._run_filters()

    def _run_filters(self) -> Status | None:
        return self.failure or self._dry_run.run_filters_on(self._state, self._pod, self._overlay, 0)


def find_victims(trial: NodeTrial, pods: list[PodInfo], budgets: Budgets) -> tuple[list[PodInfo], int] | Status:
    """The victims among the lower-priority `pods` of the node, and how many of them break a budget.

    All of them are removed; then each is added again, the most important first, and stays if the incoming pod still
    fits (reprieve). Pods that would break a budget are reprieved first.
    """
    if not pods:
        return NO_VICTIMS
    for victim in pods:
        trial.remove(victim)
    status = trial.check()
    if status is not None:
        return status
    violating, others = budgets.split(sorted(pods, key=importance))
    victims: list[PodInfo] = []
    violations = 0
    for victim in violating:
        if not _reprieved(trial, victim):
            victims.append(victim)
            violations += 1
    victims += [victim for victim in others if not _reprieved(trial, victim)]
    if trial.failure is not None:
        return trial.failure
    return sorted(victims, key=importance), violations


def _reprieved(trial: NodeTrial, victim: PodInfo) -> bool:
    trial.add(victim)
    if trial.check() is None:
        return True
    trial.remove(victim)
    return False


def candidate_on(table: NodeTable, row: int, found: tuple[list[PodInfo], int]) -> Candidate:
    victims, violations = found
    return Candidate(row, table.at(row).name, tuple(victims), violations)
