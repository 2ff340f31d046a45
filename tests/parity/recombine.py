"""New cases out of the golden ones: parts of valid objects put together in ways nobody wrote down.

Nodes and running pods of several cases form one cluster; the pending pod gets its affinity, tolerations, spread
constraints, containers and so on from other pods; the configuration comes from yet another case. Numbers are bent to
odd values. Everything is drawn from a seed, so a difference that was found can be found again.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

Case = dict[str, Any]

_POD_PARTS = (
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "nodeSelector",
    "containers",
    "initContainers",
    "overhead",
    "priority",
    "preemptionPolicy",
    "resources",
    "hostNetwork",
)
_ODD_QUANTITIES = {
    "cpu": ["1m", "7", "333m", "2500m", "0", "99999m", "1500m", "64"],
    "memory": ["1", "128974848", "129e6", "123Mi", "7G", "1Ei", "0", "3333333333", "1500m", "512Ki"],
    "ephemeral-storage": ["1", "10Gi", "999M", "0", "4T"],
    "pods": ["1", "2", "5", "110", "250"],
    "example.com/gpu": ["0", "1", "3", "8"],
    "hugepages-2Mi": ["0", "2Mi", "1Gi"],
}


def recombine(cases: list[Case], seed: int, count: int) -> Iterator[Case]:
    dice = random.Random(seed)
    pool = _Pool(cases)
    for number in range(count):
        yield _make(pool, dice, f"recombined-{seed}-{number:05}")


class _Pool:
    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.configs = [case["config"] for case in cases]
        self.pods = [pod for case in cases for pod in case.get("pods") or [case["pod"]]]
        self.running = [o for case in cases for o in case["objects"] if o["kind"] == "Pod"]
        self.nodes = [o for case in cases for o in case["objects"] if o["kind"] == "Node"]


def _make(pool: _Pool, dice: random.Random, name: str) -> Case:
    base = copy.deepcopy(dice.choice(pool.cases))
    objects = base["objects"]
    nodes = _more_nodes(pool, dice, objects)
    _more_pods(pool, dice, objects, nodes)
    _agree_on_sizes(nodes)
    for node in nodes:
        if dice.random() < 0.15:
            _bend(dice, node["status"]["allocatable"])
    case = {"id": name, "config": base["config"], "objects": objects}
    if dice.random() < 0.5:
        case["config"] = dice.choice(pool.configs)
    pods = base.get("pods") or [base["pod"]]
    for pod in pods:
        _rearrange(pool, dice, pod)
        pod["spec"]["schedulerName"] = _scheduler(dice, case["config"])
    return case | ({"pods": pods} if "pods" in base else {"pod": pods[0]})


def _agree_on_sizes(nodes: list[Case]) -> None:
    """One size for an image name: else the answer depends on which node reported first, which nobody can tell."""
    sizes: dict[str, int] = {}
    for node in nodes:
        for image in node["status"].get("images", []):
            known = [sizes[name] for name in image["names"] if name in sizes]
            image["sizeBytes"] = known[0] if known else image["sizeBytes"]
            sizes.update(dict.fromkeys(image["names"], image["sizeBytes"]))


def _scheduler(dice: random.Random, config: Case) -> str:
    names = [profile.get("schedulerName", "default-scheduler") for profile in config.get("profiles") or [{}]]
    return dice.choice(names)


def _more_nodes(pool: _Pool, dice: random.Random, objects: list[Case]) -> list[Case]:
    nodes = [o for o in objects if o["kind"] == "Node"]
    names = {node["metadata"]["name"] for node in nodes}
    for node in dice.sample(pool.nodes, dice.choice([0, 0, 5, 20, 60])):
        if node["metadata"]["name"] not in names:
            fresh = copy.deepcopy(node)
            fresh["metadata"]["uid"] = f"more-{len(nodes)}"
            names.add(node["metadata"]["name"])
            nodes.append(fresh)
            objects.append(fresh)
    return nodes


def _more_pods(pool: _Pool, dice: random.Random, objects: list[Case], nodes: list[Case]) -> None:
    for number, pod in enumerate(dice.sample(pool.running, dice.choice([0, 10, 40, 120]))):
        if not pod["spec"].get("nodeName"):
            continue
        fresh = copy.deepcopy(pod)
        fresh["metadata"] |= {"name": f"more-{number}", "uid": f"more-pod-{number}"}
        fresh["spec"]["nodeName"] = dice.choice(nodes)["metadata"]["name"]
        fresh["spec"].pop("volumes", None)
        fresh.setdefault("status", {})["startTime"] = (
            f"2026-02-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}:07Z"
        )
        if dice.random() < 0.05:
            fresh["metadata"]["deletionTimestamp"] = "2026-03-01T00:00:00Z"
            fresh["metadata"]["deletionGracePeriodSeconds"] = 30
            fresh["metadata"]["finalizers"] = ["example.com/hold"]
        objects.append(fresh)


def _rearrange(pool: _Pool, dice: random.Random, pod: Case) -> None:
    for part in _POD_PARTS:
        if dice.random() < 0.2:
            donor = dice.choice(pool.pods if dice.random() < 0.7 else pool.running)["spec"]
            pod["spec"].pop(part, None)
            if part in donor:
                pod["spec"][part] = copy.deepcopy(donor[part])
    if dice.random() < 0.2:
        labels = dice.choice(pool.pods)["metadata"].get("labels", {})
        pod["metadata"]["labels"] = copy.deepcopy(labels)
    for container in pod["spec"].get("containers", []):
        requests = container.get("resources", {}).get("requests")
        if requests and dice.random() < 0.15:
            _bend(dice, requests)


def _bend(dice: random.Random, quantities: dict[str, str]) -> None:
    for name in list(quantities):
        if name in _ODD_QUANTITIES and dice.random() < 0.5:
            quantities[name] = dice.choice(_ODD_QUANTITIES[name])
