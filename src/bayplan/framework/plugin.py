"""The contract: the methods that a plugin class may define, when each is called, and what its answers cause.

Define the methods you need; the engine calls only those that your class (or a base of it) defines. The versions on
`Plugin` are the specification: they give an editor something to complete and a type checker something to compare with,
and are never called.

For nodes there are two forms: columns (`filter_nodes`, `score_nodes`), which answer for all nodes at once, and one
node at a time (`filter`, `score`), from which the framework makes columns. A plugin may define both; the one-node form
is then used when only a few nodes changed, and must agree.

Where a Status is expected, None means success. An exception, and an answer of another type than the declared one,
becomes an Error status with the plugin's name; the scheduler goes on. What only makes a plugin faster is in
`bayplan.framework.promises`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, cast, get_origin

import structlog

from bayplan.cluster.axes import Int64N
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.args import NoArgs, PluginArgs
from bayplan.framework.cycle import CycleState
from bayplan.framework.diagnosis import Diagnosis, ObjectRemedy, Remedy
from bayplan.framework.events import EventHint
from bayplan.framework.handle import Handle
from bayplan.framework.promises import SpeedPromises
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import SKIP, Status
from bayplan.framework.verdicts import Verdicts

if TYPE_CHECKING:
    # The default makes a bare `Plugin` right under `mypy --strict`; at run time Python before 3.13 knows no defaults.
    from typing_extensions import TypeVar

    A = TypeVar("A", bound=PluginArgs, default=Any)
else:
    from typing import TypeVar

    A = TypeVar("A", bound=PluginArgs)

__all__ = ["Permission", "Plugin", "PostFilterResult", "PreFilterResult", "declared_args"]


class PreFilterResult(NamedTuple):
    """The only nodes to consider. None stands for all."""

    node_names: frozenset[str] | None = None


class PostFilterResult(NamedTuple):
    """A node to nominate the pod to; an empty name clears an earlier nomination, None leaves it as it is."""

    nominated_node_name: str | None
    status: Status | None = None
    victims: tuple[PodInfo, ...] = ()
    candidates: int = 0
    """How many nodes would have taken the pod at the price of victims, where that was counted."""
    keys: tuple[tuple[str, float, int], ...] = ()
    """What decided between them: (criterion, value of the chosen node, nodes that have the same), in order."""


class Permission(NamedTuple):
    """An API rule that a plugin needs, as in RBAC; manifests are derived from it."""

    group: str
    resource: str
    verbs: tuple[str, ...]


class Plugin(SpeedPromises, Generic[A]):
    """Base class of all plugins.

        class PreferZone(Plugin[ZoneArgs]):
            def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int: ...

    *Arguments*: `Plugin[ZoneArgs]` declares them, and `self.args` has that type. A nested `class Args(PluginArgs)` does
    the same at run time. *Built with* `Plugin(args, handle)`: override `setup`, not `__init__`.
    """

    name: ClassVar[str] = ""
    """Default: the class name."""
    Args: ClassVar[type[PluginArgs]] = NoArgs
    reasons: ClassVar[tuple[str, ...]] = ()
    """Strings that users see in statuses."""
    watches: ClassVar[tuple[type[Any], ...]] = ()
    """Custom resource types that `handle.resources` lists."""
    permissions: ClassVar[tuple[Permission, ...]] = ()
    """API rules beyond those of a scheduler."""
    remedies: ClassVar[tuple[Remedy, ...]] = ()
    """Changes that may end a rejection by Filter; explanations try them in this order."""
    default_weight: ClassVar[int | None] = None
    """Weight in the default profile, 0 for a plugin that does not score; None if it is not part of that profile. Not
    inherited."""

    args: A

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        if "Args" not in cls.__dict__:
            declared = declared_args(cls)
            if declared is not None:
                cls.Args = declared

    def __init__(self, args: PluginArgs | None = None, handle: Handle | None = None) -> None:
        self.args = cast("A", self.Args() if args is None else args)
        self._handle = handle
        self.version = 0
        self.setup()
        if handle is not None:
            for kind in self.watches:
                handle.resources(kind).on_change(self._resource_changed)

    def _resource_changed(self, old: Any, new: Any) -> None:
        self.version += 1

    @property
    def handle(self) -> Handle:
        """What the plugin may reach beyond its arguments: the cluster, the API server, the clock, the events."""
        if self._handle is None:
            raise RuntimeError(f"plugin `{self.name}` was built without a handle; use the harness of bayplan.testing")
        return self._handle

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """The scheduler's log with the plugin's name: `self.log.info("no licence left", pod=pod.key)`."""
        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(plugin=self.name)
        return logger

    def setup(self) -> None:
        """Prepare the plugin. *When*: once, with `self.args` and `self.handle` in place."""

    def teardown(self) -> None:
        """Release what `setup` acquired.

        *When*: once, when a reload replaces the plugin and when the scheduler stops; bindings under way may still call
        it afterwards. *Must not* wait.
        """

    def pod_gone(self, pod: PodInfo, node_name: str) -> None:
        """Note that a pod left its node: it was deleted or has finished, whichever scheduler had placed it.

        *When*: the change arrives, before pods that wait are tried again; not in dry runs, and not for pods whose
        binding is undone, for which `unreserve` is called. Pods that left before the plugin was built are not reported:
        read what is there in `setup`, from `handle.nodes()`. *Must not* wait.
        """

    def dry_copy(self, handle: Handle) -> Plugin | None:
        """A second instance for questions, on a handle that writes nothing, so that its PostFilter can be tried.

        *When*: a pod is explained that fits nowhere. *Answers*: None (the default) where PostFilter cannot be tried
        without effects; explanations then leave it out.
        """
        return None

    def grants(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> dict[str, Any]:
        """What the pod gets on a node besides its place, such as devices, as plain JSON for explanations.

        *When*: a decision is explained. *Answers*: fields by name; an empty one (the default) for nothing.
        *Must not* change anything.
        """
        return {}

    def object_remedies(self, pod: PodInfo) -> Iterable[ObjectRemedy]:
        """Changes of other objects, such as a quota, that may end this plugin's rejection of the pod.

        *When*: a rejection is explained. *Answers*: the smallest changes first; each is tried before it is suggested.
        *Must not* change anything.
        """
        return ()

    def events_to_register(self) -> list[EventHint] | None:
        """Events that may make a pod schedulable that this plugin rejected.

        *When*: once, when the profile is built. *Answers*: events with hints; None stands for all events.
        *Effect on the queue*: a pod that this plugin rejected is tried again when one of them happens and its hint
        says QUEUE. A hint marked with `by_shape` is called once for all waiting pods of a shape.
        """
        return None

    # In the queue

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Decide whether the pod may be scheduled at all.

        *When*: before the pod enters the active or back-off queue.
        *Answers*: success, or anything else to hold it back.
        *Effect on the queue*: a held pod waits, without events or conditions, until an event of this plugin. A plugin
        that fails holds the pod too; its event and condition then say so.
        *Must not* do I/O.
        """
        return None

    def less(self, first: QueuedPod, second: QueuedPod) -> bool:
        """Order the active queue.

        *When*: a pod is compared with another; exactly one plugin orders the queue, the same for all profiles.
        *Answers*: True when the first goes before the second. Write `sort_key` where one tuple per pod says it: it is
        faster.
        *Effect on the queue*: pods are tried in this order.
        *Must not* contradict itself: it has to be a strict order.
        """
        return False

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Order the active queue by keys.

        *When*: a pod enters the active queue.
        *Answers*: a tuple; smaller goes first.
        *Effect on the queue*: pods are tried in this order.
        *Must not* hold values that cannot be compared with those of another pod.
        """
        return ()

    # Finding nodes

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | PreFilterResult | None:
        """Check the pod, or prepare what `filter` needs.

        *When*: at the start of the cycle; with `filter_depends` below CLUSTER once per sign.
        *Answers*: success; Skip (leave this plugin's filter out); a PreFilterResult with the only nodes to consider;
        Unschedulable (the other PreFilters still run); Unresolvable (ends the cycle at once).
        *Effect on the queue*: a rejected pod waits for an event of this plugin.
        *Must not* write to the state if `filter_depends` is below CLUSTER.
        """
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        """Update what `pre_filter` put into the state for another pod on the node.

        *When*: a dry run places `added` on `node`; the state is a clone.
        *Answers*: success, or Error, with which the node is no candidate.
        *Effect on the queue*: none.
        *Must not* change anything but the state.
        """
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        """Update what `pre_filter` put into the state for one pod less on the node.

        *When*: a dry run takes `removed` off `node`; the state is a clone.
        *Answers*: success, or Error, with which the node is no candidate.
        *Effect on the queue*: none.
        *Must not* change anything but the state.
        """
        return None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        """Decide which nodes can take the pod, all at once.

        *When*: once for the nodes that earlier filters passed (or all nodes, if answers are kept).
        *Answers*: one verdict per position; the statuses are those of `filter`.
        *Effect on the queue*: if no node remains, the pod waits for events of the plugins that rejected nodes.
        *Must not* change anything.
        """
        return Verdicts.accept(len(nodes))

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Decide whether one node can take the pod.

        *When*: for each node that earlier filters passed (or each node, if answers are kept).
        *Answers*: success; Unschedulable (removing pods may help); Unresolvable (preemption cannot help); Pending
        (waits for something outside, retried without back-off); Error ends the cycle.
        *Effect on the queue*: if no node remains, the pod waits for events of the plugins that rejected nodes.
        *Must not* change anything.
        """
        return None

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult | Status | None:
        """Make room for a pod that fits nowhere.

        *When*: no node passed. *Answers*: a nomination (ends the phase), Unschedulable (the next plugin runs),
        Unresolvable (ends the phase). The reasons become the last part of the pod's message.
        *Effect on the queue*: none by itself; the pod waits for the events of the plugins that rejected nodes.
        *Must not* wait: what takes time, such as evictions, goes to `handle.start_task`.
        """
        return None

    # Choosing a node

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        """Prepare what `score` needs.

        *When*: more than one node passed; `nodes` are those. With one feasible node it is not called, so that later
        points must not rely on what it writes to the state.
        *Answers*: success, or Skip (leave this plugin's score out); anything else is an error, which ends the cycle.
        *Effect on the queue*: none; after an error the pod backs off.
        *Must not* change anything but the state.
        """
        return None

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        """Score nodes, all at once.

        *When*: once for the feasible nodes (or all nodes, if answers are kept).
        *Answers*: one raw score per position, whole numbers; after `normalize`, 0 to 100.
        *Effect on the queue*: none; after an exception the pod backs off.
        *Must not* change anything.
        """
        return nodes.pod_count * 0

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Score one node.

        *When*: for each feasible node (or each node, if answers are kept).
        *Answers*: the raw score, a whole number; after `normalize`, 0 to 100.
        *Effect on the queue*: none; after an exception the pod backs off.
        *Must not* change anything.
        """
        return 0

    def normalize(self, state: CycleState, pod: PodInfo, scores: Int64N) -> Int64N:
        """Turn raw scores into scores from 0 to 100.

        *When*: after scoring, with the raw scores of the feasible nodes.
        *Answers*: as many scores. The ready ones (`normalize = normalize_highest`) let answers be kept.
        *Effect on the queue*: none; after an exception the pod backs off.
        *Must not* change anything.
        """
        return scores

    # Placing the pod

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Book what the pod takes on the chosen node.

        *When*: the pod was assumed on the node.
        *Answers*: success, or a rejection, which undoes all reservations.
        *Effect on the queue*: a rejected pod waits for an event of this plugin.
        *Must not* wait.
        """
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo `reserve`.

        *When*: anything after `reserve` failed; in reverse order, also for plugins whose `reserve` was not reached.
        *Answers*: nothing.
        *Effect on the queue*: none.
        *Must not* fail: be idempotent.
        """

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Allow, reject or delay the binding.

        *When*: last step of the scheduling cycle.
        *Answers*: success, a rejection, or Wait(seconds).
        *Effect on the queue*: a rejected pod waits for an event of this plugin.
        *Must not* wait itself: answer Wait, and decide later through `handle.waiting_pods`.
        """
        return None

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Tell whether `pre_bind` will have work to do.

        *When*: before a wait at Permit.
        *Answers*: success if it will, Skip if not; anything else undoes everything.
        *Effect on the queue*: none; a pod that is refused here is treated as one that `pre_bind` refuses.
        *Must not* wait or change anything.
        """
        return None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Do what must be done before the pod is bound.

        *When*: in the binding cycle, before `bind`; it may wait.
        *Answers*: success, or a rejection or Error, which undoes everything.
        *Effect on the queue*: a rejected pod waits for an event of this plugin; after an Error it backs off.
        *Must not* leave anything behind when it fails, except what `unreserve` undoes.
        """
        return None

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Bind the pod to the node.

        *When*: in the binding cycle; it may wait.
        *Answers*: success; Skip (the next plugin binds); anything else undoes everything.
        *Effect on the queue*: a pod that is not bound backs off.
        *Must not* answer with success before the API server has the binding.
        """
        return SKIP

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Note that the pod was bound.

        *When*: after `bind`.
        *Answers*: nothing.
        *Effect on the queue*: none.
        *Must not* fail: nothing can be undone any more.
        """


def declared_args(cls: type[Plugin[Any]]) -> Any:
    """The type between the brackets of `Plugin[...]`, None where there is none or another type variable."""
    for base in cls.__dict__.get("__orig_bases__", ()):
        origin = get_origin(base)
        if inspect.isclass(origin) and issubclass(origin, Plugin) and not isinstance(base.__args__[0], TypeVar):
            return base.__args__[0]
    return None
