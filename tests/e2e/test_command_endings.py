"""Every command ends quietly on Ctrl-C and where the reader of its output has gone: at the level of processes.

Ctrl-C is sent to the whole group of processes, as a terminal does, when the command is known to be in the middle of its
work: waiting for a server that never answers, reading a file that never ends, or computing for more than a second.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bayplan.cli.main import COMMANDS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
BAYPLAN = [sys.executable, "-m", "bayplan.cli"]
EXAMPLES = Path(__file__).parents[2] / "examples"
INTERRUPTED = 130
BROKEN_PIPE = 141
LONG_WORKLOAD = """\
apiVersion: bayplan.dev/v1alpha1
kind: Workload
until: 2000d
items:
- name: batch
  arrivals: {poisson: 200/h}
  duration: 20m
  template: {spec: {containers: [{name: main, resources: {requests: {cpu: "1", memory: 1Gi}}}]}}
"""
SILENT = {
    "explain": ["explain", "pod", "web"],
    "explain node": ["explain", "node", "a"],
    "pending": ["pending"],
    "pending -w": ["pending", "-w"],
    "top": ["top"],
    "whatif": ["whatif", "--drain", "a"],
    "dashboard": ["dashboard"],
    "apply": ["apply", "-f", str(EXAMPLES / "web.yaml")],
    "get": ["get", "pods"],
    "get -w": ["get", "pods", "-w"],
    "delete": ["delete", "pod", "web"],
    "doctor": ["doctor"],
    "simulate": ["simulate", str(EXAMPLES / "simulate/workload.yaml"), "--kubeconfig", "KUBECONFIG"],
    "plan": ["plan", "drain", "a", "--kubeconfig", "KUBECONFIG"],
}
"""Commands that wait for a server which never answers."""
SERVING = {
    "run": ["run", "--secure-port=0"],
    "record": ["record", "cluster.recording"],
    "controllers": ["controllers"],
}
"""The same of commands that end in order when they are asked to, with status 0."""
READING = {
    "evaluate": ["evaluate", "-f", "FIFO"],
    "evaluate --cases": ["evaluate", "--cases", "FIFO"],
    "replay": ["replay", "FIFO"],
    "render": ["render", "manifests", "--config", "FIFO"],
    "plugin": ["plugin", "show", "NodeResourcesFit", "--config", "FIFO"],
    "up": ["up", "--from", "FIFO"],
}
"""Commands that read a file whose end does not come."""
COMPUTING = {
    "simulate, two policies": ["simulate", "long.yaml", *("--variant", f"packed={EXAMPLES}/simulate/packed.yaml")],
    "simulate": ["simulate", "long.yaml"],
    "sweep": ["sweep", "long.yaml", "--seeds", "4"],
    "plan capacity": ["plan", "capacity", "long.yaml", "--pools", str(EXAMPLES / "plan/pools.yaml")],
}
"""Commands that compute for minutes; the progress line says that they do."""


class SilentServer:
    """Accepts connections, reads what comes, and never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked = threading.Event()
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._kept.append(connection)
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        try:
            if connection.recv(65536):
                self.asked.set()
        except OSError:
            pass

    def close(self) -> None:
        self._listener.close()
        for connection in self._kept:
            connection.close()


@pytest.fixture
def server() -> Iterator[SilentServer]:
    found = SilentServer()
    yield found
    found.close()


def environment(folder: Path, server: str = "http://127.0.0.1:9") -> dict[str, str]:
    """A kubeconfig that leads to the server."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
    )
    (folder / "long.yaml").write_text(LONG_WORKLOAD)
    return {**os.environ, "KUBECONFIG": str(kubeconfig), "BAYPLAN_SERVER": server, "COLUMNS": "100"}


def start(arguments: Sequence[str], folder: Path, variables: dict[str, str]) -> subprocess.Popen[str]:
    words = [str(folder / "kubeconfig") if word == "KUBECONFIG" else word for word in arguments]
    return subprocess.Popen(
        [*BAYPLAN, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=variables,
        start_new_session=True,
        preexec_fn=_listen_to_ctrl_c,
    )


def _listen_to_ctrl_c() -> None:
    """Shells start what runs in the background with Ctrl-C ignored, these tests included."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Status and everything that was said."""
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert_group_is_gone(process.pid)
    return process.returncode, out + err


def opened(fifo: Path, process: subprocess.Popen[str]) -> int:
    """The end for writing, once the command has opened the other one."""
    while process.poll() is None:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"it ended with {process.returncode} and did not read: {process.communicate()}")


