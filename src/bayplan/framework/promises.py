"""Speed promises: what a plugin may state so that the engine calls it less often. They change no answer.

The one idea: an answer may be kept, shared or skipped as long as what it depends on stays the same, and only the
plugin knows what that is. Everything below is such a statement, in the form of a class attribute or a method; `Plugin`
inherits them all with cautious defaults, so an author who ignores this module loses nothing but time.

A promise is checked like an extension point: a misspelt name or wrong parameters are errors at registration. One that
raises, or answers with another type, is reported by plugin and name, and counts as not given. Whether a promise is
true, the contract suite of `bayplan.testing` checks by comparing answers with and without it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import IntEnum
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayplan.cluster.changes import NameLog
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.normalize import stretched

if TYPE_CHECKING:
    from bayplan.framework.plugin import Plugin

__all__ = [
    "MOST_VALUES",
    "UNSIGNED",
    "ByValue",
    "CombinedScore",
    "Depends",
    "Shares",
    "SpeedPromises",
    "Totals",
    "stretched",
]

_version_changes = count(1)


class _Unsigned:
    """The type of `UNSIGNED`."""


UNSIGNED = _Unsigned()
"""Answer of `sign` for a pod whose answers must not be kept."""


class Depends(IntEnum):
    """What an answer depends on besides the pod's shape (or its `sign`) and the plugin's `version`. It decides how long
    the answer is kept."""

    NODE = 0
    """The node's own object. The answer for a node is computed again when that object changes."""
    USE = 1
    """The node's object and what the pods on that node use: amounts, ports, volumes, and how many pods there are.
    Computed again when the object changes and when pods come and go; not when a pod there gets other labels, as every
    pod does that the API server binds."""
    ROW = 2
    """The node's object and the pods on that node: their specs, labels, annotations and starts, and which are
    terminating. Computed again when any of it changes; not when the rest of a pod's status does."""
    NODES = 3
    """All node objects. Computed again for all nodes when any node object changes."""
    CLUSTER = 4
    """Anything at all. Computed for every decision."""


MOST_VALUES = 32
"""With more label values than this, arrays are as fast as `ByValue`."""


class ByValue(NamedTuple):
    """Scores that one label of a node decides: one entry per value id, and a last one for nodes without the label."""

    key: str
    """The label."""
    scores: list[int]
    """Raw scores."""
    normalized: list[int]
    """0 to 100, over the values that some of the nodes have."""


Totals = np.ndarray[tuple[int], np.dtype[Any]]
"""Sums of weighted scores, as wide as the weights require: int16 or more."""
Shares = np.ndarray[tuple[int], np.dtype[np.uint8]]
"""Scores from 0 to 100."""


