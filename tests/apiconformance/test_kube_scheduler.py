"""The real kube-scheduler works on the embedded cluster, with its default wire format."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.apiconformance.embedded import EmbeddedThread
from tests.controlplane.fixtures import require_programs
from tests.controlplane.programs import program
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e


@pytest.fixture
def embedded() -> Iterator[EmbeddedThread]:
    require_programs()
    running = EmbeddedThread(nodes=5, simulate=True)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def kube_scheduler(embedded: EmbeddedThread, tmp_path: Path) -> Iterator[None]:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(embedded.cluster.kubeconfig()))
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": True},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    command = [str(program("kube-scheduler")), "--config", str(tmp_path / "config.yaml"), "--secure-port=0"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        yield
        process.kill()


@pytest.mark.usefixtures("kube_scheduler")
def test_it_takes_the_lease_binds_pods_and_reports_what_does_not_fit(embedded: EmbeddedThread) -> None:
    client = embedded.client()
    pods = "/api/v1/namespaces/default/pods"
    for index, cpu in enumerate(["1", "1", "1", "100"]):
        container = {"name": "main", "image": "example/app:1", "resources": {"requests": {"cpu": cpu}}}
        client.create(pods, {"metadata": {"name": f"p{index}"}, "spec": {"containers": [container]}})

    def phases() -> list[str]:
        return [pod["status"]["phase"] for pod in client.get(pods).body["items"]]

    wait_until(lambda: phases() == ["Running", "Running", "Running", "Pending"], what="three pods to run")
    big = client.get(f"{pods}/p3").body
    condition = next(one for one in big["status"]["conditions"] if one["type"] == "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/5 nodes are available: 5 Insufficient cpu.")
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    wait_until(
        lambda: "FailedScheduling" in json.dumps(client.get(events).body), what="the event of the pod that waits"
    )
    lease = client.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    assert lease.body["spec"]["holderIdentity"]
    client.close()