def assert_group_is_gone(group: int) -> None:
    """No process of the command is left."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a process of the command is left")


def assert_quiet(said: str) -> None:
    for word in ("Traceback", "KeyboardInterrupt", "BrokenPipe", "Broken pipe", "Exception ignored", "error:"):
        assert word not in said, said


@pytest.mark.parametrize("name", [*SILENT, *SERVING])
def test_ctrl_c_ends_a_command_whose_server_never_answers(name: str, tmp_path: Path, server: SilentServer) -> None:
    process = start({**SILENT, **SERVING}[name], tmp_path, environment(tmp_path, server.url))
    assert server.asked.wait(60), "the server was not asked"
    status, said = interrupted(process)

    assert status == (0 if name in SERVING else INTERRUPTED), said
    assert_quiet(said)


WAITED_FOR = {
    "explain": "asking the scheduler about default/web …",
    "pending": "grouping the pending pods by what keeps them from running …",
    "whatif": "playing it on a copy of the cluster …",
    "simulate": "reading the objects of the cluster …",
}


@pytest.mark.parametrize("name", WAITED_FOR)
def test_a_command_that_waits_for_more_than_a_second_says_for_what(
    name: str, tmp_path: Path, server: SilentServer
) -> None:
    process = start(SILENT[name], tmp_path, environment(tmp_path, server.url))
    assert process.stderr is not None
    first = process.stderr.readline()
    interrupted(process)

    assert first == f"{WAITED_FOR[name]}\n"


def test_a_start_of_some_seconds_is_told_without_control_characters(tmp_path: Path) -> None:
    arguments = ["up", "--nodes=20000", "--kubeconfig-out=kubeconfig", "--data-dir=data"]
    process = start(arguments, tmp_path, environment(tmp_path))
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while lines[-1] and "open http" not in lines[-1]:
        lines.append(process.stdout.readline())
    status, said = interrupted(process)

    everything = "".join(lines) + said
    assert status == 0, everything
    assert "starting a cluster of 20000 objects …" in said.splitlines()
    assert "a cluster of 20000 nodes is up" in lines[0]
    assert all(letter.isprintable() or letter == "\n" for letter in everything)


@pytest.mark.parametrize("name", READING)
def test_ctrl_c_ends_a_command_that_reads(name: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    arguments = [str(fifo) if word == "FIFO" else word for word in READING[name]]
    process = start(arguments, tmp_path, environment(tmp_path))
    writing = opened(fifo, process)
    status, said = interrupted(process)
    os.close(writing)

    assert status == INTERRUPTED, said
    assert_quiet(said)


@pytest.mark.parametrize("name", COMPUTING)
def test_ctrl_c_ends_a_command_that_computes_with_all_its_processes(name: str, tmp_path: Path) -> None:
    cluster = ["--cluster", str(EXAMPLES / "simulate/cluster.yaml")]
    process = start([*COMPUTING[name], *cluster], tmp_path, environment(tmp_path))
    assert process.stderr is not None
    first = process.stderr.readline()
    status, said = interrupted(process)

    assert "simulat" in first or "sweep" in first
    assert status == INTERRUPTED, said
    assert_quiet(said)


@pytest.mark.parametrize("arguments", [["top"], ["up", "--nodes=2"]], ids=" ".join)
def test_ctrl_c_while_modules_are_loaded_is_quiet_too(arguments: list[str], tmp_path: Path) -> None:
    """At moments of the start that nobody chooses."""
    for _ in range(4):
        process = start(arguments, tmp_path, environment(tmp_path))
        loaded = f"/proc/{process.pid}/maps"
        while "msgspec" not in Path(loaded).read_text() and process.poll() is None:
            time.sleep(0.002)
        status, said = interrupted(process)

        assert status in (0, INTERRUPTED), said
        assert_quiet(said)


CLOSED = {
    "the help": ["--help"],
    "help of a command": ["evaluate", "--help"],
    "completion": ["completion", "bash"],
    "evaluate": ["evaluate", "-f", str(EXAMPLES / "cluster.yaml"), "--pod", str(EXAMPLES / "pod.yaml")],
    "evaluate -o yaml": [
        "evaluate",
        "-f",
        str(EXAMPLES / "cluster.yaml"),
        "--pod",
        str(EXAMPLES / "spread.yaml"),
        "-o",
        "yaml",
    ],
    "simulate": [
        *("simulate", str(EXAMPLES / "simulate/workload.yaml"), "--until", "1h"),
        *("--cluster", str(EXAMPLES / "simulate/cluster.yaml")),
    ],
    "sweep": [
        *("sweep", str(EXAMPLES / "simulate/workload.yaml"), "--until", "10m", "--seeds", "1"),
        *("--cluster", str(EXAMPLES / "simulate/cluster.yaml")),
    ],
    "plan": ["plan", "drain", "node-1", "--cluster", str(EXAMPLES / "plan/fragmented.yaml")],
    "replay": ["replay", str(EXAMPLES / "simulate/cluster.recording")],
    "render": ["render", "manifests"],
    "render chart": ["render", "chart", "-o", "chart"],
    "new": ["new", "ScoreByDisk"],
    "plugin": ["plugin", "show", "NodeResourcesFit"],
    "up": ["up", "--nodes=2", "--kubeconfig-out=kubeconfig"],
    "run": ["run", "--write-config-to", "-"],
}
"""Those that ask a running scheduler are in tests/unit/cli/test_live_terminal.py."""


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_pipe_ends_a_command_quietly(name: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*BAYPLAN, *CLOSED[name]],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=120,
        check=False,
    )
    os.close(writing)

    assert done.returncode == BROKEN_PIPE, done.stderr
    assert_quiet(done.stderr)


def test_every_command_is_tried() -> None:
    interrupts = {words[0] for table in (SILENT, SERVING, READING, COMPUTING) for words in table.values()}

    assert COMMANDS.keys() - interrupts == {"new", "completion"}, "those two write a few lines and end"
