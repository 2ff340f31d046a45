"""What `kubectl get` shows: the columns of each kind, computed by the server.

A column is a name and a function of the object and the time. Kinds without columns of their own get Name and Age.
Only presentation lives here; nothing in the store depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bayplan.apiserver.protocol.encoding import Json, parse_timestamp

Cell = str | int | bool | float | None
Compute = Callable[[Json, float], Cell]
NONE = "<none>"
UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table."""

    name: str
    compute: Compute
    type: str = "string"
    wide: bool = False
    """Shown by `-o wide` only."""
    format: str = ""
    description: str = ""

    def definition(self) -> Json:
        described = self.description or f"{self.name} of the object"
        priority = 1 if self.wide else 0
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": described,
            "priority": priority,
        }


def human_duration(seconds: float) -> str:
    """A duration as kubectl writes it: `90s`, `5m30s`, `3h`, `2d4h`."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    years = days // 365
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if years < 2:
        return f"{days}d"
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(text: Any, now: float) -> str:
    return human_duration(now - parse_timestamp(text)) if isinstance(text, str) and text else UNKNOWN


def get(document: Any, *path: str, default: Any = None) -> Any:
    """The value at a path, or `default` where a part is missing."""
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return default
        document = document[part]
    return document


def at(*path: str, default: Cell = "") -> Compute:
    """A column that shows the value at a path."""
    return lambda document, _: get(document, *path, default=default)


def selector_text(selector: Any) -> str:
    """A label selector, or a plain map of labels, as people write it on a command line."""
    if not isinstance(selector, dict) or not selector:
        return NONE
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted(selector.get("matchLabels", {}).items())]
    parts += [_requirement_text(expression) for expression in selector.get("matchExpressions", [])]
    return ",".join(parts) or NONE


def _requirement_text(expression: Json) -> str:
    key, values = str(expression.get("key", "")), ",".join(expression.get("values", []))
    forms = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})"}
    return forms.get(expression.get("operator", ""), key)


def container_columns(*path: str) -> tuple[Column, Column]:
    def joined(field: str) -> Compute:
        return lambda doc, _: ",".join(c.get(field, "") for c in get(doc, *path, "containers", default=[]))

    return Column("Containers", joined("name"), wide=True), Column("Images", joined("image"), wide=True)


NAME = Column("Name", at("metadata", "name"), format="name")
AGE = Column("Age", lambda doc, now: since(get(doc, "metadata", "creationTimestamp"), now))
DEFAULT_COLUMNS = (NAME, AGE)


def _condition(doc: Json, kind: str) -> Json | None:
    for condition in get(doc, "status", "conditions", default=[]):
        if condition.get("type") == kind:
            return dict(condition)
    return None


# ---- pods


def pod_status(doc: Json, _: float) -> str:
    """One word for how a pod is doing, with the same precedence as kubectl."""
    status = doc.get("status", {})
    word = status.get("reason") or status.get("phase") or "Unknown"
    scheduled = _condition(doc, "PodScheduled")
    if scheduled and scheduled.get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    for container in reversed(status.get("containerStatuses", [])):
        word = _container_word(container) or word
    if get(doc, "metadata", "deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(word)


def _container_word(container: Json) -> str:
    waiting = get(container, "state", "waiting", "reason", default="")
    if waiting:
        return str(waiting)
    terminated = get(container, "state", "terminated")
    if not terminated:
        return ""
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _pod_ready(doc: Json, _: float) -> str:
    statuses = get(doc, "status", "containerStatuses", default=[])
    ready = sum(1 for container in statuses if container.get("ready"))
    return f"{ready}/{len(get(doc, 'spec', 'containers', default=[]))}"


def _restarts(doc: Json, _: float) -> str:
    return str(sum(c.get("restartCount", 0) for c in get(doc, "status", "containerStatuses", default=[])))


def _readiness_gates(doc: Json, _: float) -> str:
    gates = get(doc, "spec", "readinessGates", default=[])
    met = sum(1 for gate in gates if (_condition(doc, gate.get("conditionType", "")) or {}).get("status") == "True")
    return f"{met}/{len(gates)}" if gates else NONE


POD = (
    NAME,
    Column("Ready", _pod_ready),
    Column("Status", pod_status),
    Column("Restarts", _restarts),
    AGE,
    Column("IP", lambda doc, _: get(doc, "status", "podIP") or NONE, wide=True),
    Column("Node", lambda doc, _: get(doc, "spec", "nodeName") or NONE, wide=True),
    Column("Nominated Node", lambda doc, _: get(doc, "status", "nominatedNodeName") or NONE, wide=True),
    Column("Readiness Gates", _readiness_gates, wide=True),
)

# ---- nodes


def _node_status(doc: Json, _: float) -> str:
    ready = (_condition(doc, "Ready") or {}).get("status")
    word = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return word + (",SchedulingDisabled" if get(doc, "spec", "unschedulable") else "")


def _node_roles(doc: Json, _: float) -> str:
    prefix, labels = "node-role.kubernetes.io/", get(doc, "metadata", "labels", default={})
    roles = {key[len(prefix) :] for key in labels if key.startswith(prefix) and key != prefix}
    return ",".join(sorted(roles)) or NONE


def _node_address(kind: str) -> Compute:
    def address(doc: Json, _: float) -> str:
        found = (a.get("address") for a in get(doc, "status", "addresses", default=[]) if a.get("type") == kind)
        return str(next(found, NONE) or NONE)

    return address


def _node_info(field: str) -> Compute:
    return lambda doc, _: get(doc, "status", "nodeInfo", field) or UNKNOWN


NODE = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _node_roles),
    AGE,
    Column("Version", lambda doc, _: get(doc, "status", "nodeInfo", "kubeletVersion", default="")),
    Column("Internal-IP", _node_address("InternalIP"), wide=True),
    Column("External-IP", _node_address("ExternalIP"), wide=True),
    Column("OS-Image", _node_info("osImage"), wide=True),
    Column("Kernel-Version", _node_info("kernelVersion"), wide=True),
    Column("Container-Runtime", _node_info("containerRuntimeVersion"), wide=True),
)
