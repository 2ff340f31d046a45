"""Real kubectls against the embedded cluster: v1.36 from the Go module, and Debian's, which is v1.20.

Everything is done with each. Three commands are younger than Debian's and are left to the other, by name.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.server.inprocess import InProcessTransport
from tests.apiconformance.kubectls import BUILT, DEBIAN, KubectlAbsent, kubectl_path
from tests.controlplane.fixtures import require_programs

pytestmark = pytest.mark.e2e


class Simulated:
    """An embedded cluster with simulated parts and a stand-in scheduler, on a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self.cluster = EmbeddedCluster(nodes=3)
        self._thread = threading.Thread(target=self._run, name="simulated cluster")

    def __enter__(self) -> Simulated:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *problem: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        await self.cluster.start()
        placing = asyncio.create_task(place_pods(self.cluster.in_process_transport()))
        self._started.set()
        await self._stop.wait()
        placing.cancel()
        await asyncio.gather(placing, return_exceptions=True)
        await self.cluster.stop()


async def place_pods(transport: InProcessTransport) -> None:
    """Bind every pending pod to the first node that is not cordoned, or to the node its daemon set wants."""
    while True:
        query = {"fieldSelector": "spec.nodeName=,status.phase=Pending"}
        pods = (await transport.request("GET", "/api/v1/pods", query=query)).json()["items"]
        query = {"fieldSelector": "spec.unschedulable=false"}
        nodes = (await transport.request("GET", "/api/v1/nodes", query=query)).json()["items"]
        for pod in pods:
            metadata = pod["metadata"]
            required = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
            terms = required.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
            node = terms[0]["matchFields"][0]["values"][0] if terms else nodes[0]["metadata"]["name"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
            await transport.request(
                "POST", path, body={"metadata": {"name": metadata["name"]}, "target": {"name": node}}
            )
        await asyncio.sleep(0.05)


class Kubectl:
    """Runs one kubectl with one kubeconfig."""

    def __init__(self, which: str, path: Path, kubeconfig: Path, folder: Path) -> None:
        self.is_debian = which == DEBIAN
        self._path = str(path)
        self._folder = folder
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(folder)}

    def __call__(self, *arguments: str, fails: bool = False) -> str:
        done = subprocess.run(
            [self._path, *arguments], env=self.environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert (done.returncode != 0) is fails, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if fails else "")

    def first_event(self, *arguments: str) -> str:
        """The first line of a command that would go on for ever."""
        with subprocess.Popen(
            [self._path, *arguments], env=self.environment, stdout=subprocess.PIPE, text=True
        ) as watch:
            assert watch.stdout is not None
            line = watch.stdout.readline()
            watch.kill()
        return line

    def file(self, *documents: object) -> str:
        path = self._folder / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return str(path)


@pytest.fixture(scope="module")
def simulated() -> Iterator[Simulated]:
    with Simulated() as running:
        yield running


@pytest.fixture(params=[BUILT, DEBIAN], ids=["v1.36", "debian"])
def kubectl(request: pytest.FixtureRequest, simulated: Simulated, tmp_path: Path) -> Iterator[Kubectl]:
    require_programs()
    try:
        path = kubectl_path(request.param)
    except KubectlAbsent as absent:
        pytest.skip(str(absent))
    kubeconfig = tmp_path / "kubeconfig"
    document = simulated.cluster.kubeconfig()
    namespace = f"k-{abs(hash(request.node.name)) % 1_000_000}"
    document["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(yaml.safe_dump(document))
    kubeconfig.chmod(0o600)
    run = Kubectl(request.param, path, kubeconfig, tmp_path)
    run("create", "namespace", namespace)
    yield run
    run("delete", "namespace", namespace, "--wait=true", "--timeout=90s")


def deployment(replicas: int = 2, image: str = "example/app:1") -> dict[str, object]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def budget(app: str) -> dict[str, object]:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}


