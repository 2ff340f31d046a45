"""Small manifests to run commands on, and a way to run them in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog

from bayplan.cli.main import main

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: small}
status: {capacity: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: large}
status: {capacity: {cpu: "8", memory: 16Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting}
spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: running}
spec: {nodeName: small, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, resources: {requests: {cpu: "1500m", memory: 1Gi}}}]}
"""


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


Run = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a cluster and a pod in it."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "pod.yaml").write_text(POD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.delenv("COLUMNS", raising=False)

    def run_command(*arguments: str) -> Ran:
        capfd.readouterr()
        status = main(arguments)
        return Ran(status, *capfd.readouterr())

    yield run_command
    structlog.reset_defaults()
