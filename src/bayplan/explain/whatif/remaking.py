"""What becomes of a pod that is deleted: its controller makes it again, its kubelet runs it on, or it is lost.

A pod that is made again is a pending pod like others: it is scheduled anew, after those as important that wait already.
Which controllers there are is not looked up, since their objects may not be known: the pod's owner reference decides.
"""

from __future__ import annotations

import msgspec

from bayplan.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.pod import Affinity, NodeAffinity, Pod, PodStatus
from bayplan.cluster.pod_info import PodInfo

__all__ = [
    "is_lost",
    "is_made_again",
    "made_again",
    "started_on",
]

_replace = msgspec.structs.replace


def is_made_again(pod: Pod) -> bool:
    """Whether deleting the pod makes its controller create another one; one that ends has its successor already."""
    return pod.controller is not None and not pod.is_of_kubelet and not pod.is_terminating


def is_lost(pod: Pod) -> bool:
    """Whether nobody makes the pod again once it is deleted."""
    return pod.controller is None and not pod.is_of_kubelet and not pod.is_terminating


def made_again(pod: Pod, node: str) -> Pod:
    """The pod that a controller creates in place of one that was deleted on the node.

    It keeps the name, which only some controllers reuse, and the uid, by which the claims made for it know it.
    """
    spec = _replace(pod.spec, node_name="")
    if pod.is_of_daemon_set:
        spec = _replace(spec, affinity=_pinned(pod, node))
    claims = pod.status.resource_claim_statuses
    return _replace(pod, spec=spec, status=PodStatus(phase="Pending", resource_claim_statuses=claims))


def started_on(info: PodInfo, node: str) -> PodInfo | None:
    """The pod that a DaemonSet, or the kubelet, starts on a new node as it did on this pod's; None for other pods."""
    pod = info.pod
    if pod.is_terminating or not (pod.is_of_daemon_set or pod.is_of_kubelet):
        return None
    metadata = _replace(pod.metadata, name=f"{pod.name}-on-{node}", uid=f"{info.uid}-on-{node}")
    return PodInfo(_replace(pod, metadata=metadata), info.shape)


def _pinned(pod: Pod, node: str) -> Affinity:
    """As the DaemonSet controller pins its pods to nodes."""
    here = NodeSelectorTerm(match_fields=[NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])])
    pinned = NodeAffinity(required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=[here]))
    return _replace(pod.spec.affinity or Affinity(), node_affinity=pinned)
