"""The five write-ups as their readers do them: the process that each starts, on its own manifests, and where pods go.

The manifests are in examples/references, as published. `tests/e2e/test_references.py` has the details of each, on the
embedded cluster and on a real API server; here the scheduler is a process with the arguments of the write-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.app.settings import load_settings
from bayplan.deploy.crds import crd_documents
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from bayplan.sim.local import LocalCluster, LocalOptions
from bayplan.testing import node
from bayplan.testing.local_cluster import TestCluster, document_of
from tests.docs.markdown import ROOT
from tests.waiting import answer

REFERENCES = ROOT / "examples" / "references"


def manifest(name: str) -> Any:
    return yaml.safe_load((REFERENCES / name).read_text())


@contextlib.asynccontextmanager
async def api_server(nodes: list[Any], folder: Path, *, serves: str = "another") -> AsyncIterator[TestCluster]:
    """A cluster whose own scheduler has another name, so that the one under test is alone with its pods."""
    (folder / "other.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{schedulerName: {serves}}}]\n"
    )
    options = LocalOptions(nodes=[document_of(each) for each in nodes], objects=crd_documents([ClusterScopedResource]))
    async with LocalCluster(load_settings(folder / "other.yaml", ()), options) as local:
        (folder / "kubeconfig").write_text(yaml.safe_dump(local.cluster.kubeconfig()))
        yield TestCluster(local)


@contextlib.asynccontextmanager
async def running(folder: Path, *arguments: str) -> AsyncIterator[None]:
    """The image's entry point with the arguments of a manifest; it must run until it is stopped, and end well."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan.cli", *arguments),
        *("--kubeconfig", str(folder / "kubeconfig"), "--secure-port=0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said


def config_in(folder: Path, reference: str) -> str:
    """The write-up's configuration; the path of its kubeconfig is one of the author's machine."""
    document = manifest(f"{reference}/scheduler.yaml")
    document.pop("clientConnection", None)
    (folder / "config.yaml").write_text(yaml.safe_dump(document))
    return f"--config={folder / 'config.yaml'}"


async def node_of(test: TestCluster, name: str) -> str:
    async def bound() -> str:
        return str((await test.pod(name))["spec"].get("nodeName") or "")

    return await answer(bound, what=f"a node for {name}")


async def test_block_all_lets_nothing_pass(tmp_path: Path) -> None:
    pod = manifest("block-all/pod.yaml")
    nodes = [node("n1"), node("n2")]
    async with api_server(nodes, tmp_path) as test, running(tmp_path, "run", config_in(tmp_path, "block-all")):
        await test.create(pod)
        message = await test.pending_message(pod["metadata"]["name"], within=60)

    assert "0/2 nodes are available" in message


async def test_the_name_score_takes_the_predicted_node(tmp_path: Path) -> None:
    nodes = [node(name) for name in ("k8s-master01", "k8s-node01", "k8s-node02")]
    async with api_server(nodes, tmp_path) as test, running(tmp_path, "run", config_in(tmp_path, "name-score")):
        await test.create(manifest("name-score/pod.yaml"))

        assert await node_of(test, "busybox-test-scheduler") == "k8s-node02"


async def test_the_deployment_of_score_by_label_runs_as_it_is_printed(tmp_path: Path) -> None:
    """`/bin/kube-scheduler --config=… -v=6` from the Deployment, on the file of the ConfigMap."""
    (container,) = manifest("score-by-label/deployment.yaml")["spec"]["template"]["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    for name, text in manifest("score-by-label/configmap.yaml")["data"].items():
        (tmp_path / name).write_text(text)
    given = [argument.replace(mount["mountPath"], str(tmp_path)) for argument in container["args"]]
    nodes = [node(f"n{points}", labels={"score-by-label": points}) for points in ("1", "5", "10")]

    async with api_server(nodes, tmp_path) as test, running(tmp_path, *given):
        await test.create(manifest("score-by-label/pod.yaml"))

        assert await node_of(test, "testpod") == "n10"


async def test_the_timestamp_scheduler_takes_the_default_ones_place(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    async with api_server([node("n1")], tmp_path) as test, running(tmp_path, "run", config_in(tmp_path, "timestamp")):
        await test.create(pod | {"spec": {"containers": [{"name": "main", "image": "busybox"}]}})
        await node_of(test, "web")
        annotations = (await test.pod("web"))["metadata"]["annotations"]

    assert annotations["scheduler-timestamp"].isdecimal()


async def test_custom_resources_say_which_nodes_fit(tmp_path: Path) -> None:
    """Each object is named after a node, as its placeholder asks."""
    pod = manifest("node-crd/pod.yaml")
    text = (REFERENCES / "node-crd/clusterscopedresources.yaml").read_text()
    objects = [each for each in yaml.safe_load_all(text) if each]
    nodes = [node(f"n{place}") for place in range(len(objects))]
    given = config_in(tmp_path, "node-crd")

    async with api_server([*nodes, node("without")], tmp_path) as test, running(tmp_path, "run", given):
        for each, target in zip(objects, nodes, strict=True):
            each["metadata"]["name"] = target.name
            await test.request("POST", f"/apis/{each['apiVersion']}/clusterscopedresources", each)
        await test.create(pod)

        assert await node_of(test, pod["metadata"]["name"]) in [target.name for target in nodes]


@pytest.mark.parametrize("reference", ["block-all", "name-score", "score-by-label", "timestamp", "node-crd"])
def test_every_configuration_loads_as_it_is_printed(reference: str) -> None:
    assert load_settings(REFERENCES / reference / "scheduler.yaml", ()).profiles
