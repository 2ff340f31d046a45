"""The clusters that end-to-end specs run on: `bayplan up`, and the real control plane without kubelets."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions

__all__ = ["EmbeddedCluster", "RealCluster", "SpecCluster"]

_NODES = 4


class SpecCluster(Protocol):
    """A cluster that is ready; `kubeconfig` reaches it as its administrator."""

    kubeconfig: Path

    def stop(self) -> None: ...


class EmbeddedCluster:
    """`bayplan up` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.unlink(missing_ok=True)
        self._log = (folder / "cluster.log").open("a")
        program = Path(sys.executable).with_name("bayplan")
        command = [
            program,
            "up",
            "--nodes",
            str(_NODES),
            "--quiet",
            "--dashboard-port",
            "-1",
            "--kubeconfig-out",
            self.kubeconfig,
        ]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 120
        while not self.kubeconfig.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the cluster did not start; its log is {self._log.name}")
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()


class RealCluster:
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler. Nodes are objects; no kubelet runs pods."""

    def __init__(self, folder: Path) -> None:
        self._control_plane = ControlPlane(ControlPlaneOptions(has_controllers=True))
        try:
            self._control_plane.start_controller_manager()
            self._control_plane.start_kube_scheduler()
            for number in range(_NODES):
                self._create_node(f"node-{number}")
        except BaseException:
            self._control_plane.stop()
            raise
        self.kubeconfig = self._control_plane.kubeconfig

    def _create_node(self, name: str) -> None:
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "an object alone"}
        address = {"type": "InternalIP", "address": f"10.1.0.{name.rpartition('-')[2]}"}
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [condition], "addresses": [address]}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        body = {"metadata": {"name": name, "labels": labels}, "status": status}
        answer = self._control_plane.admin.request("POST", "/api/v1/nodes", body)
        if answer.status != 201:
            raise RuntimeError(f"the node {name} was answered with {answer.status}: {answer.body}")

    def stop(self) -> None:
        self._control_plane.stop()
