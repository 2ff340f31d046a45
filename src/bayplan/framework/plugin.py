"""The contract: what a plugin class may define, when each method is called, and what its answers cause.

Define what you need and leave out the rest. For nodes there are two forms: columns (`filter_nodes`, `score_nodes`),
which answer for all nodes at once, and one node at a time (`filter`, `score`), which the framework lifts to columns.
A plugin may define both; then the one-node form is used when only a few rows changed, and must agree.

Every method may return None where a Status is expected: it means success. An exception is turned into an Error status
with the plugin's name; the scheduler goes on.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from typing import Any, ClassVar, NamedTuple

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.args import NoArgs, PluginArgs
from bayplan.framework.depends import Depends
from bayplan.framework.events import EventHint
from bayplan.framework.handle import Handle
from bayplan.framework.status import Status

__all__ = ["EXTENSION_POINTS", "UNSIGNED", "Permission", "Plugin", "PostFilterResult", "PreFilterResult"]


_version_changes = count(1)


class _Unsigned:
    """The type of `UNSIGNED`."""


UNSIGNED = _Unsigned()
"""Answer of `sign` for a pod whose answers must not be remembered."""


class PreFilterResult(NamedTuple):
    """Only these nodes need to be looked at. None stands for all."""

    node_names: frozenset[str] | None = None


class PostFilterResult(NamedTuple):
    """A node to nominate the pod to; an empty name clears an earlier nomination, None leaves it as it is."""

    nominated_node_name: str | None
    status: Status | None = None
    victims: tuple[PodInfo, ...] = ()


class Permission(NamedTuple):
    """An API rule that a plugin needs, as in RBAC; manifests are derived from it."""

    group: str
    resource: str
    verbs: tuple[str, ...]


class Plugin:
    """Base class of all plugins.

    *Declarations* (class attributes): `name` (default: the class name), `Args`, `depends` / `filter_depends` /
    `score_depends`, `reasons` (strings that users see), `watches` (custom resource types), `permissions` (API rules).
    *Built with* `Plugin(args, handle)`; do not override `__init__`, override `setup`.
    """

    name: ClassVar[str] = ""
    Args: ClassVar[type[PluginArgs]] = NoArgs
    depends: ClassVar[Depends] = Depends.CLUSTER
    filter_depends: ClassVar[Depends | None] = None
    score_depends: ClassVar[Depends | None] = None
    reasons: ClassVar[tuple[str, ...]] = ()
    watches: ClassVar[tuple[type[Any], ...]] = ()
    permissions: ClassVar[tuple[Permission, ...]] = ()
    allow_parallel_pre_bind: ClassVar[bool] = False
    binds_at_once: ClassVar[bool] = False
    """`bind` is a request to the API server and waits for nothing else. Such bindings take turns on a few dozen tasks;
    others have a task each."""
    filter_reads_counts_only: ClassVar[bool] = False
    """Of the pods on nodes, `filter_nodes` reads nothing but the counts in the columns (requested, pod_count); dry
    runs can then move thousands of pods at once."""
    settles_by_kind: ClassVar[bool] = False
    """Of the pod, `is_relevant`, and `pre_filter` and `pre_score` where the answers are remembered, look at nothing but
    `shape.kind` and `node_name`: not at labels, amounts or owners. They are then asked once per kind."""
    signs_by_kind: ClassVar[bool] = False
    """The same about `sign`: pods of one kind share the answers."""
    names_pin: ClassVar[bool] = False
    """For a pod that is pinned to a node (`shape.pinned_to`), `pre_filter` names that node, and none besides. It then
    need not be asked."""
    version_changes: ClassVar[int] = 0
    """Another number whenever the version of any plugin changed: while it stands still, nobody has to look at each."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        # A promise about methods does not hold for those that replace them.
        stated = cls.__dict__
        if "version" in stated:
            raise TypeError(f"plugin class `{cls.__name__}`: `version` counts changes of answers; rename yours")
        if "settles_by_kind" not in stated and not stated.keys().isdisjoint(("is_relevant", "pre_filter", "pre_score")):
            cls.settles_by_kind = False
        if "signs_by_kind" not in stated and "sign" in stated:
            cls.signs_by_kind = False
        if "names_pin" not in stated and "pre_filter" in stated:
            cls.names_pin = False
        if "binds_at_once" not in stated and "bind" in stated:
            cls.binds_at_once = False

    def __init__(self, args: PluginArgs | None = None, handle: Handle | None = None) -> None:
        self.args: Any = self.Args() if args is None else args
        self._handle = handle
        self.version = 0
        self.setup()
        if handle is not None:
            for kind in self.watches:
                handle.resources(kind).on_change(self._resource_changed)

    @property
    def version(self) -> int:
        """Raise it when something other than pods, nodes and arguments changed the answers; see `Depends`. Changes of
        custom resources in `watches` raise it by themselves."""
        return self._version

    @version.setter
    def version(self, number: int) -> None:
        self._version = number
        # Never a number that was there before, even if other threads make plugins: each framework compares it.
        Plugin.version_changes = next(_version_changes)

    def _resource_changed(self, old: Any, new: Any) -> None:
        self.version += 1

    @property
    def handle(self) -> Handle:
        if self._handle is None:
            raise RuntimeError(f"plugin `{self.name}` was built without a handle; use the harness of bayplan.testing")
        return self._handle

    def setup(self) -> None:
        """Called once, after args and handle are in place."""

    def sign(self, pod: PodInfo) -> Hashable:
        """What of the pod this plugin's filter and score look at; pods with equal signs share answers.

        *When*: once per pod shape. *Answers*: any hashable value, or UNSIGNED. Default: the whole shape.
        Only asked of plugins that declare `depends` below CLUSTER.
        """
        return pod.shape.number

    def is_relevant(self, pod: PodInfo) -> bool:
        """Whether this plugin can have a say at PreFilter, Filter, PreScore and Score for pods of this shape.

        *When*: once per pod shape. Answering False is the same as Skip in PreFilter and in PreScore, but cheaper.
        """
        return True

    # More attributes may be defined, all promises that save work and change no answer:
    #   is_idle(pod) -> bool      nothing to say about pods of this shape, whichever node they are pinned to, until an
    #                             object, a node object or a pod with affinity terms changes; asked again only then
    #   accepts_all(pod, nodes) -> bool     a filter that is remembered lets every node there is pass at present; False
    #                             where it would have to look at each to know
    #   score_by_value(state, pod, nodes) -> ByValue | None     scores that one label decides, for each of its values;
    #                             see `bayplan.framework.by_value`
    #   is_within_bounds = True   raw scores are 0 to 100 by construction, so the engine need not look for others
    #   releases() -> NameLog     of a PreEnqueue plugin: `namespace/name` of each pod that it held back and may now let
    #                             pass; held pods that are not named are not asked about again by events

    def events_to_register(self) -> list[EventHint] | None:
        """Events that may make a pod schedulable that this plugin rejected; None stands for all events.

        *Effect on the queue*: a pod that this plugin rejected is tried again when one of them happens and its hint
        says QUEUE. A hint marked with `by_shape` is asked once for all waiting pods of a shape.
        """
        return None