@runtime_checkable
class CombinedScore(Protocol):
    """The weighted sum of the scores of several plugins, computed in one pass because they read the same columns.

    All `members` must depend on a node's row at most, be within 0 to 100 without normalising, and have no `normalize`.
    """

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the plugins. The sum is used for pods that every one of them scores."""

    def sign(self, pod: PodInfo) -> Hashable:
        """What of the pod the sum depends on."""

    def totals(self, pod: PodInfo, nodes: NodeColumns, out: Totals, first: Shares | None) -> bool:
        """Write the sum of each position, and to `first`, if any, the score of the first member without its weight.

        False, with nothing written, where each plugin must compute its own.
        """

    def total(self, pod: PodInfo, node: NodeInfo) -> tuple[int, int] | None:
        """Both for one node; None where each plugin must compute its own."""


class SpeedPromises:
    """Every speed promise with its default. `Plugin` inherits them."""

    # What answers depend on

    depends: ClassVar[Depends] = Depends.CLUSTER
    """What Filter and Score depend on. Where nothing is stated, it is derived from the source of `filter` and `score`
    (`bayplan.framework.reading`), and is CLUSTER if not all of that is understood."""
    filter_depends: ClassVar[Depends | None] = None
    """For Filter, if it differs from `depends`."""
    score_depends: ClassVar[Depends | None] = None
    """For Score, if it differs from `depends`."""
    filter_reads_counts_only: ClassVar[bool] = False
    """Of the pods on nodes, `filter_nodes` reads only the counts in the columns (requested, pod_count). Dry runs can
    then move thousands of pods at once."""
    settles_by_kind: ClassVar[bool] = False
    """Of the pod, `is_relevant`, and `pre_filter` and `pre_score` where their answers are kept, read only `shape.kind`
    and `node_name`: no labels, amounts or owners. They are then called once per kind."""
    signs_by_kind: ClassVar[bool] = False
    """Of the pod, `sign` reads only `shape.kind`: pods of one kind share answers."""
    names_pin: ClassVar[bool] = False
    """For a pod that is pinned to a node (`shape.pinned_to`), `pre_filter` names exactly that node. It is then not
    called."""
    is_within_bounds: ClassVar[bool] = False
    """Raw scores are 0 to 100 by construction, so they need no check."""
    binds_at_once: ClassVar[bool] = False
    """`bind` is one request to the API server and waits for nothing else. Such bindings share a few dozen tasks; others
    have a task each."""
    allow_parallel_pre_bind: ClassVar[bool] = False
    """`pre_bind` may run at the same time as that of its neighbours."""

    version_changes: ClassVar[int] = 0
    """Another number whenever the version of any plugin changed, so that versions are compared only then."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # A promise about methods does not hold for those that replace them.
        stated = cls.__dict__
        if "version" in stated:
            raise TypeError(f"plugin class `{cls.__name__}`: `version` counts changes of answers; rename yours")
        for promise, methods in _ABOUT.items():
            if promise not in stated and not stated.keys().isdisjoint(methods):
                setattr(cls, promise, False)

    @property
    def version(self) -> int:
        """Raise it when something other than pods, nodes and arguments changed the answers. Changes of the custom
        resources in `watches` raise it by themselves."""
        return self._version

    @version.setter
    def version(self, number: int) -> None:
        self._version = number
        # Never a number that was there before, even if other threads make plugins: each framework compares it.
        SpeedPromises.version_changes = next(_version_changes)

    def sign(self, pod: PodInfo) -> Hashable:
        """What of the pod Filter and Score read; pods with equal signs share answers. Default: the whole shape.

        *When*: once per pod shape, of plugins whose `depends` is below CLUSTER.
        *Answers*: any hashable value, or UNSIGNED for a pod whose answers must not be kept.
        """
        return pod.shape.number

    def is_relevant(self, pod: PodInfo) -> bool:
        """Whether PreFilter, Filter, PreScore and Score may do anything for pods of this shape.

        *When*: once per pod shape. *Answers*: False has the effect of Skip in PreFilter and in PreScore, without the
        calls.
        """
        return True

    def is_idle(self, pod: PodInfo) -> bool:
        """Whether this plugin rejects and prefers nothing for pods of this shape at present, whatever node they are
        pinned to.

        *When*: once per pod shape, and again when an object, a node object or a pod with affinity terms changes.
        *Answers*: True only if PreFilter, Filter, PreScore and Score have no effect until then.
        """
        return False

    def accepts_all(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        """Whether Filter passes every node there is at present, known without evaluating each.

        *When*: before `filter_nodes`, if `filter_depends` is below CLUSTER.
        *Answers*: False where only an evaluation of each node can tell.
        """
        return False

    def score_by_value(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> ByValue | None:
        """The scores of `score_nodes` and `normalize`, once for each value of the label that decides them.

        *When*: before `score_nodes`. Three zones are three numbers, however many nodes there are.
        *Answers*: None where no single label decides, or where it has more than MOST_VALUES values.
        """
        return None

    def combine_scores(self, scores: Mapping[str, tuple[Plugin, int]]) -> CombinedScore | None:
        """A sum of scores computed in one pass, for plugins that read the same columns.

        *When*: once, when the profile is built, with the scoring plugins of the profile and their weights.
        *Answers*: None where there is nothing to combine. Each plugin still answers alone wherever its own share is
        shown.
        """
        return None

    def releases(self) -> NameLog | None:
        """`namespace/name` of each pod that `pre_enqueue` held back and may now let pass, in that order.

        *When*: an event that this plugin registered happens. *Answers*: held pods that the log does not name are not
        checked again; None: all are.
        """
        return None


_ABOUT = {
    "settles_by_kind": ("is_relevant", "pre_filter", "pre_score"),
    "signs_by_kind": ("sign",),
    "names_pin": ("pre_filter",),
    "binds_at_once": ("bind",),
}
"""Promise to the methods that it is about."""
