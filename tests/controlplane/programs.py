"""Where the real programs are: the cache folder that `build.sh` fills.

The folder's name is computed in one place, the build script, so that this side can never look elsewhere. Nothing is
built from here: a build takes minutes and belongs to `make controlplane`, not to an import or a fixture.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

BUILD_SCRIPT = Path(__file__).with_name("build.sh")
PROGRAMS = ("etcd", "kube-apiserver", "kubectl", "kube-scheduler", "helm")
SKIP_SENTENCE = "e2e skipped: Go is not installed; run `make controlplane` where it is"


class ProgramMissing(Exception):
    """A program of the control plane is not in the cache folder."""


def cache_folder() -> Path:
    """The folder that holds the programs of the pinned versions, whether they are built yet or not."""
    answer = subprocess.run([str(BUILD_SCRIPT), "--where"], capture_output=True, text=True, check=True)
    return Path(answer.stdout.strip())


def program(name: str) -> Path:
    """The path of one built program; raises `ProgramMissing` with the command that builds it."""
    path = cache_folder() / name
    if not _is_executable(path):
        raise ProgramMissing(f"`{name}` is not in {path.parent}\nhint: run `make controlplane`")
    return path


def missing_programs() -> list[str]:
    """The names of the programs that are still to be built, in build order."""
    folder = cache_folder()
    return [name for name in PROGRAMS if not _is_executable(folder / name)]


def skip_reason() -> str | None:
    """The sentence to skip with where nothing can run, or None where it can or could.

    Programs that are absent although Go is there are no reason to skip: one command builds them.
    """
    if missing_programs() and shutil.which("go") is None:
        return SKIP_SENTENCE
    return None


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
