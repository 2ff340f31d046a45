"""The two schedulers as processes, started with the same configuration and with client limits out of the way."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.controlplane import ControlPlane
from tests.controlplane.ports import free_loopback_port

_TICKS = os.sysconf("SC_CLK_TCK")
QPS = 10_000


@dataclass(kw_only=True)
class Usage:
    """What a scheduler process used between two moments."""

    cpu_seconds: float
    peak_mib: float
    decision_ms: float
    """Mean time of a decision by the scheduler's own metric; 0 when it has none."""


class Running:
    def __init__(self, pid: int, metrics: Any) -> None:
        self.pid = pid
        self._metrics = metrics
        self._cpu_before = _cpu_seconds(pid)

    def usage(self) -> Usage:
        return Usage(
            cpu_seconds=_cpu_seconds(self.pid) - self._cpu_before,
            peak_mib=_peak_mib(self.pid),
            decision_ms=_mean_ms(self._metrics()),
        )


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _peak_mib(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _mean_ms(text: str) -> float:
    total = re.search(r"^scheduler_scheduling_algorithm_duration_seconds_sum(?:{[^}]*})? (\S+)", text, re.M)
    count = re.search(r"^scheduler_scheduling_algorithm_duration_seconds_count(?:{[^}]*})? (\S+)", text, re.M)
    return 1e3 * float(total[1]) / float(count[1]) if total and count and float(count[1]) else 0.0


def _write_config(folder: Path, extra: dict[str, Any]) -> Path:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"qps": QPS, "burst": QPS},
        "leaderElection": {"leaderElect": False},
    } | extra
    path = folder / "bench-config.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@contextmanager
def kube_scheduler(plane: ControlPlane, extra: dict[str, Any]) -> Iterator[Running]:
    path = _write_config(Path(plane.folder), extra | {"clientConnection": {"qps": QPS, "burst": QPS}})
    with plane.start_kube_scheduler(config_path=path) as process:
        yield Running(process.pid, process.metrics)


@contextmanager
def bayplan(plane: ControlPlane, extra: dict[str, Any]) -> Iterator[Running]:
    path = _write_config(Path(plane.folder), extra)
    port = free_loopback_port()
    command = [sys.executable, "-m", "bayplan.cli", "run", "--config", str(path), "--kubeconfig", str(plane.kubeconfig)]
    log = (Path(plane.folder) / "bayplan.log").open("w")
    process = subprocess.Popen([*command, "--secure-port", str(port), "-v", "1"], stdout=log, stderr=log)
    try:
        yield Running(process.pid, lambda: _scrape(plane, port))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _scrape(plane: ControlPlane, port: int) -> str:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    token = plane.token_for("bench", ("system:masters",)) if hasattr(plane, "token_for") else ""
    request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})
    for _ in range(3):
        try:
            with urllib.request.urlopen(request, context=context, timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            time.sleep(0.2)
    return ""


SCHEDULERS = {"kube-scheduler": kube_scheduler, "bayplan": bayplan}
