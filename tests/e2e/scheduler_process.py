"""`bayplan run` as a process of its own, the way people run it: flags in, log lines and an exit status out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from tests.controlplane.process import ChildProcess, Guard

_COMMAND = (sys.executable, "-c", "from bayplan.cli.main import run; run()", "run")
SHORT_LEASE = {"leaderElect": True, "leaseDuration": "6s", "renewDeadline": "5s", "retryPeriod": "500ms"}


def write_config(folder: Path, name: str = "config.yaml", **fields: object) -> Path:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **fields,
    }
    path = folder / name
    path.write_text(yaml.safe_dump(document))
    return path


class SchedulerProcess:
    """Running until it ends or is ended."""

    def __init__(
        self,
        folder: Path,
        guard: Guard,
        *arguments: str,
        name: str = "bayplan",
        secure_port: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._child = ChildProcess(
            [*_COMMAND, f"--secure-port={secure_port}", *arguments],
            log_path=folder / f"{name}.log",
            guard=guard,
            environment={"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore", **(environment or {})},
        )

    @property
    def log(self) -> str:
        return self._child.log_path.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._child.is_running

    @property
    def exit_status(self) -> int | None:
        return self._child.exit_status

    def send(self, number: signal.Signals) -> None:
        os.kill(self._child.pid, number)

    def kill(self) -> None:
        self._child.kill()

    def stop(self) -> int | None:
        self._child.stop(patience_seconds=60)
        return self._child.exit_status

    def wait_for_log(self, text: str, *, seconds: float = 90.0) -> None:
        self._wait(lambda: text in self.log, f"`{text}` in its log", seconds)

    def wait_for_end(self, *, seconds: float = 90.0) -> int:
        self._wait(lambda: not self.is_running, "its end", seconds)
        status = self.exit_status
        assert status is not None
        return status

    def _wait(self, is_true: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < deadline, f"{what} did not come in {seconds:g} s:\n{self._child.log_tail(40)}"
            time.sleep(0.05)


def run_to_end(*arguments: str, seconds: float = 90.0) -> tuple[int, str]:
    """Exit status and everything that was said by a scheduler that is not expected to keep running."""
    done = subprocess.run(
        [*_COMMAND, "--secure-port=0", *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    return done.returncode, done.stdout + done.stderr


def said(log: str, *words: str) -> bool:
    """Whether one line holds all the words."""
    return any(all(word in line for word in words) for line in log.splitlines())
