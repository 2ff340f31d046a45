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
        return None

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
        covered: set[str] = set()
        outdated: list[tuple[Key, PodFacts]] = []
        for key, pod in self.client.pods.of(owner["metadata"]["uid"]).in_order():
            if pod.is_terminating:
                covered.add(pod.node)
            elif pod.node not in wanted or pod.node in covered or not pod.is_active:
                self.client.delete_pod(owner, key)
            else:
                covered.add(pod.node)
                outdated += [(key, pod)] if pod.labels.get(REVISION_LABEL) != revision else []
        self._replace(owner, outdated, wanted)
        names = {pod.labels.get(REVISION_LABEL, "") for pod in self.client.pods.of(owner["metadata"]["uid"]).actives()}
        self._revisions.trim(owner, {f"{owner['metadata']['name']}-{name}" for name in {*names, revision}})
        for node in sorted(wanted - covered):
            made = pod_from_template(owner["spec"]["template"], owner, labels={REVISION_LABEL: revision})
            _pin(made["spec"], node)
            self.client.create_pod(owner, made)

    def _replace(self, owner: Json, outdated: list[tuple[Key, PodFacts]], wanted: set[str]) -> None:
        """Delete pods of old templates: those that are not available, and others while enough stay available."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        limit = absolute((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(wanted), round_up=True)
        ready_seconds, now = owner["spec"].get("minReadySeconds", 0), self.client.clock.now()
        pods = list(self.client.pods.of(owner["metadata"]["uid"]).actives())
        available = {pod.node for pod in pods if pod.is_available(ready_seconds, now)}
        allowed = max(1, limit) - len(wanted - available)
        for key, pod in outdated:
            if pod.node in available:
                allowed -= 1
                if allowed < 0:
                    continue
            self.client.delete_pod(owner, key)

    def _write_status(self, key: Key, owner: Json, wanted: set[str]) -> None:
        pods = list(self.client.pods.of(owner["metadata"]["uid"]).actives())
        revision = template_hash(owner["spec"]["template"])
        placed = [pod for pod in pods if pod.node in wanted]
        ready = sum(pod.is_ready for pod in placed)
        status: Json = {
            "currentNumberScheduled": len(placed),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": len(pods) - len(placed),
            "numberReady": ready,
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        updated = sum(pod.labels.get(REVISION_LABEL) == revision for pod in placed)
        unavailable = len(wanted) - ready
        status |= {"updatedNumberScheduled": updated} if updated else {}
        status |= {"numberAvailable": ready} if ready else {}
        status |= {"numberUnavailable": unavailable} if unavailable else {}
        if owner.get("status") != status:
            self.client.set_status(self.primary, key, status)


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
