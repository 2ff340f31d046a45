from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml

from bayplan.client.access import ClusterAccess
from bayplan.client.credentials import StaticCredentials, TokenFileCredentials
from bayplan.client.errors import KubeconfigError
from bayplan.client.exec_plugin import ExecCredentials
from bayplan.client.kubeconfig import find_access
from bayplan.observe.clock import VirtualClock


def _written(
    folder: Path, *, cluster: dict[str, object] | None = None, user: dict[str, object] | None = None, **more: object
) -> Path:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "current-context": "x",
        **more,
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def _access(path: Path, clock: VirtualClock, **more: str) -> ClusterAccess:
    return find_access(clock=clock, environment={}, kubeconfig=path, **more)  # type: ignore[arg-type]


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_current_context_names_server_user_and_namespace(tmp_path: Path, clock: VirtualClock) -> None:
    access = _access(_written(tmp_path, user={"token": "secret-token"}), clock)

    assert (access.server, access.namespace) == ("https://api.example:6443", "team")
    assert access.source == f"context `x` of {tmp_path / 'config'}"
    identity = access.credentials.cached()
    assert identity is not None
    assert identity.authorization == "Bearer secret-token"
    assert "secret" not in repr(access)


@pytest.mark.parametrize(
    ("server", "cluster", "expected"),
    [
        ("https://a:1/", {}, "https://a:1"),
        ("https://a/k8s/c-1/", {}, "https://a/k8s/c-1"),
        ("a:6443", {}, "http://a:6443"),
        ("a:6443", {"insecure-skip-tls-verify": True}, "https://a:6443"),
    ],
)
def test_a_server_is_brought_into_one_form(
    tmp_path: Path, clock: VirtualClock, server: str, cluster: dict[str, object], expected: str
) -> None:
    assert _access(_written(tmp_path, cluster={"server": server, **cluster}), clock).server == expected


def test_data_wins_over_files_and_files_are_relative_to_the_kubeconfig(tmp_path: Path, clock: VirtualClock) -> None:
    files = _access(
        _written(
            tmp_path,
            cluster={"certificate-authority": "pki/ca.crt", "tls-server-name": "kube"},
            user={"client-certificate": "/abs/c.crt", "client-key": "c.key"},
        ),
        clock,
    ).tls
    assert files.authority is not None
    assert files.certificate is not None
    assert files.authority.path == tmp_path / "pki/ca.crt"
    assert (files.certificate.certificate.path, files.certificate.key.path) == (Path("/abs/c.crt"), tmp_path / "c.key")
    assert files.server_name == "kube"

    data = _access(
        _written(
            tmp_path,
            cluster={"certificate-authority": "pki/ca.crt", "certificate-authority-data": _b64("CA")},
            user={"client-certificate-data": _b64("CRT"), "client-key": "x", "client-key-data": _b64("KEY")},
        ),
        clock,
    ).tls
    assert data.authority is not None
    assert data.certificate is not None
    assert (data.authority.data, data.certificate.certificate.data, data.certificate.key.data) == (
        b"CA",
        b"CRT",
        b"KEY",
    )


async def test_a_token_file_wins_over_a_token(tmp_path: Path, clock: VirtualClock) -> None:
    (tmp_path / "token").write_text("from-file")

    access = _access(_written(tmp_path, user={"tokenFile": "token", "token": "inline"}), clock)

    assert isinstance(access.credentials, TokenFileCredentials)
    assert (await access.credentials.obtain()).authorization == "Bearer from-file"


def test_without_any_credential_one_is_anonymous(tmp_path: Path, clock: VirtualClock) -> None:
    path = _written(tmp_path, contexts=[{"name": "x", "context": {"cluster": "c"}}])

    credentials = _access(path, clock).credentials

    assert isinstance(credentials, StaticCredentials)
    assert credentials.cached().authorization is None


async def test_an_exec_plugin_is_told_about_the_cluster_when_it_asks(tmp_path: Path, clock: VirtualClock) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    seen = tmp_path / "seen"
    plugin = tmp_path / "plugin.sh"
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "t"}}
    plugin.write_text(f"#!/bin/sh\nprintf %s \"$KUBERNETES_EXEC_INFO\" > {seen}\necho '{json.dumps(answer)}'\n")
    plugin.chmod(0o755)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    path = _written(
        tmp_path,
        cluster={"certificate-authority": "ca.crt", "proxy-url": "http://p:1", "extensions": [extension]},
        user={
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "command": "./plugin.sh",
                "args": None,
                "provideClusterInfo": True,
                "interactiveMode": "Never",
            }
        },
    )

    access = _access(path, clock)
    identity = await access.credentials.obtain()

    assert isinstance(access.credentials, ExecCredentials)
    assert identity.authorization == "Bearer t"
    assert json.loads(seen.read_text())["spec"]["cluster"] == {
        "server": "https://api.example:6443",
        "certificate-authority-data": _b64("CA"),
        "proxy-url": "http://p:1",
        "config": {"audience": "me"},
    }


