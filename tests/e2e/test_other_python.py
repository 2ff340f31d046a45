"""The same bytes of decisions by another version of Python: simulated, and replayed from a recording."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "simulate"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def interpreters() -> list[str]:
    """Other versions of Python on this machine that bayplan supports."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = []
    for version in VERSIONS:
        managed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
        program = str(managed[-1]) if managed else shutil.which(f"python{version}")
        if version != own and program is not None and _works(program):
            found.append(program)
    return found


def _works(program: str) -> bool:
    return subprocess.run([program, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0


def decisions(python: str, target: Path, *arguments: str) -> bytes:
    run = "import sys; from bayplan.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [python, "-c", run, "simulate", *arguments, "--decisions", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=target.parent)
    assert done.returncode == 0, done.stderr
    return target.read_bytes()


def test_another_python_makes_the_same_decisions_to_the_byte(tmp_path: Path) -> None:
    others = interpreters()
    if not others:
        pytest.skip(f"no other Python of {', '.join(VERSIONS)} is installed here")
    subprocess.run([others[0], "-m", "venv", str(tmp_path / "venv")], check=True)
    other = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([other, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
    workload = [str(EXAMPLES / "workload.yaml"), "--cluster", str(EXAMPLES / "cluster.yaml")]
    recording = [str(EXAMPLES / "cluster.recording")]

    for name, arguments in (("simulated", workload), ("replayed", recording)):
        own = decisions(sys.executable, tmp_path / f"{name}.own", *arguments)
        assert own == decisions(other, tmp_path / f"{name}.other", *arguments) != b""
