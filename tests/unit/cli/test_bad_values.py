"""Values that no command can use: each is an error line with a next step, and none an internal error."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.cli.main import main


@pytest.fixture
def port() -> Iterator[int]:
    """One that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    status = main(arguments)
    out, err = capsys.readouterr()

    assert status == 2, err
    assert out == ""
    assert err.startswith("error: ")
    assert "internal error" not in err and "Errno" not in err
    return err


@pytest.mark.parametrize(
    "server", ["http://127.0.0.1:99999", "http://127.0.0.1:abc", "http://[::1", "https://127.0.0.1:1 2"]
)
def test_a_url_that_is_none_is_named_with_one_that_is(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    err = refused(capsys, "pending", "--server", server)

    assert f"error: --server {server}: " in err
    assert "hint: write a URL such as https://127.0.0.1:10259" in err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--dashboard-port={port}", "--dashboard-port: cannot listen on 127.0.0.1:{port}"),
        ("--port={port}", "address already in use"),
        ("--kubeconfig-out={folder}", "{folder}: Is a directory"),
        ("--data-dir={file}", "{file}: "),
    ],
)
def test_ports_and_files_of_up_that_cannot_be_had_are_named(
    option: str,
    said: str,
    port: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.touch()
    names = {"port": port, "folder": folder, "file": file}
    err = refused(capsys, "up", "--nodes=1", option.format(**names))

    assert said.format(**names) in err
    assert "hint: " in err


@pytest.mark.parametrize("command", ["run", "controllers", "up"])
@pytest.mark.parametrize("level", ["-3", "11"])
def test_the_verbosity_is_checked(command: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    err = refused(capsys, command, "--v", level)

    assert f"error: --v: the verbosity is a number from 0 to 10, not {level}" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["whatif", "--drain", ""],
        ["whatif", "--count", "0"],
        ["explain", "pod", "a", "--top", "-3"],
        ["evaluate", "-f", ""],
        ["get", ","],
        ["get", ""],
        ["explain", "/web"],
    ],
    ids=" ".join,
)
def test_nothing_and_less_than_one_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "hint: " in refused(capsys, *arguments)


def test_a_file_without_decisions_is_called_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other"
    file.write_bytes(b"\x00\xff\nkind: Pod\n")
    loose = refused(capsys, "explain", "pod", "web", "--file", "")
    folder = refused(capsys, "explain", "pod", "web", "--file", str(tmp_path))
    other = refused(capsys, "explain", "pod", "web", "--file", str(file))

    assert "does not exist" in loose
    assert f"`{tmp_path}/decisions.jsonl` does not exist" in folder
    assert other.startswith(f"error: `{file}` holds no decisions\nhint: `bayplan run --decision-file FILE`")
    assert loose.splitlines()[1] == folder.splitlines()[1]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("kind: Deployment\napiVersion: apps/v1\n", ", found `kind: Deployment`"),
        ("just text\n", ""),
        ("- 1\n", ""),
        ("items: []\n", ""),
    ],
)
def test_a_file_of_another_kind_is_answered_with_the_kind_that_is_expected(
    content: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, cluster = tmp_path / "other.yaml", Path(__file__).parents[3] / "examples/simulate/cluster.yaml"
    file.write_text(content)
    err = refused(capsys, "simulate", str(file), "--cluster", str(cluster))

    expected = f"expected a Workload of bayplan.dev/v1alpha1{found}; write `apiVersion: bayplan.dev/v1alpha1`"
    assert err.startswith(f"error: {file}:1: {expected} and `kind: Workload`")


def test_a_file_that_is_no_kubeconfig_is_not_asked_for_its_context(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.yaml"
    file.write_text("kind: Deployment\n")
    err = refused(capsys, "get", "pods", "--kubeconfig", str(file))

    assert err.startswith("error: the kubeconfig has no contexts\nhint: name another file with --kubeconfig")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--memory-limit=much", "--memory-limit: expected a size such as `2Gi`, found `much`"),
        ("--memory-limit=-1", "--memory-limit: expected a"),
        ("--namespace=A B", "--namespace: expected lower case letters, digits and hyphens, found `A B`"),
    ],
)
def test_manifests_that_no_api_server_takes_are_not_rendered(
    option: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"error: {said}" in refused(capsys, "render", "manifests", option)
