"""What a kubelet writes into a pod's status: running, finished, rejected."""

from __future__ import annotations

import hashlib
from decimal import Decimal

from bayplan.apiserver.objects.subresources import set_condition
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.quantity import BadQuantity, parse_quantity

Amounts = dict[str, Decimal]


def pod_requests(spec: Json) -> Amounts:
    """What a pod takes from its node: containers and sidecars together, or the largest init container."""
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = _requests(container)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, amounts)
            peak = _largest(peak, running)
        else:
            peak = _largest(peak, _sum(running, amounts))
    for container in spec.get("containers") or ():
        running = _sum(running, _requests(container))
    total = _largest(peak, running)
    whole_pod = (spec.get("resources") or {}).get("requests") or {}
    total |= {name: _amount(text) for name, text in whole_pod.items()}
    overhead = {name: _amount(text) for name, text in (spec.get("overhead") or {}).items()}
    return _sum(_sum(total, overhead), {"pods": Decimal(1)})


def _requests(container: Json) -> Amounts:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: _amount(text) for name, text in requests.items()}


def _amount(text: object) -> Decimal:
    try:
        return parse_quantity(str(text))
    except BadQuantity:
        return Decimal(0)


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, Decimal(0)) + right.get(name, Decimal(0)) for name in (*left, *right)}


def _largest(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, Decimal(0)), right.get(name, Decimal(0))) for name in (*left, *right)}


def allocatable(node: Json) -> Amounts:
    status = node.get("status") or {}
    found = status.get("allocatable") or status.get("capacity") or {}
    return {name: _amount(text) for name, text in found.items()}


def lacking(requests: Amounts, used: Amounts, room: Amounts) -> str:
    """The first resource of which a node has too little, or nothing."""
    for name in sorted(requests):
        if requests[name] > 0 and used.get(name, Decimal(0)) + requests[name] > room.get(name, Decimal(0)):
            return name
    return ""


def set_running(pod: Json, *, now: str, pod_ip: str, node_ip: str) -> None:
    status = pod.setdefault("status", {})
    status["phase"] = "Running"
    status["observedGeneration"] = pod["metadata"].get("generation", 1)
    status["startTime"] = now
    status["hostIP"] = node_ip
    status["hostIPs"] = [{"ip": node_ip}]
    status["podIP"] = pod_ip
    status["podIPs"] = [{"ip": pod_ip}]
    for condition in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"):
        set_condition(status, condition, "True", now=now)
    uid = pod["metadata"]["uid"]
    status["containerStatuses"] = [
        _container_status(container, uid, {"running": {"startedAt": now}}, is_ready=True)
        for container in pod["spec"]["containers"]
    ]
    if pod["spec"].get("initContainers"):
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        status["initContainerStatuses"] = [
            _container_status(container, uid, done, is_ready=True) for container in pod["spec"]["initContainers"]
        ]


def set_finished(pod: Json, *, now: str, exit_code: int) -> None:
    status = pod.setdefault("status", {})
    status["phase"] = "Failed" if exit_code else "Succeeded"
    reason = "Error" if exit_code else "Completed"
    for condition in ("Ready", "ContainersReady"):
        set_condition(status, condition, "False", now=now, reason="PodFailed" if exit_code else "PodCompleted")
    for container in status.get("containerStatuses") or ():
        started = (container.get("state", {}).get("running") or {}).get("startedAt", now)
        ended = {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now}
        container["state"] = {"terminated": ended | {"containerID": container.get("containerID", "")}}
        container["ready"] = container["started"] = False


def set_rejected(pod: Json, *, now: str, reason: str, message: str) -> None:
    status = pod.setdefault("status", {})
    status |= {"phase": "Failed", "reason": reason, "message": message, "startTime": now}


def _container_status(container: Json, uid: str, state: Json, *, is_ready: bool) -> Json:
    image = container.get("image", "")
    digest = hashlib.sha256(image.encode()).hexdigest()
    identity = hashlib.sha256(f"{uid}/{container['name']}".encode()).hexdigest()
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"{image.partition(':')[0]}@sha256:{digest}",
        "containerID": f"containerd://{identity}",
        "ready": is_ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
