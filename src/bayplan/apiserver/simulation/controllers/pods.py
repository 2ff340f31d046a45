"""What workload controllers do with pods: making them from a template, counting them, choosing which to remove."""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import Json, JsonValue, decode_object, encode, parse_timestamp
from bayplan.apiserver.storage.store import Key


def key_of(document: Json) -> Key:
    metadata = document["metadata"]
    return (metadata.get("namespace", ""), metadata["name"])


def copy_of(document: JsonValue) -> JsonValue:
    """An independent copy of a JSON value."""
    return decode_object(encode(document))


def owner_reference(owner: Json) -> Json:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(template: Json, owner: Json, *, name: str = "", labels: Json | None = None) -> Json:
    """A pod of a workload; without a name it gets one generated from the owner's."""
    given = template.get("metadata") or {}
    metadata: Json = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "ownerReferences": [owner_reference(owner)],
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner['metadata']['name']}-"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy_of(template.get("spec") or {})}


def is_terminating(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", ""))


def is_active(pod: Json) -> bool:
    return not is_terminating(pod) and phase(pod) not in ("Succeeded", "Failed")


def ready_since(pod: Json) -> float | None:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            return parse_timestamp(condition.get("lastTransitionTime", ""))
    return None


def is_ready(pod: Json) -> bool:
    return ready_since(pod) is not None


def is_available(pod: Json, min_ready_seconds: int, now: float) -> bool:
    since = ready_since(pod)
    return since is not None and since + min_ready_seconds <= now


def first_to_remove(pods: list[Json]) -> list[Json]:
    """Pods in the order in which a shrinking workload gives them up: unassigned, pending, unready, cheap, young."""

    def rank(pod: Json) -> tuple[bool, int, bool, int, float, str]:
        cost = (pod["metadata"].get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "0")
        try:
            price = int(cost)
        except ValueError:
            price = 0
        assigned = bool(pod["spec"].get("nodeName"))
        order = {"Pending": 0, "": 0, "Unknown": 1, "Running": 2}.get(phase(pod), 2)
        age = -parse_timestamp(pod["metadata"].get("creationTimestamp", ""))
        return (assigned, order, is_ready(pod), price, age, pod["metadata"]["name"])

    return sorted(pods, key=rank)
