"""A package of `bayplan new` in an environment of its own: installed, checked, tested, built, and used by its name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: low, labels: {spread-team: "5"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: high, labels: {spread-team: "10"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  schedulerName: spread-team
  containers: [{name: main, image: "nginx:1"}]
"""
Run = Callable[..., str]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python with Bayplan from this repository and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    call(folder, sys.executable, "-m", "venv", str(folder))
    call(folder, str(folder / "bin/python"), "-m", "pip", "install", "-q", str(REPOSITORY))
    return folder / "bin"


def call(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.e2e
def test_the_package_does_in_a_new_environment_what_its_readme_and_workflow_say(
    environment: Path, tmp_path: Path
) -> None:
    call(tmp_path, str(environment / "bayplan"), "new", "spread-team")
    folder = tmp_path / "spread-team"

    call(folder, str(environment / "python"), "-m", "pip", "install", "-q", ".[test]")
    call(folder, str(environment / "ruff"), "check", ".")
    call(folder, str(environment / "mypy"))
    tested = call(folder, str(environment / "python"), "-m", "pytest", "-q", "-W", "error")
    assert " passed" in tested

    # By its name, from a folder that knows nothing of it: the entry point of the installed package.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "cluster.yaml").write_text(CLUSTER)
    (elsewhere / "scheduler.yaml").write_text((folder / "scheduler.yaml").read_text())
    assert "derived from the code" in call(elsewhere, str(environment / "bayplan"), "plugin", "show", "SpreadTeam")
    decided = call(
        elsewhere, str(environment / "bayplan"), "evaluate", "-f", "cluster.yaml", "--config", "scheduler.yaml"
    )
    assert "high" in decided.splitlines()[0]

    # As a wheel, in an environment where it is not installed.
    call(folder, str(environment / "python"), "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(elsewhere), ".")
    call(elsewhere, str(environment / "python"), "-m", "pip", "uninstall", "-q", "-y", "spread-team")
    (wheel,) = elsewhere.glob("*.whl")
    options = ("--config", "scheduler.yaml", "--plugin", wheel.name)
    assert "high" in call(elsewhere, str(environment / "bayplan"), "evaluate", "-f", "cluster.yaml", *options)
    rendered = call(elsewhere, str(environment / "bayplan"), "render", "manifests", *options)
    assert f"--plugin=/etc/bayplan/{wheel.name}" in rendered
