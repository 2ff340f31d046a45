"""A thousand pods of ten shapes on two hundred nodes, and what must be true of each shape once they are placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.e2e.objects import (
    HOSTNAME,
    ZONE,
    JsonObject,
    claim,
    node,
    node_terms,
    pod,
    pod_term,
    priority_class,
    spread,
    storage_class,
    volume,
)

DB_TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
DB_TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}
SHAPES = ("plain", "ssd", "db", "hard", "soft", "lonely", "friend", "port", "urgent", "disk")


def nodes(count: int) -> list[JsonObject]:
    """Three zones, every other node with an SSD, every tenth for databases only."""
    return [_node(i) for i in range(count)]


def _node(i: int) -> JsonObject:
    labels = {ZONE: f"zone-{i % 3}", "disk": "ssd" if i % 2 else "hdd"}
    if i % 10 == 0:
        return node(f"node-{i:03}", labels={**labels, "pool": "db"}, taints=[DB_TAINT])
    return node(f"node-{i:03}", labels=labels)


def base(node_names: list[str], disks: int) -> list[JsonObject]:
    """Classes and volumes; the even volumes are promised to a claim, the odd ones wait for a pod."""
    made = [priority_class("urgent", 1000), storage_class("bound", waits=False), storage_class("waits", waits=True)]
    for i in range(disks):
        homes = [node_names[(i * 7 + j) % len(node_names)] for j in range(1, 4) if (i * 7 + j) % 10]
        kind = "waits" if i % 2 else "bound"
        made.append(volume(f"pv-{i}", storage_class=kind, node_names=homes, claim="" if i % 2 else f"claim-{i}"))
        made.append(claim(f"claim-{i}", storage_class=kind, volume_name="" if i % 2 else f"pv-{i}"))
    return made


def pods(of_each: int, **spec: str) -> Iterator[JsonObject]:
    for i in range(of_each):
        for shape in SHAPES:
            yield shaped(shape, i, **spec)


def shaped(shape: str, i: int, **spec: str) -> JsonObject:
    """The i-th pod of a shape."""
    more: JsonObject = dict(spec)
    if shape == "ssd":
        preferred = {"weight": 10, "preference": node_terms(ZONE, "zone-1")["nodeSelectorTerms"][0]}
        required = node_terms("disk", "ssd")
        more["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
            }
        }
    elif shape == "db":
        more |= {"tolerations": [DB_TOLERATION], "nodeSelector": {"pool": "db"}}
    elif shape in ("hard", "soft"):
        more["topologySpreadConstraints"] = [spread(ZONE if shape == "hard" else HOSTNAME, shape, hard=shape == "hard")]
    elif shape == "lonely":
        term = pod_term(HOSTNAME, "lonely")
        more["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif shape == "friend":
        term = pod_term(ZONE, "friend")
        more["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif shape == "port":
        more["ports"] = [8080]
    elif shape == "urgent":
        more["priorityClassName"] = "urgent"
    elif shape == "disk":
        more["claims"] = [f"claim-{i}"]
    cpu = f"{50 + 25 * (i % 5)}m"
    return pod(f"{shape}-{i}", cpu=cpu, memory="64Mi", labels={"app": shape}, **more)


def broken_promises(
    node_list: list[JsonObject], pod_list: list[JsonObject], volume_list: list[JsonObject]
) -> list[str]:
    """A sentence for everything that a pod asked for and did not get, worked out from the API objects alone."""
    labels = {n["metadata"]["name"]: n["metadata"]["labels"] for n in node_list}
    places: dict[str, list[str]] = {shape: [] for shape in SHAPES}
    for item in pod_list:
        places[item["metadata"]["labels"]["app"]].append(item["spec"]["nodeName"])
    problems = [f"ssd pod on {name}" for name in places["ssd"] if labels[name]["disk"] != "ssd"]
    problems += [f"db pod on {name}" for name in places["db"] if labels[name].get("pool") != "db"]
    db = {name for name in labels if labels[name].get("pool") == "db"}
    problems += [f"{shape} pod on a db node" for shape in SHAPES if shape != "db" and db & set(places[shape])]
    zones = Counter(labels[name][ZONE] for name in places["hard"])
    if places["hard"] and max(zones.values()) - min(zones.get(f"zone-{z}", 0) for z in range(3)) > 1:
        problems.append(f"hard spread is {zones}")
    problems += [f"{n} lonely pods on {name}" for name, n in Counter(places["lonely"]).items() if n > 1]
    if len({labels[name][ZONE] for name in places["friend"]}) > 1:
        problems.append("friends are in more than one zone")
    return problems + _disk_problems(pod_list, volume_list)


def _disk_problems(pod_list: list[JsonObject], volume_list: list[JsonObject]) -> list[str]:
    homes = {}
    for item in volume_list:
        terms = item["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        if "claimRef" in item["spec"]:
            homes[item["spec"]["claimRef"]["name"]] = terms[0]["matchExpressions"][0]["values"]
    problems = []
    for item in pod_list:
        for each in item["spec"].get("volumes") or ():
            name = each["persistentVolumeClaim"]["claimName"]
            if item["spec"]["nodeName"] not in homes.get(name, ()):
                problems.append(
                    f"{item['metadata']['name']} on {item['spec']['nodeName']}, volume on {homes.get(name)}"
                )
    return problems