# The methods below are documented here and looked up by name; a plugin has an extension point when its class defines
# the method. They are not defined on the base class, so that "does it extend Filter" is a question about the class.

EXTENSION_POINTS = {
    "pre_enqueue": """(pod) -> Status | None

    *When*: before the pod enters the active or back-off queue. *Answers*: success, or anything else to hold it back.
    *Effect on the queue*: a held pod waits, without events or conditions, until an event of this plugin.
    *Must not* do I/O.""",
    "less": """(first: QueuedPod, second: QueuedPod) -> bool

    *When*: ordering the active queue; exactly one plugin does it, the same for all profiles.
    *Answers*: True when the first goes before the second; must be a strict order. Write `sort_key` instead where one
    tuple per pod can say it: it is faster.""",
    "sort_key": """(queued: QueuedPod) -> tuple

    *When*: a pod enters the active queue. *Answers*: a tuple; smaller goes first.""",
    "pre_filter": """(state, pod, nodes) -> Status | PreFilterResult | None

    *When*: at the start of the cycle. *Answers*: success; Skip (leave this plugin's filter out); a PreFilterResult with
    the only nodes to look at; Unschedulable (the other PreFilters still run); Unresolvable (ends it at once).
    A plugin with `filter_depends` below CLUSTER is asked once per sign, and must not write to the state.""",
    "add_pod": """(state, pod, added: PodInfo, node: NodeInfo) -> Status | None

    *When*: a dry run puts `added` on `node`; bring what pre_filter put into the state up to it. Called on a clone.""",
    "remove_pod": """(state, pod, removed: PodInfo, node: NodeInfo) -> Status | None

    *When*: a dry run takes `removed` off `node`. Called on a clone of the state.""",
    "filter_nodes": """(state, pod, nodes: NodeColumns) -> Verdicts

    *When*: once for the nodes at issue. *Answers*: one verdict a position. *Must not* change anything.""",
    "filter": """(state, pod, node: NodeInfo) -> Status | None

    *When*: for each node that earlier filters let through (or each node, if remembered). *Answers*: success,
    Unschedulable, Unresolvable, Pending; Error ends the cycle. *Must not* change anything.""",
    "post_filter": """(state, pod, diagnosis: Diagnosis) -> PostFilterResult | Status | None

    *When*: no node fits. *Answers*: a nomination (ends it), Unschedulable (the next plugin is asked), Unresolvable
    (ends it). The reasons become the last part of the pod's message.""",
    "pre_score": """(state, pod, nodes: NodeColumns) -> Status | None

    *When*: more than one node fits; `nodes` are those.
    *Answers*: success, or Skip (leave this plugin's score out).""",
    "score_nodes": """(state, pod, nodes: NodeColumns) -> int64 array

    *When*: once for the feasible nodes (or all nodes, if remembered). *Answers*: one raw score a position; after
    `normalize`, 0 to 100.""",
    "score": """(state, pod, node: NodeInfo) -> int

    *When*: for each feasible node (or each node, if remembered).
    *Answers*: the raw score; after `normalize`, 0 to 100.""",
    "normalize": """(state, pod, scores: int64 array) -> int64 array

    *When*: after scoring, with the raw scores of the feasible nodes.""",
    "reserve": """(state, pod, node_name: str) -> Status | None

    *When*: the pod was assumed on the node. *Answers*: success, or a rejection, which undoes all reservations.""",
    "unreserve": """(state, pod, node_name: str) -> None

    *When*: anything after reserve failed; in reverse order, also for plugins whose reserve was not reached.
    *Must not* fail: be idempotent.""",
    "permit": """(state, pod, node_name: str) -> Status | None

    *When*: last step of the scheduling cycle. *Answers*: success, a rejection, or Wait(seconds).""",
    "pre_bind_pre_flight": """(state, pod, node_name: str) -> Status | None

    *When*: before waiting at permit. *Answers*: success if pre_bind will have work to do, Skip if not.""",
    "pre_bind": """async (state, pod, node_name: str) -> Status | None

    *When*: in the binding cycle, before bind.""",
    "bind": """async (state, pod, node_name: str) -> Status | None

    *When*: in the binding cycle; the first plugin that does not answer Skip binds.""",
    "post_bind": """(state, pod, node_name: str) -> None

    *When*: after the pod was bound; informational.""",
}
"""Method name to its specification. `points.py` derives the signatures that registration checks."""
