"""What a plugin may reach beyond its arguments: ports, so that the same class runs live, in a test and in a replay."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from bayplan.api.meta import KubeObject
from bayplan.api.pod import PodCondition
from bayplan.cluster.axes import BoolN, Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.nominated import NominatedRows, Nominator
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.cycle import CycleState
from bayplan.framework.status import Status
from bayplan.observe.clock import Clock

__all__ = [
    "ApiPort",
    "Candidate",
    "Clock",
    "DryRun",
    "Handle",
    "LastingState",
    "Recorder",
    "ResourceLister",
    "WaitingPod",
    "WaitingPods",
]

K = TypeVar("K", bound=KubeObject)
S = TypeVar("S")


class WaitingPod(Protocol):
    """A pod held at Permit."""

    @property
    def info(self) -> PodInfo: ...

    @property
    def node_name(self) -> str: ...

    @property
    def is_rejected(self) -> bool:
        """Whether its wait has ended badly, though its place may not be free again yet."""

    def pending_plugins(self) -> list[str]: ...

    def allow(self, plugin: str) -> None: ...

    def reject(self, plugin: str, message: str) -> bool: ...

    def preempt(self, plugin: str, message: str) -> bool: ...


class WaitingPods(Protocol):
    """The pods that are held at Permit: look one up, or iterate."""

    def get(self, uid: str) -> WaitingPod | None: ...

    def __iter__(self) -> Iterator[WaitingPod]: ...


class Recorder(Protocol):
    """Events about pods. Never blocks, never raises."""

    def event(self, pod: PodInfo, *, kind: str, reason: str, action: str, note: str) -> None: ...


class ResourceLister(Protocol):
    """A synced, typed view of one custom resource."""

    def get(self, name: str, namespace: str = "") -> Any: ...

    def list(self, namespace: str | None = None) -> list[Any]: ...

    def on_change(self, callback: Callable[[Any, Any], None]) -> None:
        """Call back with (old, new) after each change; the absent side is None. Methods are held weakly."""


class ApiPort(Protocol):
    """Requests to the API server that plugins need. A refusal is raised as `ApiError` (`Conflict`, `NotFound`, ...), a
    request without an answer as `NoAnswer`; both are exported by `bayplan.framework`."""

    async def bind(self, pod: PodInfo, node_name: str) -> None: ...

    async def delete_pod(self, pod: PodInfo) -> None: ...

    async def patch_pod_status(
        self, pod: PodInfo, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None: ...

    async def patch_pod(self, pod: PodInfo, patch: dict[str, Any], *, subresource: str = "") -> None:
        """Strategic merge patch of the pod itself, such as an annotation, or of its `status`."""

    async def patch(self, item: KubeObject, patch: dict[str, Any], *, subresource: str = "") -> None:
        """Strategic merge patch of any object."""

    async def create(self, kind: type[K], body: dict[str, Any]) -> K:
        """Create an object from its `metadata`, `spec` and so on; with `generateName` the API server names it."""

    async def delete(self, item: KubeObject) -> None:
        """Delete this very object, and not one that took its name."""

    async def update(self, item: K, change: dict[str, Any], *, subresource: str = "") -> K:
        """Read the object anew, merge the change in, and write it; retried on conflict.

        A change that carries `metadata.resourceVersion` is written for that version only: if the object was changed
        meanwhile, `Conflict` is raised."""

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K | None: ...


class DryRun(Protocol):
    """The filters of the profile on an overlay: their answers if pods came or went."""

    def nominated_rows(self, nominator: Nominator) -> NominatedRows:
        """The nominations as columns; kept between calls."""

    def run_filters_on(self, state: CycleState, pod: PodInfo, nodes: NodeColumns, position: int) -> Status | None:
        """The first rejection of one node, or failure of a filter; None if every filter passes it."""

    def run_on_pods(
        self, method: str, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Call `add_pod` or `remove_pod` of every plugin that defines them; the first failure."""

    def follows_pods(self, state: CycleState) -> bool:
        """Whether some filter in play keeps state that `run_on_pods` must bring up to date, node by node."""

    def reads_counts_only(self, state: CycleState) -> bool:
        """Whether the filters in play can answer for many changed nodes at once."""

    def remembers(self, state: CycleState) -> Hashable | None:
        """What the answers of the filters in play depend on besides the shape of the pod and the node with its pods;
        None when they depend on more, or when nothing may be remembered."""

    def rejections(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> list[tuple[Status, Rows]]:
        """The first rejection, or failure of a filter, of every node that has one: positions by status."""

    def passes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns, *, only_counts: bool) -> BoolN:
        """Which nodes every filter passes; with `only_counts`, of the filters that depend on pods on nodes."""


class Candidate(NamedTuple):
    """A node on which a pod fits once its victims are evicted."""

    row: int
    node_name: str
    victims: tuple[PodInfo, ...]
    """Most important first."""
    violations: int
    """How many victims break a disruption budget."""


class LastingState:
    """State that outlives plugins: one object of each type for all profiles, kept when a reload replaces plugins.

    It is for what cannot be read from the cluster state, such as requests that are under way."""

    def __init__(self) -> None:
        self._kept: dict[type[Any], Any] = {}

    def get(self, kind: type[S]) -> S:
        """The object of this type; made without arguments when it is first asked for. A file of plugins that is loaded
        anew has new types."""
        found: S | None = self._kept.get(kind)
        if found is None:
            found = self._kept[kind] = kind()
        return found


@dataclass(frozen=True, kw_only=True)
class Handle:
    """Everything a plugin gets besides its arguments."""

    cluster: ClusterState
    clock: Clock
    nominator: Nominator
    waiting_pods: WaitingPods
    recorder: Recorder
    api: ApiPort
    get_dry_run: Callable[[], DryRun]
    """For `dry_run`, which has the filters of all plugins and so exists after they are built."""
    activate: Callable[[Iterable[PodInfo]], None]
    """Move pods to the active queue."""
    invalidate: Callable[[str], None]
    """Drop the kept answers of a plugin, because something outside the cluster state changed."""
    start_task: Callable[[str, Awaitable[None]], None]
    """Run a coroutine beside the cycle; its failure is logged with the given name."""
    resources: Callable[[type[Any]], ResourceLister]
    """The lister of a custom resource type the plugin declared in `watches`."""
    profile_name: str = "default-scheduler"
    lasting: LastingState = field(default_factory=LastingState)
    """State that outlives plugins: `lasting.get(Type)` is one object for all profiles, kept over reloads."""
    call_later: Callable[[float, Callable[[], None]], None] = lambda _seconds, _callback: None
    """Call back after that many seconds, between two decisions; dropped when the scheduler stops. Offline, never."""
    review_candidates: Callable[[Sequence[Candidate]], Sequence[Candidate]] | None = None
    """Of the candidates of a preemption those that the extenders agree with; raises ValueError when one that must
    answer fails. None where no extender has a preempt verb."""

    @property
    def dry_run(self) -> DryRun:
        """The filters of the profile on nodes as they would be. Not before `setup` has ended."""
        return self.get_dry_run()

    def nodes(self) -> NodeColumns:
        """All nodes: iterate for `NodeInfo`s, or read columns such as `allocatable("cpu")`."""
        return self.cluster.columns()

    @property
    def snapshot(self) -> ClusterState:
        """The old name of `cluster`."""
        warnings.warn("`handle.snapshot` is now `handle.cluster`", DeprecationWarning, stacklevel=2)
        return self.cluster
