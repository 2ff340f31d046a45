"""Names of pods at the Tab key of bash, zsh and fish, as `bayplan` and as `kubectl bayplan`; tmux is the terminal."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.controlplane.programs import program
from tests.unit.cli.live_cluster import Cluster
from tests.unit.cli.live_cluster import cluster as live

__all__ = ["live"]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "true", "source <({} completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D", "source <({} completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "true", "{} completion fish | source"),
}
"""How it is started, what it needs before completions, and how one is loaded."""
ASKED = [
    ("bash", "bayplan"),
    *((shell, words) for shell in ("zsh", "fish") for words in ("bayplan", "kubectl bayplan")),
]
"""For `kubectl`, bash needs a package of its own."""


class Screen:
    """A shell in tmux, and what its terminal shows."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        start = [*self._tmux, "new-session", "-d", "-x", "160", "-y", "50", shlex.join(command)]
        subprocess.run(start, env=dict(environment), check=True)

    def type(self, text: str, *keys: str) -> None:
        if text:
            subprocess.run([*self._tmux, "send-keys", "-l", text], check=True)
        for key in keys:
            subprocess.run([*self._tmux, "send-keys", key], check=True)

    def wait_for(self, said: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while said not in (shown := self._shown()):
            assert time.monotonic() < deadline, f"never showed {said!r}:\n{shown}"
            time.sleep(0.05)

    def _shown(self) -> str:
        return subprocess.run([*self._tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=True)


@pytest.fixture
def environment(live: Cluster, tmp_path: Path) -> dict[str, str]:
    """With `bayplan` and a kubectl that completes plugins on the path."""
    (tmp_path / "kubectl").symlink_to(program("kubectl"))
    path = f"{Path(sys.executable).parent}:{tmp_path}:{live.environment['PATH']}"
    return {**live.environment, "PATH": path, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "SHELL": "/bin/sh"}


@pytest.fixture
def screen(request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path) -> Iterator[Screen]:
    """A shell with the completion of a program."""
    shell, words = request.param
    command, before, load = SHELLS[shell]
    for needed in (command[0], "tmux"):
        assert shutil.which(needed), f"install {needed}; .ci/run does"
    found = Screen(command, environment, tmp_path)
    try:
        for line in (before, load.format(words.partition(" ")[0]), "clear; echo rea''dy"):
            found.type(line, "Enter")
        found.wait_for("ready")
        yield found
    finally:
        found.close()


@pytest.mark.parametrize(("screen", "words"), [(each, each[1]) for each in ASKED], indirect=["screen"], ids=str)
def test_commands_options_and_names_of_pods_are_completed(screen: Screen, words: str) -> None:
    for given, found in (
        ("explain pod bi", "explain pod big"),
        ("expl", "explain"),
        ("pending -o wi", "pending -o wide"),
    ):
        screen.type(f"{words} {given}", "Tab")
        screen.wait_for(f"{words} {found}")
        screen.type("", "C-u")
    screen.type(f"{words} explain pod --name", "Tab")
    screen.wait_for(f"{words} explain pod --namespace")


def test_kubectl_asks_us_for_candidates(live: Cluster, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [program("kubectl"), "__complete", "bayplan", "explain", "pod", "b"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )

    assert done.stdout.splitlines()[0].split("\t") == ["big", "unschedulable"]
    assert done.stdout.splitlines()[-1] == ":4"
