"""What a kubelet writes into a pod's status: running, finished, rejected."""

from __future__ import annotations

import hashlib

from bayplan.apiserver.objects.subresources import set_condition
from bayplan.apiserver.protocol.encoding import Json


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
