"""Filters on nodes as they would be: with other pods on them, or on a single node as it is.

For preemption, nominated pods and plugins (`Handle.dry_run`): what the filters of a profile would answer if pods came
or went. Nothing in the cluster changes; the pods are moved on an overlay of the columns, or on a copy of a node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bayplan.cluster.axes import BoolN, Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.nominated import NominatedRows, Nominator
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.answers import check_answer
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.promises import Depends
from bayplan.framework.runtime.call import Complaint, call_plugin
from bayplan.framework.runtime.node_calls import FilterCall, explained
from bayplan.framework.runtime.remembered.nominated_rejections import NominatedRejections
from bayplan.framework.runtime.status_groups import group_by_status
from bayplan.framework.status import Error, Status

__all__ = ["DryRuns"]

_MOST_IN_PLAY = 256


class DryRuns:
    """Implements `framework.handle.DryRun` for one profile."""

    def __init__(
        self,
        cluster: ClusterState,
        *,
        filter_calls: list[FilterCall],
        following: list[Plugin],
        complain: Complaint,
        remember: bool,
    ) -> None:
        """`following` are the plugins whose state must be updated pod by pod."""
        self._cluster = cluster
        self._filter_calls = filter_calls
        self._following = following
        self._complain = complain
        self._remember = remember
        self._nominated: NominatedRows | None = None
        self.nominated_rejections = NominatedRejections(cluster.nodes)
        self._in_play: dict[frozenset[str], list[FilterCall]] = {}

    def nominated_rows(self, nominator: Nominator) -> NominatedRows:
        """The nominations as columns; kept between calls."""
        known = self._nominated
        if known is not None and self._remember and (known.nominator is nominator or known.is_of(nominator)):
            return known
        known = self._nominated = NominatedRows(nominator, self._cluster.nodes)
        return known

    # One node

    def run_filters_on(self, state: CycleState, pod: PodInfo, nodes: NodeColumns, position: int) -> Status | None:
        """Every filter on one node of an overlay; the first rejection or failure, None if all pass it."""
        return self.first_rejection(state, pod, nodes.info(position), lambda: nodes.take(_only(position)))

    def first_rejection(
        self, state: CycleState, pod: PodInfo, info: NodeInfo, columns: Callable[[], NodeColumns] | None = None
    ) -> Status | None:
        """The same on a node as it is, or on a copy with other pods. Filters without a one-node form get `columns`; a
        node as it is needs none."""
        view: NodeColumns | None = None
        for call in self._in_play.get(state.skip_filter) or self._find_in_play(state.skip_filter):
            if call.has_one and call.times is None:
                # As `FilterCall.one`: pods of a DaemonSet pass here once for each filter.
                try:
                    status = call.plugin.filter(state, pod, info)
                    if status is None:
                        continue
                    if type(status) is not Status:
                        check_answer(call.name, "filter", status)
                except BaseException as exception:
                    status = call.raised(exception)
            elif call.has_one:
                status = call.one(state, pod, info)
            else:
                view = view or (columns() if columns is not None else NodeColumns(self._cluster.nodes, _only(info.row)))
                verdicts = call.verdicts(state, pod, view)
                status = call.status_of(verdicts.status, int(verdicts.ids[0])) if verdicts.ids[0] else None
            if status is not None and not status.is_success:
                if not status.is_rejected:
                    call.note_failure()
                return explained(status.by(call.name))
        return None

    def _find_in_play(self, skipped: frozenset[str]) -> list[FilterCall]:
        """The filters that are not skipped: about as many lists as there are kinds of pods."""
        if len(self._in_play) >= _MOST_IN_PLAY:
            self._in_play.clear()
        calls = self._in_play[skipped] = [call for call in self._filter_calls if call.name not in skipped]
        return calls

    # Moving pods

    def run_on_pods(
        self, method: str, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Call `add_pod` or `remove_pod` of every plugin that defines them and whose filter takes part; the first
        failure."""
        for plugin in self._following:
            if plugin.name not in state.skip_filter:
                status = call_plugin(plugin, method, self._complain, state, pod, other, node)
                if isinstance(status, Status) and not status.is_success:
                    point = "AddPod" if method == "add_pod" else "RemovePod"
                    reason = f'running {point} on PreFilter plugin "{plugin.name}": {status.message}'
                    return Error(reason, exception=status.exception).by(plugin.name)
        return None

    def follows_pods(self, state: CycleState) -> bool:
        """Whether some filter in play keeps state that `run_on_pods` must update, node by node."""
        return any(plugin.name not in state.skip_filter for plugin in self._following)

    def reads_counts_only(self, state: CycleState) -> bool:
        """Whether a dry run can move pods by moving counts: no filter in play reads the pods themselves."""
        return not self.follows_pods(state) and all(
            call.depends is Depends.NODE or call.plugin.filter_reads_counts_only
            for call in self._filter_calls
            if call.name not in state.skip_filter
        )

    def remembers(self, state: CycleState) -> tuple[tuple[str, int], ...] | None:
        """The filters in play with their versions; None if one depends on more than the node and its pods."""
        calls = [call for call in self._filter_calls if call.name not in state.skip_filter]
        if not self._remember or any(call.depends > Depends.ROW for call in calls):
            return None
        return tuple((call.name, call.plugin.version) for call in calls)

    # Many nodes

    def rejections(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> list[tuple[Status, Rows]]:
        """The first rejection or failure of every position that has one, grouped by status."""
        passing = np.ones(len(nodes), dtype=np.bool_)
        groups: list[tuple[Status, Rows]] = []
        for call in self._filter_calls:
            if call.name not in state.skip_filter:
                verdicts = call.verdicts(state, pod, nodes)
                rejected = passing & (verdicts.ids != 0)
                if rejected.any():
                    positions = np.flatnonzero(rejected)
                    found = group_by_status(
                        positions, verdicts.ids[positions], partial(call.status_of, verdicts.status)
                    )
                    groups += [(explained(status), some) for status, some in found]
                    passing &= ~rejected
        return groups

    def passes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns, *, only_counts: bool) -> BoolN:
        """Which positions every filter passes; with `only_counts`, of the filters that depend on pods on nodes."""
        passing: BoolN | None = None
        for call in self._filter_calls:
            if call.name not in state.skip_filter and not (only_counts and call.depends is Depends.NODE):
                found = call.verdicts(state, pod, nodes).ids == 0
                passing = found if passing is None else passing & found
        return np.ones(len(nodes), dtype=np.bool_) if passing is None else passing


def _only(row: int) -> Rows:
    return np.array([row], dtype=np.intp)