def test_impersonation_becomes_headers_one_for_each_group(tmp_path: Path, clock: VirtualClock) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"Reason/x": ["1"]}}

    headers = _access(_written(tmp_path, user=user), clock).headers

    assert headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-Reason%2Fx", "1"),
    )


def test_a_proxy_comes_from_the_cluster_else_from_the_environment(tmp_path: Path, clock: VirtualClock) -> None:
    path = _written(tmp_path, cluster={"proxy-url": "http://p:1"})
    assert _access(path, clock).proxy_url == "http://p:1"

    path = _written(tmp_path)
    access = find_access(clock=clock, environment={"HTTPS_PROXY": "http://q:1"}, kubeconfig=path)
    assert access.proxy_url == "http://q:1"


_V1 = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"current-context": ""}, "no current context(.|\n)*name one of `x`"),
        ({"current-context": "y"}, "no context `y`(.|\n)*did you mean|no context `y`(.|\n)*known: `x`"),
        ({"contexts": [{"name": "x", "context": {"cluster": "d"}}]}, "no cluster `d`"),
        (
            {"contexts": [{"name": "x", "context": {"cluster": "c", "user": "uu"}}]},
            "no user `uu`(.|\n)*did you mean `u`",
        ),
        ({"cluster": {"server": ""}}, "server `` is not a URL"),
        ({"cluster": {"server": "ftp://x"}}, "is not a URL"),
        ({"cluster": {"server": "https://x:port"}}, "is not a URL"),
        ({"cluster": {"certificate-authority-data": "???"}}, "`certificate-authority-data` is not base64"),
        (
            {"cluster": {"certificate-authority": "a", "insecure-skip-tls-verify": True}},
            "also `insecure-skip-tls-verify",
        ),
        ({"user": {"client-certificate": "a"}}, "a client certificate without its key"),
        ({"user": {"token": "secret", "username": "x"}}, "both a token and a user name"),
        ({"user": {"token": "secret\nX: y"}}, "characters that a header cannot"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "auth-provider `gcp` is not supported"),
        ({"user": {"exec": {"apiVersion": _V1 + "alpha1", "command": "x"}}}, "v1alpha1` is not supported"),
        ({"user": {"exec": {"apiVersion": _V1}}}, "has no `command`"),
        ({"user": {"exec": {"apiVersion": _V1, "command": "x", "interactiveMode": "Maybe"}}}, "`Maybe` is unknown"),
        ({"user": {"as-groups": ["x"]}}, "need `as`"),
        ({"user": {"as": "x\ny"}}, "an impersonation field"),
        ({"cluster": {"proxy-url": "socks5://secret@x:1"}}, "SOCKS is not supported"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(
    tmp_path: Path, clock: VirtualClock, changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(KubeconfigError, match=problem) as caught:
        _access(_written(tmp_path, **changes), clock)  # type: ignore[arg-type]
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_another_context_can_be_named(tmp_path: Path, clock: VirtualClock) -> None:
    contexts = [{"name": name, "context": {"cluster": "c", "namespace": name}} for name in ("x", "y")]

    assert _access(_written(tmp_path, contexts=contexts), clock, context="y").namespace == "y"


def test_the_places_are_tried_in_order(tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path)
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)

    by_list = find_access(clock=clock, environment={"KUBECONFIG": f"/missing:{path}", "HOME": str(home)})
    assert by_list.namespace == "team"

    with pytest.raises(KubeconfigError, match=r"no kubeconfig: `.*home/.kube/config` does not exist"):
        find_access(clock=clock, environment={"HOME": str(home)})

    (home / ".kube/config").write_text(path.read_text())
    assert find_access(clock=clock, environment={"HOME": str(home)}).namespace == "team"


def test_in_a_pod_the_service_account_is_the_last_place(tmp_path: Path, clock: VirtualClock) -> None:
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    with pytest.raises(KubeconfigError, match=r"service account file .* is missing"):
        find_access(clock=clock, environment=environment)