def test_it_finds_out_about_the_server(kubectl: Kubectl) -> None:
    assert "v1.36." in kubectl("version")
    resources = kubectl("api-resources")
    assert "deployments" in resources and "deploy" in resources
    assert "scheduling.k8s.io/v1" in kubectl("api-versions")
    assert "nodeAffinity" in kubectl("explain", "pod.spec.affinity")
    assert "replicas\t<integer>" in kubectl("explain", "deployment.spec")
    assert "Taints that do not keep this pod away." in kubectl("explain", "pod.spec.tolerations")
    assert "topologyKey" in kubectl("explain", "pod", "--recursive")
    assert kubectl("get", "--raw", "/healthz") == "ok"


def test_it_creates_and_shows_pods(kubectl: Kubectl) -> None:
    kubectl("run", "web", "--image=example/app:1", "--labels=app=web")
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=90s")
    table = kubectl("get", "pods")
    assert table.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert "Running" in table
    assert "NOMINATED NODE" in kubectl("get", "pods", "-o", "wide")
    assert json.loads(kubectl("get", "pod", "web", "-o", "json"))["kind"] == "Pod"
    assert yaml.safe_load(kubectl("get", "pod", "web", "-o", "yaml"))["metadata"]["name"] == "web"
    assert "web" in kubectl("get", "pods", "-l", "app=web", "--field-selector=status.phase=Running")
    assert "web" not in kubectl("get", "pods", "--field-selector=status.phase!=Running")
    assert "ADDED" in kubectl.first_event("get", "pods", "-w", "--output-watch-events", "--no-headers")
    described = kubectl("describe", "pod", "web")
    assert "QoS Class:" in described and "PodScheduled" in described


