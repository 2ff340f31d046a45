"""The five write-ups: their YAML, as published, on the embedded cluster and on a real kube-apiserver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.pod import Pod
from bayplan.app.live import LiveScheduler
from bayplan.deploy.crds import crd_documents
from bayplan.loop.decide import decide
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from bayplan.testing import build
from bayplan.testing.outcome import outcome_of
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.objects import node
from tests.e2e.running import RunSettings, scheduling, settled
from tests.e2e.servers import Server
from tests.waiting import answer

EXAMPLES = Path(__file__).parents[2] / "examples" / "references"


@pytest.fixture
def server(cluster: Cluster, programs: None) -> Server:
    return Server(cluster.kubeconfig)


def _settings(reference: str) -> RunSettings:
    return RunSettings(config=(EXAMPLES / reference / "scheduler.yaml").read_text())


def _scores(live: LiveScheduler, pod: Pod, plugin: str) -> dict[str, int]:
    """What a plugin gives each node for a pod, 0 to 100, as the live scheduler decides at this moment."""
    decider = live.profiles[pod.spec.scheduler_name].decider
    decision = decide(replace(decider, explains=True, always_score=True), live.cache.info(pod))
    outcome = outcome_of(pod, decision, decider.framework)
    return {name: scores[plugin] for name, scores in outcome.scores.items()}


async def _until(question: Callable[[], Awaitable[Any]], what: str) -> Any:
    return await answer(question, what=what)


async def _node_of(api: ApiSession, name: str) -> str:
    async def bound() -> str:
        return str((await api.pod(name))["spec"].get("nodeName") or "")

    return str(await _until(bound, f"binding of {name}"))


async def _reason(api: ApiSession, name: str) -> str:
    async def message() -> str:
        conditions = (await api.pod(name))["status"].get("conditions") or []
        return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")

    return str(await _until(message, f"a reason of {name}"))


async def test_the_block_all_pod_stays_pending_with_its_reason(server: Server) -> None:
    async with api_session(server.kubeconfig) as api, scheduling(server.kubeconfig, _settings("block-all")):
        await api.create(node("n1"), node("n2"))
        await server.apply(EXAMPLES / "block-all/rbac.yaml")
        await server.apply(EXAMPLES / "block-all/pod.yaml")

        reason = await _reason(api, "blocked")

        assert "Pod default/blocked blocked by BlockAllScheduler" in reason
        assert not (await api.pod("blocked"))["spec"].get("nodeName")


async def test_the_name_score_picks_the_predicted_node(server: Server) -> None:
    async with api_session(server.kubeconfig) as api, scheduling(server.kubeconfig, _settings("name-score")) as live:
        await api.create(*(node(name) for name in ("k8s-master01", "k8s-node01", "k8s-node02")))
        await settled(live, api)
        await server.apply(EXAMPLES / "name-score/pod.yaml")

        assert await _node_of(api, "busybox-test-scheduler") == "k8s-node02"


async def test_a_role_that_is_cut_out_of_a_larger_one_is_refused_with_the_line(server: Server) -> None:
    said = await server.apply(EXAMPLES / "name-score/role-fragment.yaml", check=False)

    assert "error" in said.lower()


async def test_labels_1_5_10_score_10_50_100_and_the_pod_goes_to_10(server: Server) -> None:
    settings = _settings("score-by-label")
    async with api_session(server.kubeconfig) as api, scheduling(server.kubeconfig, settings) as live:
        await api.create(node("node-1"), node("node-5"), node("node-10"))
        await server.kubectl("create", "namespace", "scorebylabel")
        await server.apply(EXAMPLES / "score-by-label/configmap.yaml")
        await server.apply(EXAMPLES / "score-by-label/deployment.yaml")
        for score in ("1", "5", "10"):
            await server.kubectl("label", "node", f"node-{score}", f"score-by-label={score}")
        await settled(live, api)
        await server.apply(EXAMPLES / "score-by-label/pod.yaml")

        assert await _node_of(api, "testpod") == "node-10"
        scores = _scores(live, build.pod("another", scheduler="scorebylabel"), "ScoreByLabel")
        assert scores == {"node-1": 10, "node-5": 50, "node-10": 100}


async def test_each_pod_carries_its_nanosecond_timestamp(server: Server) -> None:
    async with api_session(server.kubeconfig) as api, scheduling(server.kubeconfig, _settings("timestamp")) as live:
        await api.create(node("n1"), node("n2"))
        await settled(live, api)
        for name in ("first", "second", "third"):
            await server.kubectl("run", name, "--image=busybox:1.35.0", "--restart=Never")
        pods = []
        for name in ("first", "second", "third"):
            assert await _node_of(api, name)
            pods.append(await api.pod(name))

    stamps = [pod["metadata"]["annotations"]["scheduler-timestamp"] for pod in pods]
    assert all(len(stamp) == 19 and stamp.isdecimal() for stamp in stamps)
    assert stamps == sorted(stamps)


async def test_nodes_without_an_object_are_refused_until_there_are_objects(server: Server) -> None:
    """Also: the definition may come after the scheduler, which neither fails nor hangs."""
    names = ("aaa", "bbb", "ccc", "ddd", "eee", "fff")
    text = (EXAMPLES / "node-crd/clusterscopedresources.yaml").read_text()
    async with api_session(server.kubeconfig) as api, scheduling(server.kubeconfig, _settings("node-crd")) as live:
        await api.create(*(node(name) for name in names))
        await server.apply(EXAMPLES / "node-crd/pod.yaml")
        assert "6 CRD for node not found" in await _reason(api, "nginx")
        assert any("is not installed" in problem for problem in live.custom_resources.problems())

        await server.apply(yaml.safe_dump_all(crd_documents([ClusterScopedResource])))
        await server.kubectl("wait", "--for=condition=Established", "crd/clusterscopedresources.scheduling.sigs.k8s.io")
        refused = await server.apply(text, check=False)
        assert "REPLACE_ME_WITH_NODE_NAME" in refused and "lowercase RFC 1123 subdomain" in refused
        first, second = text.replace("REPLACE_ME_WITH_NODE_NAME", "eee", 1).split("---")[1:]
        await server.apply(first + "---" + second.replace("REPLACE_ME_WITH_NODE_NAME", "fff"))

        assert await _node_of(api, "nginx") in ("eee", "fff")
        another = build.pod("another", scheduler="secondary-scheduler", requests={"company.net/memory": "1Mi"})
        assert _scores(live, another, "NodeCRDResourceFit") == {"eee": 55, "fff": 55}


async def test_an_object_that_does_not_fit_its_type_is_skipped_by_name(server: Server) -> None:
    """A definition with a looser schema lets it through; the scheduler must not."""
    [definition] = crd_documents([ClusterScopedResource])
    version = definition["spec"]["versions"][0]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    broken = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ClusterScopedResources",
        "metadata": {"name": "odd"},
        "spec": {"resourcesFilter": "all of them"},
    }
    good = {**broken, "metadata": {"name": "eee"}, "spec": {"resourcesFilter": {"company.net/memory": True}}}
    await server.apply(definition)
    await server.kubectl("wait", "--for=condition=Established", "crd/clusterscopedresources.scheduling.sigs.k8s.io")
    await server.apply(broken)
    await server.apply(good)
    async with api_session(server.kubeconfig) as api, scheduling(server.kubeconfig, _settings("node-crd")) as live:
        await api.create(node("odd"), node("eee"))
        await server.apply(EXAMPLES / "node-crd/pod.yaml")

        assert await _node_of(api, "nginx") == "eee"
        [problem] = live.custom_resources.problems()
        assert problem.startswith("ClusterScopedResources `odd` is skipped")
