"""Conditions in the status of objects."""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import Json


def set_condition(status: Json, kind: str, value: str, *, now: str, reason: str = "", message: str = "") -> None:
    """Set one condition; its transition time moves only when its value changes."""
    conditions = status.setdefault("conditions", [])
    found = next((condition for condition in conditions if condition.get("type") == kind), None)
    since = now if found is None or found.get("status") != value else found.get("lastTransitionTime", now)
    condition: Json = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    if found is None:
        conditions.append(condition)
    else:
        conditions[conditions.index(found)] = condition
