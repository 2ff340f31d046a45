"""Generated clusters with volumes: claims that are missing, unbound, elsewhere, in use, or one too many."""

from __future__ import annotations

import random
from typing import Any

from tests.truth.documents import Case, JsonObject, pod

__all__ = ["VOLUME_CAUSES"]

_DRIVER = "example.com/disk"
_ZONE = "topology.kubernetes.io/zone"


def _class(name: str, mode: str, **more: Any) -> JsonObject:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**head, "provisioner": _DRIVER, "volumeBindingMode": mode, **more}


def _claim(name: str, storage_class: str, *, volume: str = "", mode: str = "ReadWriteOnce") -> JsonObject:
    made: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
        },
    }
    if volume:
        made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        made["spec"]["volumeName"] = volume
        made["status"] = {"phase": "Bound"}
    return made


def _disk(name: str, *, claim: str = "", zone: str = "", storage_class: str = "", mode: str = "ReadWriteOnce") -> Any:
    spec: JsonObject = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "csi": {"driver": _DRIVER, "volumeHandle": name},
        "storageClassName": storage_class,
    }
    if claim:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim}
    if zone:
        expression = {"key": _ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    status = {"phase": "Bound" if claim else "Available"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }


def _uses(*names: str) -> list[JsonObject]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def _missing(chance: random.Random, case: Case) -> None:
    if chance.random() < 0.6:
        case.objects.append(_class("standard", "WaitForFirstConsumer"))
    case.pods.append(pod("subject", volumes=_uses("data")))


def _no_class(chance: random.Random, case: Case) -> None:
    """The claim names a class that nobody made."""
    _missing(chance, case)
    case.objects.append(_claim("data", "fast"))


def _elsewhere(chance: random.Random, case: Case) -> None:
    """The claim is bound to a volume in a zone that has no node, or none that takes the pod."""
    zone = chance.choice(("zone-x", "zone-a"))
    if zone == "zone-a":
        for node in case.nodes[::3]:
            node["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    case.objects += [_disk("disk", claim="data", zone=zone), _claim("data", "", volume="disk")]
    case.pods.append(pod("subject", cpu="50m", volumes=_uses("data")))


def _bound(chance: random.Random, case: Case) -> None:
    """Bound in a zone that has nodes: these are the ones that fit."""
    zone = chance.choice(case.nodes)["metadata"]["labels"][_ZONE]
    case.objects += [_disk("disk", claim="data", zone=zone), _claim("data", "", volume="disk")]
    case.pods.append(pod("subject", cpu="50m", volumes=_uses("data")))


def _immediate(chance: random.Random, case: Case) -> None:
    """Nobody has bound a claim of a class that binds at once."""
    case.objects += [_class("now", "Immediate", provisioner="kubernetes.io/no-provisioner"), _claim("data", "now")]
    case.pods.append(pod("subject", cpu="50m", volumes=_uses("data")))


def _first_consumer(chance: random.Random, case: Case) -> None:
    """A disk in one zone waits for its first consumer, or a class provides in some zones only."""
    zone = chance.choice(("zone-a", "zone-b", "zone-x"))
    if chance.random() < 0.5:
        case.objects.append(_class("static", "WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner"))
        case.objects.append(_disk("disk", zone=zone, storage_class="static"))
        case.objects.append(_claim("data", "static"))
    else:
        topology = [{"matchLabelExpressions": [{"key": _ZONE, "values": [zone]}]}]
        case.objects.append(_class("zonal", "WaitForFirstConsumer", allowedTopologies=topology))
        case.objects.append(_claim("data", "zonal"))
    case.pods.append(pod("subject", cpu="50m", volumes=_uses("data")))


def _limits(chance: random.Random, case: Case) -> None:
    """As many volumes are attached as the driver allows on each node, or on all but one."""
    spared = chance.choice((None, case.nodes[-1]["metadata"]["name"]))
    for place, node in enumerate(case.nodes):
        name = node["metadata"]["name"]
        driver = {"name": _DRIVER, "nodeID": name, "allocatable": {"count": 1}}
        head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}}
        case.objects.append({**head, "spec": {"drivers": [driver]}})
        if name != spared:
            case.objects += [
                _disk(f"disk-{place}", claim=f"data-{place}"),
                _claim(f"data-{place}", "", volume=f"disk-{place}"),
            ]
            case.pods.append(pod(f"attaches-{place}", cpu="50m", node=name, volumes=_uses(f"data-{place}")))
    case.objects += [_disk("disk", claim="data"), _claim("data", "", volume="disk")]
    case.pods.append(pod("subject", cpu="50m", volumes=_uses("data")))


def _exclusive(chance: random.Random, case: Case) -> None:
    """Another pod uses a claim that one pod may use."""
    mode = "ReadWriteOncePod"
    case.objects += [_disk("disk", claim="data", mode=mode), _claim("data", "", volume="disk", mode=mode)]
    home = chance.choice(case.nodes)["metadata"]["name"]
    case.pods.append(pod("owner", cpu="50m", node=home, volumes=_uses("data")))
    case.pods.append(pod("subject", cpu="50m", volumes=_uses("data")))


VOLUME_CAUSES = {
    "volume": _missing,
    "storage class": _no_class,
    "volume elsewhere": _elsewhere,
    "volume bound": _bound,
    "volume immediate": _immediate,
    "volume of first consumer": _first_consumer,
    "volume limits": _limits,
    "volume in use": _exclusive,
}
