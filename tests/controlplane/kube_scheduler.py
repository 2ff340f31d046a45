"""The real kube-scheduler as a child process, for tests that compare with it and for benchmarks.

It runs as `system:kube-scheduler` under the RBAC rules that the API server ships for it, and serves /metrics over TLS
signed by the run's own authority. A configuration of the caller is used as it is, with two gaps filled: the kubeconfig,
which no caller can know, and leader election, off unless the file asks for it, because a lease left by an earlier run
would only delay the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from tests.controlplane.certificates import KeyPair
from tests.controlplane.ports import LOOPBACK, free_loopback_port
from tests.controlplane.process import ChildProcess, Guard, wait_until
from tests.controlplane.programs import program
from tests.controlplane.rest import RestClient

_API_VERSION = "kubescheduler.config.k8s.io/v1"
_READY_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class KubeSchedulerSettings:
    """What one kube-scheduler needs from its control plane; `folder` receives its config and its log."""

    folder: Path
    kubeconfig: Path
    ca_file: Path
    server_pair: KeyPair
    admin_pair: KeyPair
    config_path: Path | None = None
    extra_args: Sequence[str] = ()


class KubeScheduler:
    """A kube-scheduler that is ready; a context manager that stops it."""

    def __init__(self, settings: KubeSchedulerSettings, *, guard: Guard) -> None:
        self.url = f"https://{LOOPBACK}:{free_loopback_port()}"
        self._admin = RestClient(self.url, ca_file=settings.ca_file, pair=settings.admin_pair)
        command = kube_scheduler_command(settings, port=int(self.url.rpartition(":")[2]))
        self._child = ChildProcess(command, log_path=settings.folder / "kube-scheduler.log", guard=guard)
        try:
            wait_until(
                lambda: self._admin.is_healthy("/readyz"),
                what="an answer on /readyz",
                child=self._child,
                timeout_seconds=_READY_TIMEOUT_SECONDS,
            )
        except BaseException:
            self._child.kill()
            raise

    def __enter__(self) -> KubeScheduler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child.is_running

    @property
    def log_path(self) -> Path:
        return self._child.log_path

    def metrics(self) -> str:
        """The text of /metrics."""
        return str(self._admin.request("GET", "/metrics").body)

    def stop(self) -> None:
        self._child.stop()

    def kill(self) -> None:
        self._child.kill()


def kube_scheduler_command(settings: KubeSchedulerSettings, *, port: int) -> list[str]:
    """Write the completed configuration beside the log and name it on the command line."""
    config = complete_configuration(_read_configuration(settings.config_path), kubeconfig=settings.kubeconfig)
    config_path = settings.folder / "kube-scheduler.yaml"
    config_path.write_text(yaml.safe_dump(config, sort_keys=False))
    return [
        str(program("kube-scheduler")),
        f"--config={config_path}",
        f"--authentication-kubeconfig={settings.kubeconfig}",
        f"--authorization-kubeconfig={settings.kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={settings.server_pair.certificate}",
        f"--tls-private-key-file={settings.server_pair.key}",
        *settings.extra_args,
    ]


def complete_configuration(document: dict[str, Any], *, kubeconfig: Path) -> dict[str, Any]:
    """The caller's KubeSchedulerConfiguration with the kubeconfig and a decision about leader election filled in."""
    complete = {"apiVersion": _API_VERSION, "kind": "KubeSchedulerConfiguration", **document}
    complete["clientConnection"] = {"kubeconfig": str(kubeconfig), **(document.get("clientConnection") or {})}
    complete["leaderElection"] = {"leaderElect": False, **(document.get("leaderElection") or {})}
    return complete


def _read_configuration(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    document = yaml.safe_load(path.read_text())
    if not isinstance(document, dict):
        raise ValueError(f"{path} holds no KubeSchedulerConfiguration but {type(document).__name__}")
    return document
