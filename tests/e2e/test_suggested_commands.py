"""Commands that suggestions come with, run as they are: the API server accepts each, and the pod then gets its node."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bayplan.app.live import LiveScheduler
from bayplan.explain.claims.base import Edit
from bayplan.explain.model import Suggestion
from bayplan.explain.service import ExplainService
from bayplan.observe.clock import SystemClock
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import PodGroup
from bayplan.queue.places import Place
from tests.companions.quotas import CAPACITY
from tests.companions.world import World, configuration
from tests.controlplane.programs import program
from tests.e2e.api_session import PODS, ApiSession, api_session
from tests.e2e.claim_controller import make_claims
from tests.e2e.clusters import Cluster
from tests.e2e.explaining import explaining
from tests.e2e.objects import JsonObject, node, pod
from tests.truth.causes import CAUSES, generate
from tests.truth.documents import SUBJECT, Case
from tests.waiting import answer, until

_COLLECTIONS = {
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "PodGroup": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups",
    "ElasticQuota": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/elasticquotas",
}
_PLUGINS = {
    "": "",
    "Coscheduling": configuration("Coscheduling", disabled=["PrioritySort"]),
    "CapacityScheduling": CAPACITY,
}
_MOST_FOR_A_CAUSE = 4


def manner(edits: list[Edit]) -> tuple[str, ...]:
    """What is changed: kinds of edits with the fields that they touch."""
    return tuple(dict.fromkeys(f"{edit.kind} {' '.join(sorted(_fields(edit.patch)))}".strip() for edit in edits))


def _fields(patch: Mapping[str, Any], depth: int = 3) -> Iterator[str]:
    for name, value in patch.items():
        parts = value if isinstance(value, list) and name in ("containers", "initContainers") else [value]
        for part in parts:
            is_field = not isinstance(part, dict) or depth == 1 or name in ("labels", "nodeSelector")
            if name != "name":
                yield from [name] if is_field else (f"{name}.{rest}" for rest in _fields(part, depth - 1))


async def put(api: ApiSession, case: Case) -> None:
    world = World(api.transport, SystemClock(), lambda: api.transport)
    if case.plugin:
        await world.install(PodGroup, ElasticQuota)
    owners: dict[str, str] = {}
    for item in (*case.nodes, *case.objects):
        kind = item["kind"]
        if kind in _COLLECTIONS:
            await api.call("POST", _COLLECTIONS[kind], item)
        elif kind in _WORKLOADS:
            owners[item["metadata"]["uid"]] = (await api.call("POST", collection_of(kind), item))["metadata"]["uid"]
        else:
            await api.create(item)
    for each in case.pods:
        each["spec"]["terminationGracePeriodSeconds"] = 0
        references = [
            {**reference, "uid": owners[reference["uid"]]} for reference in each["metadata"].get("ownerReferences", ())
        ]
        await api.create({**each, "metadata": {**each["metadata"], "ownerReferences": references}})


async def suggested(live: LiveScheduler, service: ExplainService, key: str = SUBJECT) -> list[Suggestion]:
    """None for a pod that fits as it is."""

    def is_placed() -> bool:
        return any(info.key == key for info in live.cache.pods())

    def is_known() -> bool:
        waits = live.queue.place_of(key) in (Place.GATED, Place.UNSCHEDULABLE, Place.BACKOFF)
        return is_placed() or (waits and not _is_new(live, key))

    await until(is_known, what=f"{key} tried", instead=lambda: live.queue.place_of(key))
    return [] if is_placed() else (await service.changes(key)).suggestions


def _is_new(live: LiveScheduler, key: str) -> bool:
    queued = live.queue.get(key)
    return queued is None or not (queued.attempts or queued.gating_plugin)


def shell(cluster: Cluster, command: str) -> None:
    """As a person pastes it."""
    path = f"{program('kubectl').parent}:{os.environ['PATH']}"
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
    words = ["bash", "-o", "pipefail", "-c", command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


async def node_of(api: ApiSession, name: str) -> str:
    """The node that it has; or will have once its volumes are there, which nobody provides beside a bare API server."""
    found = await api.call("GET", f"{PODS}/{name}", allow=[404])
    return str(found.get("spec", {}).get("nodeName") or found.get("status", {}).get("nominatedNodeName", ""))


async def do(cluster: Cluster, api: ApiSession, suggestion: Suggestion) -> None:
    for command in suggestion.commands:
        await asyncio.to_thread(shell, cluster, command)
    home = await answer(lambda: node_of(api, "subject"), what=f"a node: {suggestion.sentence} {suggestion.commands}")
    assert suggestion.nodes != 1 or home == suggestion.node, suggestion.sentence


_CAUSES: dict[str, list[tuple[str, ...]]] = {
    "taint": [("patchPod spec.tolerations",), ("patchNode spec.taints",)],
    "cordon": [("patchNode spec.unschedulable",)],
    "selector": [("patchNode metadata.labels",), ("patchPod spec.nodeSelector",)],
    "node affinity": [("patchPod spec.affinity.nodeAffinity",)],
    "two causes": [("patchPod spec.nodeSelector spec.tolerations",)],
    "anti-affinity": [("patchPod spec.affinity.podAntiAffinity",)],
    "affinity": [("patchPod spec.affinity.podAffinity",)],
    "kept away": [("patchPod metadata.labels",), ("deletePod",)],
    "spread": [("patchPod spec.topologySpreadConstraints",)],
    "port": [("deletePod",), ("patchPod spec.containers.ports",)],
    "room": [("patchPod spec.containers.resources",), ("deletePod",)],
    "any amounts": [("patchPod spec.containers.resources",)],
    "gate": [("patchPod spec.schedulingGates",)],
    "gate and taint": [("patchPod spec.schedulingGates spec.tolerations",)],
    "pod places": [("deletePod",)],
    "volume": [("create",)],
    "storage class": [("create",)],
    "devices split": [("patchClaim spec.devices.constraints",)],
    "devices refused": [("patchClaim spec.devices.requests",)],
    "no group": [("create",)],
    "gang": [("addPod",)],
    "quota": [("patch spec.max.cpu spec.min.cpu",), ("patch spec.min.cpu",)],
}
"""What is changed at least, by cause."""


@pytest.mark.parametrize("cause", _CAUSES)
async def test_commands_of_suggestions_are_accepted_and_the_pod_gets_its_node(
    cluster: Cluster, programs: None, cause: str
) -> None:
    done: list[tuple[str, ...]] = []
    number = list(CAUSES).index(cause)
    for case in (generate(seed, number) for seed in range(1, 13)):
        while len(done) < _MOST_FOR_A_CAUSE and await _do_another(cluster, case, done):
            cluster.clear()
        if set(_CAUSES[cause]) <= set(done):
            break
        cluster.clear()

    assert set(_CAUSES[cause]) <= set(done), done


async def _do_another(cluster: Cluster, case: Case, done: list[tuple[str, ...]]) -> bool:
    """A suggestion of a manner that was not tried yet; whether there was one."""
    async with api_session(cluster.kubeconfig) as api:
        await put(api, case)
        async with explaining(cluster, _PLUGINS[case.plugin]) as (live, service):
            new = [
                each
                for each in await suggested(live, service)
                if each.commands and not each.how and manner(each.edits) not in done
            ]
            if new:
                done.append(manner(new[0].edits))
                await do(cluster, api, new[0])
            return bool(new)


async def test_a_claim_is_made_with_its_volume_where_no_class_provides_one(cluster: Cluster, programs: None) -> None:
    number = list(CAUSES).index("volume")
    case = next(case for seed in range(1, 40) if not (case := generate(seed, number)).objects)
    async with api_session(cluster.kubeconfig) as api:
        await put(api, case)
        async with explaining(cluster, "") as (live, service):
            first = (await suggested(live, service))[0]
            await do(cluster, api, first)

    assert [edit.object["kind"] for edit in first.edits] == ["PersistentVolume", "PersistentVolumeClaim"]


_WORKLOADS = {
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "ReplicationController": ("v1", "replicationcontrollers"),
    "Job": ("batch/v1", "jobs"),
}


def workload(kind: str, name: str, **metadata: Any) -> JsonObject:
    labels = {"app": "web"}
    selector: JsonObject = {"selector": labels if kind == "ReplicationController" else {"matchLabels": labels}}
    more = {"serviceName": "web"} if kind == "StatefulSet" else {}
    spec = {**pod("web", nodeSelector={"disk": "ssd"})["spec"], "restartPolicy": "Never" if kind == "Job" else "Always"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": _WORKLOADS[kind][0],
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": {**({} if kind == "Job" else selector), **more, "template": template},
    }


def collection_of(kind: str) -> str:
    version, plural = _WORKLOADS[kind]
    return f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/default/{plural}"


def made_by(owner: JsonObject, name: str) -> JsonObject:
    """The pod that a controller makes from the template: there is none beside a bare API server."""
    reference = {name: owner[name] for name in ("apiVersion", "kind")} | {"controller": True}
    reference |= {name: owner["metadata"][name] for name in ("name", "uid")}
    template = owner["spec"]["template"]
    metadata = {"name": name, "labels": template["metadata"]["labels"], "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("kind", _WORKLOADS)
async def test_pods_with_an_owner_are_changed_in_its_template(cluster: Cluster, programs: None, kind: str) -> None:
    async with api_session(cluster.kubeconfig) as api:
        await api.create(node("node-0"))
        owner = await api.call("POST", collection_of(kind), workload(kind, "web"))
        maker = owner
        if kind == "Deployment":
            reference = {"apiVersion": "apps/v1", "kind": kind, "controller": True}
            reference |= {"name": "web", "uid": owner["metadata"]["uid"]}
            replicas = workload("ReplicaSet", "web-abc", ownerReferences=[reference])
            maker = await api.call("POST", collection_of("ReplicaSet"), replicas)
        await api.create(made_by(maker, "subject"))
        async with explaining(cluster) as (live, service):
            found = await suggested(live, service)
            chosen = next(each for each in found if manner(each.edits) == ("patchPod spec.nodeSelector",))
            for command in chosen.commands:
                await asyncio.to_thread(shell, cluster, command)
            after = await api.call("GET", f"{collection_of(kind)}/web")
            await api.create(made_by(after, "another"))
            home = await answer(lambda: node_of(api, "another"), what="a node")

    before, changed = owner["spec"]["template"]["spec"], after["spec"]["template"]["spec"]
    assert changed == {name: part for name, part in before.items() if name != "nodeSelector"}
    assert home == chosen.node == "node-0"


async def test_claims_from_templates_are_changed_in_the_template(cluster: Cluster, programs: None) -> None:
    """The claim was made from a template: both are made anew, and the pod with them."""
    case = generate(1, list(CAUSES).index("devices split"))
    claim = next(item for item in case.objects if item["kind"] == "ResourceClaim")
    case.objects.remove(claim)
    template = {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}
    case.objects.append(template)
    case.pods[-1]["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "wanted"}]
    async with api_session(cluster.kubeconfig) as api:
        await put(api, case)
        await make_claims(api)
        async with explaining(cluster) as (live, service):
            await until(lambda: _attempts(service) and "DynamicResources" in str(_attempts(service)[0].refused))
            found = await suggested(live, service)
            chosen = next(each for each in found if manner(each.edits) == ("patchClaim spec.devices.constraints",))
            for command in chosen.commands:
                await asyncio.to_thread(shell, cluster, command)
            await make_claims(api)
            await answer(lambda: node_of(api, "subject"), what=f"a node: {chosen.commands}")


def _attempts(service: ExplainService) -> list[Any]:
    return service.recorder.of_pod(SUBJECT)
