"""A real Kubernetes control plane for the end-to-end tests: build.sh makes the programs, `ControlPlane` runs them."""

from __future__ import annotations

from tests.controlplane.cluster import CommandFailed, ControlPlane, ControlPlaneOptions
from tests.controlplane.kube_scheduler import KubeScheduler
from tests.controlplane.process import StartFailed
from tests.controlplane.programs import ProgramMissing

__all__ = ["CommandFailed", "ControlPlane", "ControlPlaneOptions", "KubeScheduler", "ProgramMissing", "StartFailed"]
