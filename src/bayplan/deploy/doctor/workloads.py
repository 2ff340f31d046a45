"""Checks pods, profiles and schedulers: pods without a scheduler, profiles without pods, schedulers that share pods or
nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.suggest import closest
from bayplan.cluster.pod_info import parse_time
from bayplan.deploy.bundle import DEFAULT_SCHEDULER, Bundle
from bayplan.deploy.doctor.finding import Finding, Level

__all__ = ["check_nodes", "check_pods", "check_profiles", "check_rivals"]

_SOON_SECONDS = 3.0
"""After which a pod that no scheduler has looked at is mentioned."""
_PATIENCE_SECONDS = 30.0
"""After which it is an error."""
_SHOWN = 5


def check_pods(pods: Sequence[Pod], bundle: Bundle, *, now: float) -> list[Finding]:
    """Pods that no scheduler has handled: without a condition that says why they wait."""
    ours = set(bundle.scheduler_names)
    ignored = [
        pod for pod in pods if _waits(pod) and not pod.condition("PodScheduled") and _age(pod, now) > _SOON_SECONDS
    ]
    by_name: dict[str, list[Pod]] = {}
    for pod in ignored:
        by_name.setdefault(pod.spec.scheduler_name, []).append(pod)
    findings = []
    for name, waiting in sorted(by_name.items()):
        shown = ", ".join(pod.key for pod in waiting[:_SHOWN]) + (" …" if len(waiting) > _SHOWN else "")
        who, them = ("1 pod waits", "it") if len(waiting) == 1 else (f"{len(waiting):,} pods wait", "them")
        findings.append(
            Finding(
                Level.WARNING if name in ours or _oldest(waiting, now) < _PATIENCE_SECONDS else Level.ERROR,
                "pods",
                f"{who} for the scheduler `{name}`, and no scheduler of that name has looked at {them}: {shown}",
                "if none of that name runs, they stay pending for ever, without an event that would say so",
                _pods_fix(name, bundle),
            )
        )
    return findings or [Finding(Level.OK, "pods", "every waiting pod has been handled by a scheduler")]


def _pods_fix(name: str, bundle: Bundle) -> str:
    if name in bundle.scheduler_names:
        return f"bayplan render manifests{bundle.options} | kubectl apply -f -"
    if name == DEFAULT_SCHEDULER:
        return (
            f"start the cluster's own scheduler again, or create the pods with schedulerName: "
            f"{bundle.scheduler_names[0]}, or take its place: bayplan render static-pod"
        )
    meant = closest(name, [*bundle.scheduler_names, DEFAULT_SCHEDULER])
    likely = f"schedulerName: {meant}" if meant else f"one of {', '.join(bundle.scheduler_names)}"
    return f"create the pods again with {likely}, or add a profile called {name} to the configuration"


def _oldest(pods: Sequence[Pod], now: float) -> float:
    return max(_age(pod, now) for pod in pods)


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and not pod.is_finished and not pod.spec.scheduling_gates and not pod.is_terminating


def _age(pod: Pod, now: float) -> float:
    created = pod.metadata.creation_timestamp
    return now - parse_time(created) if created else 0.0


def check_profiles(pods: Sequence[Pod], bundle: Bundle) -> list[Finding]:
    used = {pod.spec.scheduler_name for pod in pods}
    idle = [name for name in bundle.scheduler_names if name not in used]
    return [
        Finding(
            Level.WARNING,
            "profiles",
            f"no pod names the scheduler `{name}`",
            "a profile serves only pods that name it, and by default pods name default-scheduler",
            f"write `schedulerName: {name}` into the spec of pods or of their templates",
        )
        for name in idle
    ]


def check_nodes(nodes: Sequence[Node]) -> list[Finding]:
    """Scores decide between nodes that fit; with one node there is nothing to decide."""
    open_nodes = [node for node in nodes if _is_open(node)]
    if len(open_nodes) > 1:
        return [Finding(Level.OK, "nodes", f"{len(open_nodes)} of {len(nodes)} nodes take ordinary pods")]
    what = "one node takes" if open_nodes else "no node takes"
    fix = next((_opening(node) for node in nodes if not _is_open(node)), "add a node")
    why = "score plugins are not asked when fewer than two nodes fit"
    return [Finding(Level.WARNING, "nodes", f"{what} ordinary pods, so scores never matter", why, fix)]


def _opening(node: Node) -> str:
    """The command that opens a closed node."""
    taint = next((taint for taint in node.spec.taints or () if taint.effect != "PreferNoSchedule"), None)
    return f"kubectl taint node {node.name} {taint.key}:{taint.effect}-" if taint else f"kubectl uncordon {node.name}"


def _is_open(node: Node) -> bool:
    closing = [taint for taint in node.spec.taints or () if taint.effect in ("NoSchedule", "NoExecute")]
    return not node.spec.unschedulable and not closing


def check_rivals(pods: Sequence[Pod], bundle: Bundle, *, default_is_running: bool) -> list[Finding]:
    """Schedulers that handle the same pods, or that place pods on the same nodes without coordination."""
    findings = []
    if default_is_running and DEFAULT_SCHEDULER in bundle.scheduler_names:
        findings.append(
            Finding(
                Level.ERROR,
                "rivals",
                "kube-scheduler runs and this configuration has a profile `default-scheduler` too",
                "both would place the same pods, and half of the bindings fail",
                "give the profile a name of its own, or take kube-scheduler's place: bayplan render static-pod",
            )
        )
    shared = _shared_nodes(pods, bundle)
    if shared:
        names = ", ".join(shared[:_SHOWN])
        findings.append(
            Finding(
                Level.WARNING,
                "rivals",
                f"{len(shared)} node(s) run pods of this scheduler and of others: {names}",
                "each scheduler learns of the other's pods after they are bound, so two may fill the last room at once "
                "and the kubelet turns one pod away",
                f"kubectl taint node {shared[0]} scheduler={bundle.scheduler_names[0]}:NoSchedule",
            )
        )
    return findings


def _shared_nodes(pods: Sequence[Pod], bundle: Bundle) -> list[str]:
    ours, others = Counter[str](), Counter[str]()
    for pod in pods:
        owner = pod.controller
        if pod.spec.node_name and not pod.is_finished and (owner is None or owner.kind not in ("DaemonSet", "Node")):
            (ours if pod.spec.scheduler_name in bundle.scheduler_names else others)[pod.spec.node_name] += 1
    return sorted(ours.keys() & others.keys())
