"""Why a pod fits nowhere: the statuses by node, the plugins to blame, and kube-scheduler's sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from bayplan.api.meta import KubeObject
from bayplan.cluster.axes import Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.framework.status import Code, Status

__all__ = ["Diagnosis", "FitError", "ObjectRemedy", "Remedy", "fit_message"]


class Remedy(Enum):
    """A kind of change, of the pod or of a node, that may end the rejection of a filter."""

    TOLERATIONS = "the pod tolerates the taints of the node, or they are removed"
    UNCORDON = "the node is uncordoned"
    NODE_AFFINITY = "the pod's node selector or node affinity accepts the node, or the node gets the labels"
    NODE_NAME = "the pod names no node"
    REQUESTS = "the pod requests less, or pods leave the node"
    HOST_PORTS = "the pod uses other host ports, or pods leave the node"
    TOPOLOGY_SPREAD = "the pod's spread constraints allow the node"
    POD_AFFINITY = "the pod's affinity to other pods, or theirs to it, allows the node"
    VOLUMES = "the pod has other volumes"


class ObjectRemedy(NamedTuple):
    """A change of an object, neither the pod nor a node, that may end a rejection."""

    what: str
    """In words, after "if"."""
    current: KubeObject | None
    """The object as it is; None where it is missing."""
    wanted: KubeObject
    """The object as it would be."""


class Diagnosis:
    """Statuses of nodes that were looked at, and the one status of all that were not.

    Nodes that got the very same Status are one group, which keeps five thousand nodes to a handful of entries. Names
    are looked up when asked for; ask within the cycle.
    """

    def __init__(
        self,
        *,
        total_nodes: int,
        groups: Sequence[tuple[Status, Rows]] = (),
        table: NodeTable | None = None,
        absent: Status | None = None,
        pre_filter_message: str = "",
        unschedulable_plugins: Iterable[str] = (),
    ) -> None:
        self.total_nodes = total_nodes
        self.groups = groups
        self.absent = absent
        """Status of every node without one of its own (left out by PreFilter)."""
        self.pre_filter_message = pre_filter_message
        self.unschedulable_plugins = set(unschedulable_plugins)
        self.pending_plugins: set[str] = set()
        self.post_filter_message = ""
        self._table = table
        self._said: tuple[str, str, str] | None = None
        for status, _ in groups:
            self._blame(status)
        if absent is not None and absent.plugin:
            self._blame(absent)

    @classmethod
    def of_one_node(cls, status: Status) -> Diagnosis:
        """A rejection after a node was chosen (Reserve, Permit): that node alone counts."""
        return cls(total_nodes=1, absent=status)

    def _blame(self, status: Status) -> None:
        if status.plugin and status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)
            if status.code is Code.PENDING:
                self.pending_plugins.add(status.plugin)

    def names(self, rows: Rows) -> list[str]:
        if self._table is None:
            return []
        return [self._table.at(row).name for row in rows.tolist()]

    def status_by_node(self) -> dict[str, Status]:
        """Status of each node that was looked at."""
        return {name: status for status, rows in self.groups for name in self.names(rows)}

    def rows_with(self, code: Code) -> list[int]:
        """Rows of nodes looked at whose status has that code."""
        return [row for status, rows in self.groups if status.code is code for row in rows.tolist()]

    def reason_counts(self) -> dict[str, int]:
        """How many nodes gave each reason; a node with two reasons counts in both."""
        counts: Counter[str] = Counter()
        explicit = 0
        for status, rows in self.groups:
            explicit += len(rows)
            for reason in status.reasons:
                counts[reason] += len(rows)
        if self.absent is not None and self.total_nodes > explicit:
            for reason in self.absent.reasons:
                counts[reason] += self.total_nodes - explicit
        return dict(counts)

    @property
    def message(self) -> str:
        """Put together once: it may name thousands of reasons, and record, event and condition have it."""
        before, after = self.pre_filter_message, self.post_filter_message
        if self._said is None or self._said[:2] != (before, after):
            counts = self.reason_counts()
            text = fit_message(self.total_nodes, counts, pre_filter_message=before, post_filter_message=after)
            self._said = before, after, text
        return self._said[2]


def fit_message(
    total_nodes: int, reasons: Mapping[str, int], *, pre_filter_message: str = "", post_filter_message: str = ""
) -> str:
    """The sentence of events and conditions, letter for letter as kube-scheduler writes it."""
    text = f"0/{total_nodes} nodes are available:"
    if pre_filter_message:
        text += f" {pre_filter_message}."
    elif reasons:
        text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}."
    return f"{text} {post_filter_message}" if post_filter_message else text


class FitError(Exception):
    """No node fits. Carries the diagnosis; the text is the sentence above."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.message)
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        return self.diagnosis.message
