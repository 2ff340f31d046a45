"""Clients that people use, unchanged: the official Python client and kr8s, against the embedded server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kr8s
import pytest
import yaml
from kubernetes import client, config, watch
from kubernetes.dynamic import DynamicClient

from tests.apiconformance.embedded import EmbeddedThread


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    embedded = EmbeddedThread()
    embedded.start()
    path = tmp_path_factory.mktemp("clients") / "kubeconfig"
    path.write_text(yaml.safe_dump(embedded.cluster.kubeconfig()))
    yield path
    embedded.stop()


@pytest.fixture(scope="module")
def official(kubeconfig: Path) -> Iterator[Any]:
    api_client = config.new_client_from_config(str(kubeconfig))
    yield api_client
    api_client.close()


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example/app:1", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container]}}


def test_the_official_client_creates_reads_lists_patches_and_deletes(official: Any) -> None:
    core = client.CoreV1Api(official)
    created = core.create_namespaced_pod("default", pod("one"))
    assert created.spec.scheduler_name == "default-scheduler"
    assert core.read_namespaced_pod("one", "default").metadata.uid == created.metadata.uid
    found = core.list_namespaced_pod("default", label_selector="app=one", field_selector="status.phase=Pending")
    assert [item.metadata.name for item in found.items] == ["one"]
    patched = core.patch_namespaced_pod("one", "default", {"metadata": {"labels": {"x": "y"}}})
    assert patched.metadata.labels["x"] == "y"
    core.delete_namespaced_pod("one", "default")
    with pytest.raises(client.ApiException) as raised:
        core.read_namespaced_pod("one", "default")

    assert raised.value.status == 404


def test_the_official_client_binds_a_pod(official: Any) -> None:
    core = client.CoreV1Api(official)
    core.create_namespaced_pod("default", pod("bound"))
    target = client.V1ObjectReference(api_version="v1", kind="Node", name="n1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="bound"), target=target)
    core.create_namespaced_pod_binding("bound", "default", binding, _preload_content=False)

    assert core.read_namespaced_pod("bound", "default").spec.node_name == "n1"


def test_the_official_client_watches(official: Any) -> None:
    core = client.CoreV1Api(official)
    version = core.list_namespaced_config_map("default").metadata.resource_version
    later = threading.Timer(
        0.1, lambda: client.CoreV1Api(official).create_namespaced_config_map("default", {"metadata": {"name": "seen"}})
    )
    later.start()
    stream = watch.Watch()
    events = stream.stream(core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=10)
    event = next(iter(events))
    stream.stop()
    later.join()

    assert (event["type"], event["object"].metadata.name) == ("ADDED", "seen")


def test_the_official_dynamic_client_discovers_and_applies(official: Any) -> None:
    dynamic = DynamicClient(official)
    deployments = dynamic.resources.get(api_version="apps/v1", kind="Deployment")
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example/app:1"}]}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    applied = deployments.server_side_apply(body=body, name="web", namespace="default", field_manager="me")

    assert applied.spec.replicas == 1
    assert [item.metadata.name for item in deployments.get(namespace="default").items] == ["web"]


@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")  # it was released before this version was
async def test_kr8s_creates_lists_watches_and_deletes(kubeconfig: Path) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    assert (await api.version())["minor"] == "36"
    body = {"apiVersion": "v1", "kind": "Pod", **pod("kr8s")}
    body["metadata"]["namespace"] = "default"
    created = await kr8s.asyncio.objects.Pod(body, api=api)
    await created.create()
    names = [one.name async for one in api.get("pods", namespace="default", label_selector="app=kr8s")]
    assert names == ["kr8s"]
    async with asyncio.timeout(90):
        async for event, found in api.watch("pods", namespace="default", label_selector="app=kr8s"):
            assert (event, found.name) == ("ADDED", "kr8s")
            break
    await created.delete()
    await created.wait(["delete"], timeout=90)

    assert not await created.exists()
    await api._session.aclose()
