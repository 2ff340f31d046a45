"""The two kubectls that the embedded cluster is tried with, each by its path: the one built with the control plane, and
Debian's, which is many versions older and asks for other things.

Debian's is the installed one, or else it is taken from the package without installing it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.controlplane.programs import program

BUILT, DEBIAN = "v1.36 as built", "Debian's kubernetes-client"
_PACKAGE = "kubernetes-client"
_TIMEOUT_SECONDS = 120


class KubectlAbsent(Exception):
    """The message says which kubectl, and how to get it."""


def kubectl_path(which: str) -> Path:
    return program("kubectl") if which == BUILT else debian_kubectl()


def debian_kubectl() -> Path:
    installed = Path("/usr/bin/kubectl")
    if installed.is_file() and _says("dpkg", "-S", str(installed)).startswith(f"{_PACKAGE}:"):
        return installed
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayplan" / _PACKAGE
    unpacked = cache / "usr" / "bin" / "kubectl"
    if not unpacked.is_file():
        _unpack(cache)
    if not unpacked.is_file():
        raise KubectlAbsent(f"{DEBIAN} is absent: `apt-get install {_PACKAGE}` where there is apt")
    return unpacked


def _unpack(target: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        _says("apt-get", "download", _PACKAGE, folder=folder)
        for package in Path(folder).glob("*.deb"):
            target.mkdir(parents=True, exist_ok=True)
            _says("dpkg", "-x", str(package), str(target))


def _says(*command: str, folder: str | None = None) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    return done.stdout
