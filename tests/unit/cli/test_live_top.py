"""`bayplan top` on a terminal while the scheduler answers, is silent, and is gone."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import yaml
from tests.unit.cli.live_cluster import Cluster, Terminal, cluster

__all__ = ["cluster"]

pytestmark = pytest.mark.timeout(300)


class Way:
    """A port of this machine that leads to the scheduler; it may be silent, or gone."""

    def __init__(self, cluster: Cluster) -> None:
        document = yaml.safe_load(cluster.kubeconfig.read_text())
        scheduler = document["clusters"][0]["cluster"]["extensions"][0]["extension"]
        parts = urlsplit(scheduler["server"])
        assert parts.hostname is not None and parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._flows = threading.Event()
        self._flows.set()
        self._kept: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/?token={scheduler['token']}"
        self._serve()

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            onward = socket.create_connection(self._target)
            self._kept += [connection, onward]
            for one, other in ((connection, onward), (onward, connection)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while piece := one.recv(65536):
                self._flows.wait()
                other.sendall(piece)
        except OSError:
            pass
        other.close()

    def be_silent(self) -> None:
        self._flows.clear()

    def be_gone(self) -> None:
        # A blocked `accept` keeps the port open until it returns.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._kept:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._kept = []

    def be_back(self) -> None:
        self._flows.set()
        if self._listener.fileno() < 0:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._serve()

    def close(self) -> None:
        self._flows.set()
        if self._listener.fileno() >= 0:
            self.be_gone()


@pytest.fixture
def way(cluster: Cluster) -> Iterator[Way]:
    found = Way(cluster)
    yield found
    found.close()


def test_top_stays_open_while_the_scheduler_is_silent_and_continues_afterwards(cluster: Cluster, way: Way) -> None:
    terminal = Terminal(cluster, "top", "--interval", "0.3", "--server", way.url)
    terminal.wait_for("bound / s")
    way.be_silent()
    terminal.wait_for(f"s old: http://127.0.0.1:{way.port} has been silent for")
    way.be_back()
    terminal.wait_for_picture(without="silent")
    way.be_silent()
    terminal.wait_for("has been silent for")
    terminal.press("q")

    assert terminal.end(seconds=10) == 0


def test_top_stays_open_while_the_scheduler_is_gone_and_continues_when_it_is_back(cluster: Cluster, way: Way) -> None:
    terminal = Terminal(cluster, "top", "--interval", "0.3", "--server", way.url)
    terminal.wait_for("bound / s")
    way.be_gone()
    terminal.wait_for(f"s old: http://127.0.0.1:{way.port} does not answer: connection refused")
    way.be_back()
    terminal.wait_for_picture(without="does not answer")
    way.be_gone()
    terminal.wait_for("does not answer")
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.end(seconds=10) == 130
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(("key", "status"), [("q", 0), ("Ctrl-C", 130)])
def test_keys_end_top_while_no_answer_has_come_at_all(cluster: Cluster, way: Way, key: str, status: int) -> None:
    way.be_silent()
    terminal = Terminal(cluster, "top", "--server", way.url)
    terminal.wait_for(f"asking http://127.0.0.1:{way.port}")
    terminal.wait_for("has been silent for")
    if key == "q":
        terminal.press(key)
    else:
        terminal.process.send_signal(signal.SIGINT)

    assert terminal.end(seconds=10) == status


def test_a_scheduler_that_is_not_there_at_the_start_is_an_error_that_stays_readable(cluster: Cluster, way: Way) -> None:
    way.be_gone()
    terminal = Terminal(cluster, "top", "--server", way.url)
    status = terminal.end()

    assert status == 2
    assert f"error: http://127.0.0.1:{way.port} does not answer: connection refused" in terminal.text
    assert "hint: name the scheduler with --server" in terminal.text
