"""What containers do, by the annotations of their pod, and what a kubelet writes into the status of a pod."""

from __future__ import annotations

import hashlib

from bayplan.apiserver.objects.conditions import set_condition
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.kubelets.commands import Course, course_of

RUN_SECONDS = "bayplan.dev/run-seconds"
EXIT_CODE = "bayplan.dev/exit-code"
"""One code, or one for each run, the last of which holds for all that follow."""
STOP_SECONDS = "bayplan.dev/stop-seconds"
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 10.0, 300.0


def lifetime_of(pod: Json, default: float | None) -> float | None:
    """How long the containers of a pod run; None for ever. The default is for pods that may end."""
    seconds = _number(_annotations(pod).get(RUN_SECONDS))
    if seconds is not None or pod["spec"].get("restartPolicy") == "Always":
        return seconds
    courses = _courses(pod)
    if courses is None:
        return default
    lasting = [course.seconds for course in courses]
    return None if None in lasting else max(seconds for seconds in lasting if seconds is not None)


def exit_code_of(pod: Json) -> int:
    """How the current run of a pod ends."""
    if EXIT_CODE not in _annotations(pod):
        return max((course.exit_code for course in _courses(pod) or ()), default=0)
    codes = [_number(text) or 0 for text in _annotations(pod).get(EXIT_CODE, "0").split(",")]
    return int(codes[min(_restart_count(pod), len(codes) - 1)])


def _courses(pod: Json) -> list[Course] | None:
    """What each container does by its command, or None if that is not known of all."""
    courses = [course_of(container) for container in pod["spec"].get("containers") or ()]
    known = [course for course in courses if course is not None]
    return known if known and len(known) == len(courses) else None


def stop_seconds_of(pod: Json, default: float) -> float:
    """How long containers take to stop, preStop sleeps included."""
    seconds = _number(_annotations(pod).get(STOP_SECONDS))
    hooks = [(one.get("lifecycle") or {}).get("preStop") or {} for one in pod["spec"].get("containers") or ()]
    sleep = max(((hook.get("sleep") or {}).get("seconds", 0) for hook in hooks), default=0)
    return float(sleep) + (default if seconds is None else seconds)


def restarts(pod: Json, exit_code: int) -> bool:
    """Whether containers are started again by the restart policy; with `Always`, only where each run has its code."""
    policy = pod["spec"].get("restartPolicy")
    return (policy == "OnFailure" and exit_code != 0) or (
        policy == "Always" and "," in _annotations(pod).get(EXIT_CODE, "")
    )


def restart_delay(pod: Json) -> float:
    """The back-off before the next restart: none the first time, then doubled from ten seconds up."""
    count = _restart_count(pod)
    return min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** min(count - 1, 10)) if count else 0.0


def _annotations(pod: Json) -> Json:
    return pod["metadata"].get("annotations") or {}


def _restart_count(pod: Json) -> int:
    return max((one.get("restartCount", 0) for one in pod["status"].get("containerStatuses") or ()), default=0)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


# ---- status


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


def set_waiting(pod: Json, *, now: str, exit_code: int, delay: float) -> None:
    """The containers have ended and will be started again."""
    status = pod["status"]
    for condition in ("Ready", "ContainersReady"):
        set_condition(status, condition, "False", now=now, reason="ContainersNotReady")
    for container in status.get("containerStatuses") or ():
        started = (container.get("state", {}).get("running") or {}).get("startedAt", now)
        reason = "Error" if exit_code else "Completed"
        ended = {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now}
        container["lastState"] = {"terminated": ended | {"containerID": container.get("containerID", "")}}
        message = f"back-off {delay:.0f}s restarting failed container={container['name']}"
        container["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        container["ready"] = container["started"] = False


def set_restarted(pod: Json, *, now: str) -> None:
    status = pod["status"]
    for condition in ("Ready", "ContainersReady"):
        set_condition(status, condition, "True", now=now)
    for container in status.get("containerStatuses") or ():
        container |= {"state": {"running": {"startedAt": now}}, "ready": True, "started": True}
        container["restartCount"] += 1


def set_synced(pod: Json, *, now: str, pending: str, message: str) -> None:
    """The status after a change of the spec; `pending` is the reason why new resources cannot be had yet."""
    status, spec, uid = pod["status"], pod["spec"], pod["metadata"]["uid"]
    status["observedGeneration"] = pod["metadata"].get("generation", 1)
    status["conditions"] = [one for one in status.get("conditions") or () if one["type"] != "PodResizePending"]
    if pending:
        set_condition(status, "PodResizePending", "True", now=now, reason=pending, message=message)
    else:
        resources = {one["name"]: one.get("resources") or {} for one in spec["containers"]}
        for container in status.get("containerStatuses") or ():
            container |= _resources(resources.get(container["name"], {}))
    known = {one["name"]: one for one in status.get("ephemeralContainerStatuses") or ()}
    running = {"running": {"startedAt": now}}
    added = [one for one in spec.get("ephemeralContainers") or () if one["name"] not in known]
    if added:
        new = [_container_status(one, uid, running, is_ready=False) for one in added]
        status["ephemeralContainerStatuses"] = [*known.values(), *new]


def _resources(resources: Json) -> Json:
    """The resources of a container as its status shows them."""
    allocated = {"allocatedResources": resources["requests"]} if resources.get("requests") else {}
    return allocated | ({"resources": resources} if resources else {})


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
    } | _resources(container.get("resources") or {})
