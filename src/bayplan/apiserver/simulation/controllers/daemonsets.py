"""DaemonSets: one pod on each node that takes it, placed by the scheduler through node affinity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.simulation.controllers.base import Controller, ControllerClient
from bayplan.apiserver.simulation.controllers.deployments import absolute, template_hash
from bayplan.apiserver.simulation.controllers.pod_tally import PodFacts
from bayplan.apiserver.simulation.controllers.pods import pod_from_template
from bayplan.apiserver.simulation.controllers.revisions import REVISION_LABEL, Revisions
from bayplan.apiserver.simulation.placement import REQUIRED, matches_node, tolerates
from bayplan.apiserver.storage.store import Change, Entry, Key

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSets(Controller):
    """Keeps one pod a node."""

    name = "daemon-set-controller"
    component = "daemonset-controller"
    primary = "daemonsets.apps"
    watches = ("pods", "nodes")
    adopts = "pods"

    def __init__(self, client: ControllerClient) -> None:
        super().__init__(client)
        self._revisions = Revisions(client)
        self._eligible: dict[tuple[str, int], dict[str, tuple[int, bool]]] = {}

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if resource == "nodes":
            if change.previous is not None and _placement(change.previous) == _placement(change.entry):
                return ()
            return [entry.key for entry in self.client.entries(self.primary)]
        return super().keys_for(resource, change)

    def reconcile(self, key: Key) -> float | None:
        owner = self.client.get(self.primary, key)
        if owner is None:
            return None
        self.claims.settle(owner)
        wanted = self._wanted_nodes(owner)
        if "deletionTimestamp" not in owner["metadata"]:
            self._adjust(owner, wanted)
        self._write_status(key, owner, wanted)
        return self.seconds_until_available(owner)

    def _wanted_nodes(self, owner: Json) -> set[str]:
        """The nodes that this daemon runs on; computed again only for nodes that changed."""
        identity = (owner["metadata"]["uid"], owner["metadata"].get("generation", 1))
        known = self._eligible.get(identity, {})
        eligible: dict[str, tuple[int, bool]] = {}
        for entry in self.client.entries("nodes"):
            known_node = known.get(entry.name)
            if known_node is None or known_node[0] != entry.revision:
                taken = takes_daemon(decode_object(entry.raw), owner["spec"]["template"]["spec"])
                known_node = (entry.revision, taken)
            eligible[entry.name] = known_node
        for old in [old for old in self._eligible if old[0] == identity[0]]:
            del self._eligible[old]
        self._eligible[identity] = eligible
        return {name for name, (_, taken) in eligible.items() if taken}

    def _adjust(self, owner: Json, wanted: set[str]) -> None:
        revision = template_hash(owner["spec"]["template"])
        self._revisions.current(owner)
        rollout = _Rollout(owner, wanted, self.client.clock.now())
        for key, pod in self.client.pods.of(owner["metadata"]["uid"]).in_order():
            is_new = pod.labels.get(REVISION_LABEL) == revision
            if not (pod.is_terminating or (pod.node in wanted and pod.is_active)) or not rollout.add(key, pod, is_new):
                self.client.delete_pod(owner, key)
        for key in rollout.outdated():
            self.client.delete_pod(owner, key)
        names = {pod.labels.get(REVISION_LABEL, "") for pod in self.client.pods.of(owner["metadata"]["uid"]).actives()}
        self._revisions.trim(owner, {f"{owner['metadata']['name']}-{name}" for name in {*names, revision}})
        for node in rollout.missing():
            made = pod_from_template(owner["spec"]["template"], owner, labels={REVISION_LABEL: revision})
            _pin(made["spec"], node)
            self.client.create_pod(owner, made)

    def _write_status(self, key: Key, owner: Json, wanted: set[str]) -> None:
        pods = list(self.client.pods.of(owner["metadata"]["uid"]).actives())
        revision = template_hash(owner["spec"]["template"])
        placed = [pod for pod in pods if pod.node in wanted]
        ready = sum(pod.is_ready for pod in placed)
        ready_seconds, now = owner["spec"].get("minReadySeconds", 0), self.client.clock.now()
        available = len({pod.node for pod in placed if pod.is_available(ready_seconds, now)})
        status: Json = {
            "currentNumberScheduled": len(placed),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": len(pods) - len(placed),
            "numberReady": ready,
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        updated = sum(pod.labels.get(REVISION_LABEL) == revision for pod in placed)
        unavailable = len(wanted) - available
        status |= {"updatedNumberScheduled": updated} if updated else {}
        status |= {"numberAvailable": available} if available else {}
        status |= {"numberUnavailable": unavailable} if unavailable else {}
        if owner.get("status") != status:
            self.client.set_status(self.primary, key, status)


class _Rollout:
    """The pods of a DaemonSet by node, those of old templates apart, and which of them may be replaced now."""

    def __init__(self, owner: Json, wanted: set[str], now: float) -> None:
        strategy = owner["spec"].get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate") or {}
        self._is_rolling = strategy.get("type") != "OnDelete"
        self._surge = absolute(rolling.get("maxSurge", 0), len(wanted), round_up=True)
        self._unavailable = absolute(rolling.get("maxUnavailable", 1), len(wanted), round_up=True)
        self._ready_seconds, self._now = owner["spec"].get("minReadySeconds", 0), now
        self._wanted = wanted
        self._old: dict[str, tuple[Key, PodFacts]] = {}
        self._new: dict[str, PodFacts] = {}
        self._leaving: set[str] = set()

    def add(self, key: Key, pod: PodFacts, is_new: bool) -> bool:
        """Take a pod into account; false if its node has enough of its kind."""
        if pod.is_terminating:
            self._leaving.add(pod.node)
            return True
        known = self._new if is_new else self._old
        if pod.node in known or (not self._surges and (pod.node in self._new or pod.node in self._old)):
            return False
        if is_new:
            self._new[pod.node] = pod
        else:
            self._old[pod.node] = (key, pod)
        return True

    def outdated(self) -> list[Key]:
        """Pods of old templates to delete: those that are not available, and others while enough stay available."""
        if not self._is_rolling:
            return []
        if self._surges:
            return [key for node, (key, _) in self._old.items() if self._is_available(self._new.get(node))]
        covered = {node for node in self._wanted if self._is_available(self._on(node))}
        allowed = max(1, self._unavailable) - len(self._wanted - covered)
        replaced = []
        for node, (key, _) in self._old.items():
            allowed -= 1 if node in covered else 0
            if node not in covered or allowed >= 0:
                replaced.append(key)
        return replaced

    def missing(self) -> list[str]:
        """The nodes to make a pod for: those without one, and with a surge some beside a pod of an old template."""
        empty = self._wanted - self._leaving - set(self._old) - set(self._new)
        if not self._surges:
            return sorted(empty)
        surging = sum(not self._is_available(self._new[node]) for node in self._old if node in self._new)
        waiting = sorted(node for node in self._old if node not in self._new)
        unavailable = [node for node in waiting if not self._is_available(self._old[node][1])]
        others = [node for node in waiting if node not in unavailable]
        return sorted({*empty, *unavailable, *others[: max(0, self._surge - surging)]})

    @property
    def _surges(self) -> bool:
        return self._is_rolling and self._surge > 0

    def _on(self, node: str) -> PodFacts | None:
        return self._new.get(node) or (self._old[node][1] if node in self._old else None)

    def _is_available(self, pod: PodFacts | None) -> bool:
        return pod is not None and pod.is_available(self._ready_seconds, self._now)


def _placement(entry: Entry) -> tuple[Mapping[str, str], bytes]:
    """What of a stored node decides whether daemons run on it: its labels and its spec."""
    return entry.labels, entry.raw.partition(b'"status":')[0].partition(b'"spec":')[2]


def _pin(spec: Json, node: str) -> None:
    """Tie a pod to a node by affinity, so that the scheduler still decides whether it fits."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {}).setdefault(REQUIRED, {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": [field]} for term in terms]
    tolerations = spec.setdefault("tolerations", [])
    for key, effect in _TOLERATED:
        if not any(t.get("key") == key and t.get("effect") == effect for t in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": effect})


def takes_daemon(node: Json, spec: Json) -> bool:
    """Whether a daemon with this pod spec belongs on a node."""
    if not matches_node(spec, node):
        return False
    tolerations = [*(spec.get("tolerations") or ()), *({"key": k, "operator": "Exists"} for k, _ in _TOLERATED)]
    taints = (node.get("spec") or {}).get("taints") or ()
    hard = [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
    return all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in hard)
