"""Every file and every command of the tutorials, in order, in a folder of its own, as a reader would do it.

Blocks with a file name are written; `sh` blocks are typed. A line under a command must be in its output (`...` at
either end stands for more of the line). A command that ends with `&` runs until the end of the page. Reading commands
are repeated for a while, since schedulers take a moment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Block, blocks
from tests.waiting import PATIENCE_SECONDS

TUTORIALS = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.name != "README.md")
_REPEATED = ("bayplan get ", "bayplan doctor ")


class Session:
    """A reader at a shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[str]] = []
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "200", "HOME": str(folder)}
        self.environment.pop("KUBECONFIG", None)

    def type(self, command: str, shown: list[str]) -> None:
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.environment[name] = value.replace("$PWD", str(self.folder))
        elif command.endswith("&"):
            self._start(command.removesuffix("&").strip())
        else:
            self._expect(command, shown)

    def _start(self, command: str) -> None:
        log = (self.folder / "background.log").open("w")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        log.close()
        self.running.append(process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (self.folder / "kubeconfig").exists():
            assert process.poll() is None, (self.folder / "background.log").read_text()
            assert time.monotonic() < deadline, f"`{command}` writes no kubeconfig"
            time.sleep(0.1)

    def _expect(self, command: str, shown: list[str]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            done = self._run(command)
            missing = [line for line in shown if not _is_shown(line, done.stdout)]
            if not missing or not command.startswith(_REPEATED) or time.monotonic() > deadline:
                break
            time.sleep(0.3)

        assert not missing, f"$ {command}\n{done.stdout}\ndoes not show {missing}"
        assert done.returncode == 0 or "wrong" in command, f"$ {command}\n{done.stdout}"

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )

    def close(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


def _is_shown(line: str, output: str) -> bool:
    wanted = line.strip().strip(".").strip()
    return (
        wanted in output
        if line.strip().startswith("...") or line.strip().endswith("...")
        else any(wanted in printed for printed in output.splitlines())
    )


@contextmanager
def _session(folder: Path) -> Iterator[Session]:
    session = Session(folder)
    try:
        yield session
    finally:
        session.close()


def _typed(block: Block) -> Iterator[tuple[str, list[str]]]:
    for part in f"\n{block.text}".split("\n$ ")[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        yield command, [line for line in shown if line.strip()]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_from_the_first_line_to_the_last(page: Path, tmp_path: Path) -> None:
    with _session(tmp_path) as session:
        for block in blocks(page):
            if block.title:
                (tmp_path / block.title).write_text(block.text)
            elif block.language == "sh":
                for command, shown in _typed(block):
                    session.type(command, shown)


def test_every_write_up_has_its_tutorial() -> None:
    folders = [path.name for path in (ROOT / "examples" / "references").iterdir() if path.is_dir()]

    others = {"expression-policy"}
    written = {path.stem for path in TUTORIALS}
    assert len(folders) == 5
    assert len(written - others) == 5