def test_it_labels_annotates_patches_and_deletes(kubectl: Kubectl) -> None:
    kubectl("run", "web", "--image=example/app:1")
    kubectl("label", "pod", "web", "tier=front")
    kubectl("annotate", "pod", "web", "note=hello")
    kubectl("patch", "pod", "web", "-p", '{"metadata":{"labels":{"patched":"yes"}}}')
    kubectl("patch", "pod", "web", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/tier"}]')
    found = json.loads(kubectl("get", "pod", "web", "-o", "json"))["metadata"]
    assert found["labels"] == {"run": "web", "patched": "yes"}
    assert found["annotations"] == {"note": "hello"}
    assert 'pod "web" deleted' in kubectl("delete", "pod", "web")
    kubectl("get", "pod", "web", fails=True)
    kubectl("create", "configmap", "a", "--from-literal=x=y", "--dry-run=server")
    kubectl("get", "configmap", "a", fails=True)
    kubectl("run", "one", "--image=example/app:1", "--labels=set=a")
    kubectl("run", "two", "--image=example/app:1", "--labels=set=a")
    assert "two" in kubectl("delete", "pods", "-l", "set=a", "--wait=true", "--timeout=90s")
    kubectl("wait", "--for=delete", "pod/one", "--timeout=90s", fails=kubectl.is_debian)


def test_it_applies_on_both_sides_and_rolls_out(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", kubectl.file(deployment()))
    assert "unchanged" in kubectl("apply", "-f", kubectl.file(deployment()))
    assert "configured" in kubectl("apply", "-f", kubectl.file(deployment(replicas=3)))
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    assert "3/3" in kubectl("get", "deployment", "web")
    described = kubectl("describe", "deployment", "web")
    assert "NewReplicaSet:" in described and "3 desired | 3 updated | 3 total | 3 available" in described
    assert "deployment-controller  Scaled up replica set web-" in described
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", kubectl.file(deployment(replicas=3)))
    kubectl("set", "image", "deployment/web", "main=example/app:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    conflict = kubectl(
        "apply", "--server-side", "--field-manager=me", "-f", kubectl.file(deployment(image="x:3")), fails=True
    )
    assert "conflict" in conflict
    kubectl("apply", "--server-side", "--field-manager=me", "--force-conflicts", "-f", kubectl.file(deployment()))
    kubectl("scale", "deployment", "web", "--replicas=1")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    assert "replicas: 1" in kubectl("get", "deployment", "web", "-o", "yaml")
    kubectl("diff", "-f", kubectl.file(deployment(replicas=7)), fails=True)
    kubectl("delete", "-f", kubectl.file(deployment()))


def test_it_refuses_unknown_fields_and_bad_objects(kubectl: Kubectl) -> None:
    bad = deployment()
    bad["spec"]["nonsense"] = 1  # type: ignore[index]
    unknown = 'unknown field "nonsense" in' if kubectl.is_debian else 'unknown field "spec.nonsense"'
    assert unknown in kubectl("apply", "-f", kubectl.file(bad), fails=True)
    worse = deployment(replicas=-1)
    assert "must be greater than or equal to 0" in kubectl("apply", "-f", kubectl.file(worse), fails=True)
    assert 'pods "nope" not found' in kubectl("get", "pod", "nope", fails=True)
    assert "the server doesn't have a resource type" in kubectl("get", "nonsense", fails=True)
    assert "(NotFound)" in kubectl("get", "--raw", "/apis/nonsense.example.com/v1", fails=True)
    assert "(Forbidden)" in kubectl("delete", "namespace", "kube-system", fails=True)
    assert "Unauthorized" in kubectl("--token=expired", "get", "pods", fails=True)
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    assert "already exists" in kubectl("create", "configmap", "c", "--from-literal=a=b", fails=True)


def test_it_taints_cordons_and_drains_nodes(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=example/app:1", "--replicas=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    # The command `create poddisruptionbudget` of Debian's writes policy/v1beta1, which no server has had since 1.25.
    kubectl("create", "-f", kubectl.file(budget("web")))
    kubectl("taint", "node", "node-2", "dedicated=x:NoSchedule")
    kubectl("taint", "node", "node-2", "dedicated-")
    kubectl("cordon", "node-1")
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", "node-1")
    drained = kubectl("drain", "node-1", "--ignore-daemonsets", "--force", "--timeout=90s")
    assert f"node/node-1 {'evicted' if kubectl.is_debian else 'drained'}" in drained
    assert "node-1" not in kubectl("get", "pods", "-o", "wide")
    kubectl("uncordon", "node-1")
    described = kubectl("describe", "node", "node-1")
    assert "Allocated resources:" in described and "HolderIdentity:" in described


def test_it_asks_about_access_and_gets_tokens(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert kubectl("auth", "can-i", "list", "pods", "--all-namespaces").strip() == "yes"
    if not kubectl.is_debian:
        assert "kubernetes-admin" in kubectl("auth", "whoami")
        assert kubectl("create", "token", "default").count(".") == 2


def test_it_runs_jobs_and_sees_events(kubectl: Kubectl) -> None:
    template = {
        "metadata": {"annotations": {"bayplan.dev/run-seconds": "0.2"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/app:1"}]},
    }
    spec = {"completions": 2, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sums"}, "spec": spec}
    kubectl("apply", "-f", kubectl.file(job))
    kubectl("wait", "--for=condition=complete", "job/sums", "--timeout=90s")
    assert "2/2" in kubectl("get", "job", "sums")
    described = kubectl("describe", "job", "sums")
    assert "2 Succeeded" in described
    assert "SuccessfulCreate" in described and "Created pod: sums-" in described
    assert "Job completed" in described
    assert "SuccessfulCreate" in kubectl("get", "events", "--sort-by=.lastTimestamp")
    if not kubectl.is_debian:
        assert "SuccessfulCreate" in kubectl("events", "--for", "job/sums")


def test_it_edits(kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("create", "configmap", "c", "--from-literal=color=red")
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/red/blue/" "$1"\n')
    editor.chmod(0o755)
    kubectl.environment["KUBE_EDITOR"] = str(editor)
    assert "edited" in kubectl("edit", "configmap", "c")
    assert kubectl("get", "configmap", "c", "-o", "jsonpath={.data.color}") == "blue"


def test_it_works_with_custom_resources(kubectl: Kubectl) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "description": "Big?"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo", "shortNames": ["fo"]}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    foo = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"size": 3}}
    kubectl("apply", "-f", kubectl.file(crd))
    kubectl("wait", "--for=condition=Established", "crd/foos.example.com", "--timeout=90s")
    kubectl("apply", "-f", kubectl.file(foo))
    assert "unchanged" in kubectl("apply", "-f", kubectl.file(foo))
    assert "Big?" in kubectl("explain", "foos.spec.size")
    assert "a" in kubectl("get", "fo")
    kubectl("delete", "crd", "foos.example.com", "--timeout=90s")
