"""Ten pods that do not run, and what an operator reads first about each on a running scheduler: why, and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.explain.stage import JsonObject, raw_pod, staged


def raw_node(name: str, **spec: Any) -> JsonObject:
    labels = {"kubernetes.io/hostname": name}
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "20"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def on(node: str) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def with_container(pod: JsonObject, **more: Any) -> JsonObject:
    pod["spec"]["containers"][0] |= more
    return pod


_GPU = {"nvidia.com/gpu": "1"}
_PORT = [{"containerPort": 80, "hostPort": 8080}]
_APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "listens"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
_CLAIM = [{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}]
PODS: dict[str, JsonObject] = {
    "huge": raw_pod("huge", cpu="500"),
    "storage": raw_pod("storage", volumes=_CLAIM),
    "gated": raw_pod("gated", schedulingGates=[{"name": "example.com/review"}]),
    "pinned": raw_pod("pinned", **on("reserved")),
    "picky": raw_pod("picky", nodeSelector={"disktype": "ssd"}),
    "gpu": with_container(raw_pod("gpu"), resources={"requests": _GPU, "limits": _GPU}),
    "lost": raw_pod("lost", schedulerName="nobody"),
    "port": with_container(raw_pod("port", **on("small")), ports=_PORT),
    "apart": raw_pod("apart", affinity=_APART, **on("small")),
    "wide": raw_pod("wide", cpu="2", **on("small")),
}
ANSWERS: dict[str, tuple[str, str]] = {
    "huge": (
        "default/huge is pending: it asks 500 CPU; the largest node has 8 CPU.",
        "The pod asks 500 CPU; the largest node has 8 CPU.",
    ),
    "storage": (
        'default/storage is pending: VolumeRestrictions refuses 3 of 3 nodes: persistentvolumeclaim "data" not found.',
        "if the claim data existed, bound to the volume default-data.",
    ),
    "gated": (
        "default/gated is held back before scheduling by gate `example.com/review`.",
        "if the gate example.com/review was removed.",
    ),
    "pinned": (
        "default/pinned is pending: NodeAffinity refuses 2 of 3 nodes: "
        "node(s) didn't match Pod's node affinity/selector.",
        "It would fit on reserved if the pod tolerated team=a:NoSchedule.",
    ),
    "picky": (
        "default/picky is pending: NodeAffinity refuses 2 of 3 nodes: "
        "node(s) didn't match Pod's node affinity/selector.",
        "had the label disktype=ssd.",
    ),
    "gpu": (
        "default/gpu is pending: no node offers nvidia.com/gpu, and it asks 1 nvidia.com/gpu.",
        "No node offers nvidia.com/gpu; the pod asks 1 nvidia.com/gpu.",
    ),
    "lost": (
        "default/lost waits for the scheduler `nobody`, which is none of ours (`default-scheduler`); "
        "nothing happens unless somebody runs it.",
        "if the pod named the scheduler `default-scheduler`.",
    ),
    "port": (
        "",
        "It would fit on small if default/listens left small; that deletes default/listens, which nobody makes again.",
    ),
    "apart": ("", "It would fit on small if the pod's required anti-affinity were left out."),
    "wide": ("", "It would fit on small if the pod asked 1.9 instead of 2 CPU."),
}


@pytest.mark.parametrize("name", PODS)
async def test_the_reason_comes_first_and_then_the_smallest_thing_that_helps(name: str) -> None:
    taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    listens = with_container(raw_pod("listens", **on("small")), ports=_PORT)
    listens["metadata"]["labels"] = {"app": "listens"}
    async with staged(1) as stage:
        await stage.create(raw_node("reserved", taints=taints), raw_node("small"))
        await stage.create(listens)
        await stage.settled(bound=1)
        await stage.create(PODS[name])
        service, live = stage.explaining.service, stage.local.live
        await stage.until(lambda: live.watching.pod("default", name) is not None)
        await stage.until(lambda: name in ("gated", "lost") or service.recorder.failed_count >= 1)
        explained = service.explain_pod(f"default/{name}")
        changes = await service.changes(f"default/{name}")

    verdict, helps = ANSWERS[name]
    said = [each.sentence for each in changes.suggestions]
    assert explained.verdict == verdict if verdict else explained.verdict.startswith(f"default/{name} is pending: ")
    # A pod that is pinned to its node may be let go of it as well.
    assert [text for text in (said if "nodeSelector" in PODS[name]["spec"] else said[:1]) if text.endswith(helps)], said
