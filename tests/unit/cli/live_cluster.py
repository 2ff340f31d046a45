"""A cluster of `bayplan up` in a process of its own, and commands on a real terminal against it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from fcntl import ioctl
from pathlib import Path

import pytest

__all__ = ["BAYPLAN", "Cluster", "Terminal", "cluster", "status_of"]

PODS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop}
spec: {containers: [{name: c, image: app, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big}
spec: {containers: [{name: c, image: app, resources: {requests: {cpu: "900"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: orphan}
spec: {schedulerName: nobody, containers: [{name: c, image: app}]}
"""
BAYPLAN = [sys.executable, "-m", "bayplan.cli"]


class Cluster:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "TERM": "xterm-256color"}
        self.environment.pop("BAYPLAN_SERVER", None)

    def run(self, *arguments: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **variables}
        command = [*BAYPLAN, *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, env=environment, timeout=120, check=False
        )

    def until(self, *arguments: str, said: str, **variables: str) -> str:
        """Run a command until it says something."""
        for _ in range(100):
            done = self.run(*arguments, **variables)
            if said in done.stdout:
                return done.stdout
            time.sleep(0.2)
        raise AssertionError(f"{arguments} never said {said}: {done.stdout}{done.stderr}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    kubeconfig = tmp_path_factory.mktemp("up") / "kubeconfig"
    command = [*BAYPLAN, "up", "--nodes=3", "--quiet", f"--kubeconfig-out={kubeconfig}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("open http" in line for line in lines)
        found = Cluster(kubeconfig)
        applied = found.run("apply", "-f", "-", given=PODS)
        assert applied.returncode == 0, applied.stderr
        found.until("pending", "--brief", said="nobody")
        found.until("pending", "--brief", said="Insufficient cpu")
        yield found
        process.send_signal(signal.SIGINT)
        process.stdout.read()


class Terminal:
    """A command in a pseudo-terminal; what it wrote, without escape sequences."""

    def __init__(self, cluster: Cluster, *arguments: str, columns: int = 100, program: Sequence[str] = BAYPLAN) -> None:
        self._fd, inner = pty.openpty()
        ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [*program, *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=cluster.environment,
            close_fds=True,
            start_new_session=program is not BAYPLAN,
        )
        os.close(inner)
        self.text = ""

    def wait_for(self, said: str, seconds: float = 90.0) -> None:
        deadline = time.monotonic() + seconds
        while said not in self.text:
            assert time.monotonic() < deadline, f"never said {said!r}: {self.text[-2000:]}"
            self._read()

    def wait_for_picture(self, *, without: str, seconds: float = 90.0) -> None:
        """Until a whole picture of `top` comes without these words."""
        deadline = time.monotonic() + seconds
        while True:
            pictures = self.text.split("q ends")[1:-1]
            if pictures and without not in pictures[-1]:
                return
            assert time.monotonic() < deadline, f"no picture without {without!r}: {self.text[-2000:]}"
            self._read()

    def _read(self) -> None:
        if select.select([self._fd], [], [], 0.2)[0]:
            try:
                piece = os.read(self._fd, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                piece = ""
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\r", "", piece)

    def press(self, key: str) -> None:
        os.write(self._fd, key.encode())

    def end(self, seconds: float = 60.0) -> int:
        """Wait for the end, and read meanwhile: who sets a terminal back waits until all was read."""
        deadline = time.monotonic() + seconds
        while (status := self.process.poll()) is None:
            assert time.monotonic() < deadline, f"does not end: {self.text[-2000:]}"
            self._read()
        os.close(self._fd)
        return status


def status_of(url: str, token: str = "") -> int:
    """The status that a client gets, with a bearer token or without credentials."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
