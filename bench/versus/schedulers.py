"""The two schedulers as processes, started with the same configuration and with client limits out of the way."""

from __future__ import annotations

import asyncio
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.controlplane import ControlPlane
from tests.controlplane.ports import free_loopback_port

QPS = 10_000
SCHEDULER = "system:kube-scheduler"
ADMIN = ("bench", ("system:masters",))
"""Users of the API server; the second with its groups."""
_METRICS_DELAY_SECONDS = 1.2
_ALGORITHM = r"^scheduler_scheduling_algorithm_duration_seconds_{}(?:{{[^}}]*}})? (\S+)"


class Running:
    """A scheduler process: whose CPU to count, and what its own metrics say."""

    def __init__(
        self, pid: int, *, url: str, metrics: Callable[[], str], is_alive: Callable[[], bool], log: Path
    ) -> None:
        self.pid = pid
        self.url = url
        """Where it answers, over TLS."""
        self.log = log
        self.metrics = metrics
        self.is_alive = is_alive

    def decision_ms(self) -> float:
        """Mean time of a decision by the scheduler's own metric; 0 when it has none."""
        found = mean_decision_ms(self.metrics())
        if not found:
            # kube-scheduler writes its measurements down once a second; a small run may be over before.
            time.sleep(_METRICS_DELAY_SECONDS)
            found = mean_decision_ms(self.metrics())
        return found


def mean_decision_ms(text: str) -> float:
    total, count = (re.findall(_ALGORITHM.format(part), text, re.M) for part in ("sum", "count"))
    decisions = sum(float(value) for value in count)
    return 1e3 * sum(float(value) for value in total) / decisions if decisions else 0.0


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


def scheduler_kubeconfig(plane: ControlPlane) -> Path:
    """Both schedulers and the bare client come as the same user with a bearer token, as pods of a cluster do.

    With a client certificate the API server would verify a signature for every request, a third of its work, which only
    hides how the schedulers differ.
    """
    return plane.token_kubeconfig(plane.token_for(SCHEDULER))


@contextmanager
def kube_scheduler(plane: ControlPlane, extra: dict[str, Any], profile: Path | None = None) -> Iterator[Running]:
    path = _write_config(Path(plane.folder), extra)
    with plane.start_kube_scheduler(path, kubeconfig=scheduler_kubeconfig(plane)) as process:
        yield Running(
            process.pid,
            url=process.url,
            metrics=process.metrics,
            is_alive=lambda: process.is_running,
            log=process.log_path,
        )


@contextmanager
def bayplan(plane: ControlPlane, extra: dict[str, Any], profile: Path | None = None) -> Iterator[Running]:
    """With `profile`, under cProfile, which writes there in the end."""
    path = _write_config(Path(plane.folder), extra)
    port = free_loopback_port()
    profiler = ["-m", "cProfile", "-o", str(profile)] if profile else []
    command = [sys.executable, *profiler, "-m", "bayplan.cli", "run", "--config", str(path)]
    command += ["--kubeconfig", str(scheduler_kubeconfig(plane)), "--secure-port", str(port), "-v", "1"]
    log_path = Path(plane.folder) / "bayplan.log"
    with log_path.open("w") as log:
        # In a session of its own, as `tests.controlplane` starts kube-scheduler: where Linux shares processors among
        # sessions first (sched_autogroup), it would otherwise share one part with the busy loops.
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            yield Running(
                process.pid,
                url=f"https://127.0.0.1:{port}",
                metrics=lambda: _scrape(plane, port),
                is_alive=lambda: process.poll() is None,
                log=log_path,
            )
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _scrape(plane: ControlPlane, port: int) -> str:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    token = plane.token_for(*ADMIN)
    request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})
    for _ in range(5):
        try:
            with urllib.request.urlopen(request, context=context, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            time.sleep(0.2)
    return ""


SCHEDULERS = {"kube-scheduler": kube_scheduler, "bayplan": bayplan}


@asynccontextmanager
async def started(
    plane: ControlPlane, name: str, extra: dict[str, Any], profile: Path | None = None
) -> AsyncIterator[Running]:
    """A scheduler, started and stopped in a thread: a watcher in the loop must not miss what it does meanwhile."""
    process = SCHEDULERS[name](plane, extra, profile)
    running = await asyncio.to_thread(process.__enter__)
    try:
        yield running
    finally:
        await asyncio.to_thread(process.__exit__, None, None, None)
