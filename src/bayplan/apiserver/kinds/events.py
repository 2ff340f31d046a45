"""Events have two shapes, core/v1 and events.k8s.io/v1, over the same stored objects.

Stored in the core shape; these functions turn one into the other without losing fields.
"""

from __future__ import annotations

from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause

# events.k8s.io name on the left, core name on the right.
_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: renamed for renamed, core in _RENAMED.items()}
_NAMESPACE_OF_CLUSTER_OBJECTS = "default"


def to_core(document: Json) -> Json:
    renamed = {_RENAMED.get(name, name): value for name, value in document.items()}
    renamed["apiVersion"] = "v1"
    return renamed


def from_core(document: Json) -> Json:
    renamed = {_BACK.get(name, name): value for name, value in document.items()}
    renamed["apiVersion"] = "events.k8s.io/v1"
    return renamed


def validate_core_event(document: Json, old: Json | None) -> list[Cause]:
    return _namespace_matches(document, document.get("involvedObject") or {}, "involvedObject.namespace")


def validate_event(document: Json, old: Json | None) -> list[Cause]:
    if old is not None:
        return []
    causes = _namespace_matches(document, document.get("regarding") or {}, "regarding.namespace")
    for name in ("eventTime", "reportingController", "reportingInstance", "action", "reason"):
        if not document.get(name):
            causes.append(errors.required(name))
    if document.get("type") not in ("Normal", "Warning"):
        causes.append(errors.invalid_value("type", document.get("type", ""), "has invalid value: "))
    if len(document.get("note", "")) > 1024:
        causes.append(errors.invalid_value("note", "", "can have at most 1024 characters"))
    return causes


def _namespace_matches(document: Json, target: Json, field: str) -> list[Cause]:
    """An event with a time may be about an object of another namespace; those of older clients may not."""
    mine, theirs = document["metadata"].get("namespace", ""), target.get("namespace", "")
    if document.get("eventTime"):
        fits = theirs or mine in (_NAMESPACE_OF_CLUSTER_OBJECTS, "kube-system")
    else:
        fits = mine == (theirs or _NAMESPACE_OF_CLUSTER_OBJECTS)
    if fits:
        return []
    return [errors.invalid_value(field, theirs, "does not match event.namespace")]
