"""Candidates for the word at the cursor, without a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli.completion import FILES, candidates, print_candidates
from bayplan.cli.main import COMMANDS, main


def words(*given: str) -> list[str]:
    return [word for word, _ in candidates(list(given))]


def test_commands_are_completed_with_what_they_do() -> None:
    assert words("ex") == ["explain"]
    assert set(COMMANDS) <= set(words(""))
    assert words("help", "pend") == ["pending"]
    assert dict(candidates(["top"]))["top"] == COMMANDS["top"].summary


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_options_of_every_command_are_completed(command: str) -> None:
    assert "--help" in words(command, "--")
    assert words(command, "--no-such") == []


def test_values_of_options_are_completed() -> None:
    assert words("pending", "-o", "") == ["table", "wide", "json", "yaml", "name"]
    assert words("get", "pods", "--output", "j") == ["json"]
    assert candidates(["whatif", "-f", ""]) == FILES
    assert words("completion", "") == ["bash", "zsh", "fish"]
    assert "manifests" in words("render", "")
    assert "--config" in words("render", "manifests", "--con")


def test_contexts_come_from_the_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: blue, context: {cluster: c, user: u}}, {name: green, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {}}]\n"
    )

    assert words("pending", "--kubeconfig", str(file), "--context", "b") == ["blue"]


def test_nothing_is_said_where_nothing_answers(capsys: pytest.CaptureFixture[str]) -> None:
    status = print_candidates(["explain", "pod", "--server", "http://127.0.0.1:1", ""])

    assert status == 0
    assert capsys.readouterr().out == ":4\n"


def test_kinds_are_completed_before_names() -> None:
    assert words("explain", "") == ["pod", "node", "pod/", "node/"]
    assert words("explain", "po") == ["pod", "pod/"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_for_candidates(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "__complete" in capsys.readouterr().out


def test_bash_completes_with_the_script() -> None:
    script = subprocess.run(
        [sys.executable, "-m", "bayplan.cli", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    ask = f'bayplan() {{ "{sys.executable}" -m bayplan.cli "$@"; }}\n{script}\n'
    ask += 'COMP_WORDS=(bayplan pending -o w); COMP_CWORD=3; _bayplan; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["wide"]
