"""build.sh with a stand-in for the Go tool: what is built, when, and what is said when it cannot be."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.controlplane.programs import BUILD_SCRIPT, PROGRAMS

_TOOLS = (
    "bash",
    "env",
    "awk",
    "cut",
    "cat",
    "head",
    "tr",
    "sha256sum",
    "uname",
    "dirname",
    "mkdir",
    "mv",
    "rm",
    "nice",
)
_OPTIONAL_TOOLS = ("flock", "shasum", "sleep")
_FAKE_GO = """#!/usr/bin/env bash
set -eu
printf '%s\\n' "$*" >>"$GO_CALLS"
if [ -n "${GO_FAILS:-}" ]; then echo 'no such module' >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
sleep "${GO_SECONDS:-0}"
printf '#!/bin/sh\\n' >"$2"
chmod 755 "$2"
"""


@dataclass(frozen=True)
class Workshop:
    """A copy of the script and its modules, with a PATH that holds just what a test wants it to hold."""

    root: Path

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def go_sum(self) -> Path:
        return self.root / "controlplane" / "go" / "etcd" / "go.sum"

    def environment(self, **extra: str) -> dict[str, str]:
        calls = str(self.root / "go-calls")
        return {"PATH": str(self.root / "bin"), "XDG_CACHE_HOME": str(self.cache), "GO_CALLS": calls, **extra}

    def build(self, *args: str, **extra: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.root / "controlplane" / "build.sh"), *args]
        return subprocess.run(command, env=self.environment(**extra), capture_output=True, text=True, check=False)

    def go_calls(self) -> list[str]:
        calls = self.root / "go-calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def remove_go(self) -> None:
        (self.root / "bin" / "go").unlink()


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (*_TOOLS, *_OPTIONAL_TOOLS, "chmod"):
        found = shutil.which(tool)
        if found is not None:
            (tools / tool).symlink_to(found)
    (tools / "go").write_text(_FAKE_GO)
    (tools / "go").chmod(0o755)
    shutil.copytree(BUILD_SCRIPT.parent / "go", tmp_path / "controlplane" / "go")
    shutil.copy(BUILD_SCRIPT, tmp_path / "controlplane" / "build.sh")
    return Workshop(tmp_path)


def test_the_default_programs_land_in_the_folder_of_the_last_line(workshop: Workshop) -> None:
    done = workshop.build()

    folder = Path(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert folder.is_relative_to(workshop.cache)
    assert sorted(PROGRAMS) == sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert [f"[{number}/5]" in done.stderr for number in range(1, 6)] == [True] * 5


def test_a_second_call_builds_nothing_and_needs_no_go(workshop: Workshop) -> None:
    first = workshop.build()
    workshop.remove_go()

    second = workshop.build()

    assert second.returncode == 0
    assert second.stdout == first.stdout
    assert len(workshop.go_calls()) == len(PROGRAMS)


def test_only_selects_and_the_controller_manager_is_built_when_named(workshop: Workshop) -> None:
    folder = Path(workshop.build("--only", "helm,kube-controller-manager").stdout.strip())

    assert {"helm", "kube-controller-manager"} == {path.name for path in folder.iterdir() if path.name[0] != "."}


def test_the_kubernetes_version_is_stamped_where_clients_look(workshop: Workshop) -> None:
    workshop.build("--only", "kube-apiserver")

    (call,) = workshop.go_calls()
    assert "-X k8s.io/component-base/version.gitVersion=v1.36." in call
    assert "-X k8s.io/component-base/version.gitMinor=36" in call
    assert "-X k8s.io/client-go/pkg/version.gitVersion=v1.36." in call
    assert "-mod=readonly" in call
    assert call.endswith("k8s.io/kubernetes/cmd/kube-apiserver")


def test_another_dependency_is_another_folder(workshop: Workshop) -> None:
    before = workshop.build("--where").stdout
    workshop.go_sum.write_text(workshop.go_sum.read_text() + "example.test/module v1.0.0 h1:abc=\n")

    assert workshop.build("--where").stdout != before


def test_a_fixed_folder_is_rebuilt_when_a_dependency_changes(workshop: Workshop) -> None:
    folder = str(workshop.root / "fixed")
    workshop.build("--only", "etcd", BAYPLAN_CONTROLPLANE_DIR=folder)
    workshop.go_sum.write_text(workshop.go_sum.read_text() + "example.test/module v1.0.0 h1:abc=\n")

    done = workshop.build("--only", "etcd", BAYPLAN_CONTROLPLANE_DIR=folder)

    assert done.stdout.strip() == folder
    assert len(workshop.go_calls()) == 2


def test_without_go_it_says_so_with_status_3(workshop: Workshop) -> None:
    workshop.remove_go()

    done = workshop.build()

    assert done.returncode == 3
    assert done.stdout == ""
    assert "Go is not installed" in done.stderr
    assert "hint: install Go" in done.stderr


def test_a_failed_build_leaves_nothing_half_made(workshop: Workshop) -> None:
    done = workshop.build("--only", "etcd", GO_FAILS="yes")

    assert done.returncode == 1
    assert done.stdout == ""
    assert "building etcd failed" in done.stderr
    folder = Path(workshop.build("--where").stdout.strip())
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_an_unknown_program_is_refused_with_the_known_ones(workshop: Workshop) -> None:
    done = workshop.build("--only", "kubelet")

    assert done.returncode == 2
    assert "unknown program `kubelet`; known: etcd " in done.stderr


def test_two_builds_at_once_build_once(workshop: Workshop) -> None:
    command = [str(workshop.root / "controlplane" / "build.sh"), "--only", "etcd"]
    environment = workshop.environment(GO_SECONDS="0.2")
    builds = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(2)
    ]
    printed = {build.communicate()[0] for build in builds}

    assert [build.returncode for build in builds] == [0, 0]
    assert len(printed) == 1
    # macOS has no flock: there the second build is wasted work, and harmless.
    assert len(workshop.go_calls()) == (1 if shutil.which("flock") else 2)
