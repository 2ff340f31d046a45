from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.client.errors import KubeconfigError
from bayplan.client.kubeconfig_file import UserEntry, kubeconfig_paths, read_merged


def test_kubeconfig_is_a_list_and_home_is_the_default() -> None:
    assert kubeconfig_paths({"KUBECONFIG": "/a::/b:/a", "HOME": "/home/me"}) == [Path("/a"), Path("/b")]
    assert kubeconfig_paths({"HOME": "/home/me"}) == [Path("/home/me/.kube/config")]
    assert kubeconfig_paths({"KUBECONFIG": ":", "HOME": "/home/me"}) == [Path("/home/me/.kube/config")]


def test_the_first_file_wins_entry_by_entry(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(
        "contexts: [{name: x, context: {cluster: from-a, user: u}}]\nclusters: null\n"
        "users: [{name: u, user: {token: a}}]\n"
    )
    (tmp_path / "b").write_text(
        "current-context: x\ncontexts: [{name: x, context: {cluster: from-b}}, {name: y, context: {cluster: from-b}}]\n"
        "users: [{name: u, user: {token: b}}, {name: v}]\n"
    )

    merged = read_merged([tmp_path / "a", tmp_path / "missing", tmp_path / "b"])

    assert merged.current_context == "x"
    assert {name: context.cluster for name, context in merged.contexts.items()} == {"x": "from-a", "y": "from-b"}
    assert merged.users["u"][0].token == "a"
    assert merged.users["v"][0] == UserEntry()
    assert merged.files == [tmp_path / "a", tmp_path / "b"]


def test_an_empty_file_is_an_empty_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")

    assert read_merged([tmp_path / "a"], named_by="--kubeconfig").contexts == {}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"users:\n- name: x\n  user: {token: secret-value\n", "not YAML"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"a: &a [*a]", "not YAML"),
        (b"- " * 100_000 + b"a", "not YAML"),
        (b"a: " + b"[" * 100_000, "not YAML"),
        (b"just words", "not as expected"),
        (b"clusters: {name: x}", r"not as expected.*clusters"),
        (b"users: [{name: x, user: {token: 12345}}]", r"not as expected.*token"),
        (b"users: [{user: {token: secret-value}}]", r"not as expected.*name"),
        (b"users: [{name: x}, {name: x}]", "has `x` more than once under `users`"),
    ],
)
def test_a_broken_file_is_named_with_the_place_and_without_its_content(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)

    with pytest.raises(KubeconfigError, match=problem) as caught:
        read_merged([path], named_by="--kubeconfig")
    assert str(path) in caught.value.message
    assert "secret" not in str(caught.value)


def test_a_yaml_error_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: []\nusers:\n\t- bad\n")

    with pytest.raises(KubeconfigError, match=f"{path}:3`"):
        read_merged([path], named_by="--kubeconfig")


def test_a_file_that_was_named_must_exist_and_be_readable(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="does not exist") as caught:
        read_merged([tmp_path / "missing"], named_by="`clientConnection.kubeconfig` of the configuration")
    assert caught.value.hint.startswith("check `clientConnection.kubeconfig` of the configuration, or leave it out")
    with pytest.raises(KubeconfigError, match="cannot read the kubeconfig"):
        read_merged([tmp_path], named_by="--kubeconfig")


def test_a_user_does_not_show_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("users: [{name: u, user: {token: secret-value, password: secret-word}}]\n")

    assert "secret" not in repr(read_merged([tmp_path / "a"], named_by="--kubeconfig"))
