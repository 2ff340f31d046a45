"""What makes pods and replaces them: Deployments with rollouts, and Jobs, on the virtual clock.

As the controllers of Kubernetes do it, without their delays: a pod that is gone is replaced at once. Each puts its
ReplicaSet into the cluster, because default spreading follows the owners of pods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from bayplan.api.meta import LabelSelector, Metadata, OwnerReference
from bayplan.api.pod import Pod, PodStatus
from bayplan.api.workload import ReplicaSet, SelectorSpec
from bayplan.sim.engine.simulation import Simulation, SimulationError
from bayplan.sim.engine.world import timestamp

__all__ = ["Deployment", "Job", "PodTemplate", "check_name", "replace_lost_pods"]

_replace = msgspec.structs.replace


def check_name(simulation: Simulation, namespace: str, name: str) -> None:
    """Raise SimulationError where a pod of that name is there already, as an API server does."""
    if simulation.world.pod(namespace, name) is not None:
        message = f"pod `{namespace}/{name}` of the workload is there already"
        raise SimulationError(f"{message}\nhint: give the item another name or namespace")


@dataclass(frozen=True, kw_only=True)
class PodTemplate:
    """A pod without identity, and how long its pods run."""

    pod: Pod
    draw_seconds: Callable[[], float | None]

    def make(self, simulation: Simulation, name: str, owner: OwnerReference | None = None) -> Pod:
        """A pod of that name. Raises SimulationError where one is there already."""
        given = self.pod.metadata
        check_name(simulation, given.namespace, name)
        metadata = _replace(
            given,
            name=name,
            uid=f"{given.namespace}/{name}",
            creation_timestamp=timestamp(simulation.clock.now()),
            owner_references=None if owner is None else [owner],
        )
        return _replace(self.pod, metadata=metadata)


class Deployment:
    """Keeps so many pods. A rollout replaces them, a few at a time, by pods of another ReplicaSet."""

    def __init__(
        self, simulation: Simulation, name: str, template: PodTemplate, *, replicas: int, surge: int = 1
    ) -> None:
        self._simulation = simulation
        self._name = name
        self._template = template
        self._replicas = replicas
        self._surge = max(surge, 1)
        self._revision = self._made = 0
        self._pods: dict[str, tuple[Pod, int]] = {}
        """By uid, with the revision."""
        self._running: set[str] = set()
        self._is_reconciling = False

    def start(self) -> None:
        self._put_replica_set()
        self._reconcile()

    def roll_out(self) -> None:
        """Begin to replace every pod."""
        self._revision += 1
        self._put_replica_set()
        self._reconcile()

    def pod_bound(self, pod: Pod) -> None:
        """A new pod runs: an old one can go."""
        if pod.uid in self._pods:
            self._running.add(pod.uid)
            self._reconcile()

    def pod_gone(self, pod: Pod, reason: str) -> None:
        self._forget(pod)
        self._reconcile()

    def _reconcile(self) -> None:
        """Create and delete as the deployment controller does, where none of the replicas may be missing."""
        if self._is_reconciling:
            return
        self._is_reconciling = True
        while self._create_missing() or self._delete_old():
            pass
        self._is_reconciling = False

    def _create_missing(self) -> bool:
        new = sum(revision == self._revision for _, revision in self._pods.values())
        number = min(self._replicas - new, self._replicas + self._surge - len(self._pods))
        for _ in range(number):
            self._create()
        return number > 0

    def _delete_old(self) -> bool:
        """An old pod that there is no need for: first those that never ran."""
        old = [pod for pod, revision in self._pods.values() if revision < self._revision]
        if not old:
            return False
        running = sum(pod.uid in self._running for pod in old)
        new = len(self._pods) - len(old)
        new_running = len(self._running) - running
        waiting = next((pod for pod in old if pod.uid not in self._running), None)
        if waiting is not None and len(self._pods) - self._replicas > new - new_running:
            self._delete(waiting)
        elif len(self._running) > self._replicas and running:
            self._delete(next(pod for pod in old if pod.uid in self._running))
        else:
            return False
        return True

    def _delete(self, pod: Pod) -> None:
        self._forget(pod)
        self._simulation.delete(pod, "RolledOut")

    def _forget(self, pod: Pod) -> None:
        self._pods.pop(pod.uid, None)
        self._running.discard(pod.uid)

    def _create(self) -> None:
        self._made += 1
        name = f"{self._name}-{self._revision}-{self._made}"
        pod = self._template.make(self._simulation, name, self._owner())
        self._pods[pod.uid] = (pod, self._revision)
        self._simulation.submit(pod, duration_seconds=self._template.draw_seconds(), owner=self)

    def _owner(self) -> OwnerReference:
        name = f"{self._name}-{self._revision}"
        return OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=name, uid=name, controller=True)

    def _put_replica_set(self) -> None:
        metadata = self._template.pod.metadata
        selector = LabelSelector(match_labels=dict(metadata.labels or {}))
        owner = self._owner()
        own = Metadata(name=owner.name, namespace=metadata.namespace, uid=owner.uid)
        self._simulation.world.put(ReplicaSet(metadata=own, spec=SelectorSpec(selector=selector)))


class Job:
    """Runs pods until enough have finished; one that is lost is replaced, up to a limit."""

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        template: PodTemplate,
        *,
        completions: int = 1,
        parallelism: int = 1,
        backoff_limit: int = 6,
        duration_seconds: float | None = None,
    ) -> None:
        self._simulation = simulation
        self._name = name
        self._template = template
        self._left = completions
        self._parallelism = parallelism
        self._retries = backoff_limit
        self._duration = duration_seconds
        self._running = self._made = 0

    def start(self) -> None:
        while self._running < min(self._parallelism, self._left):
            self._create()

    def pod_bound(self, pod: Pod) -> None:
        """Nothing to do: the pod runs."""

    def pod_gone(self, pod: Pod, reason: str) -> None:
        self._running -= 1
        if reason == "Finished":
            self._left -= 1
        else:
            self._retries -= 1
        if self._retries >= 0:
            self.start()

    def _create(self) -> None:
        self._made += 1
        self._running += 1
        owner = OwnerReference(api_version="batch/v1", kind="Job", name=self._name, uid=self._name, controller=True)
        pod = self._template.make(self._simulation, f"{self._name}-{self._made}", owner)
        seconds = self._template.draw_seconds() if self._duration is None else self._duration
        self._simulation.submit(pod, duration_seconds=seconds, owner=self)


_REPLACING = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet", "Job"))


def replace_lost_pods(simulation: Simulation) -> None:
    """Have the pods that were loaded with the cluster replaced as their controllers do."""
    owner = _LoadedOwner(simulation)
    for pod in simulation.world.pods.values():
        kind = "" if pod.controller is None else pod.controller.kind
        # Others than StatefulSets replaced the pods that were on their way out before the dump was taken.
        if kind in _REPLACING and (pod.metadata.deletion_timestamp is None or kind == "StatefulSet"):
            simulation.adopt(pod, owner)


class _LoadedOwner:
    """Makes a pod again as it was, under a new name; a StatefulSet keeps the name."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._made = 0

    def pod_bound(self, pod: Pod) -> None:
        """Nothing to do: the pod runs."""

    def pod_gone(self, pod: Pod, reason: str) -> None:
        if reason in ("Finished", "Withdrawn"):
            return
        self._made += 1
        is_stateful = pod.controller is not None and pod.controller.kind == "StatefulSet"
        metadata = _replace(
            pod.metadata,
            name=pod.name if is_stateful else f"{pod.name}-again-{self._made}",
            uid=f"{pod.uid}-again-{self._made}",
            creation_timestamp=timestamp(self._simulation.clock.now()),
            deletion_timestamp=None,
        )
        spec = _replace(pod.spec, node_name="")
        self._simulation.submit(_replace(pod, metadata=metadata, spec=spec, status=PodStatus()), owner=self)
