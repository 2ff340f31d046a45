"""The same kubeconfig means the same to us and to the official Python client: server, trust, certificate, token."""

from __future__ import annotations

import asyncio
import base64
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from kubernetes.client import Configuration
from kubernetes.config import load_kube_config

from bayplan.client.kubeconfig import find_access
from bayplan.client.tls import Pem
from bayplan.observe.clock import VirtualClock

from .support import Certificates


@dataclass(frozen=True)
class Meaning:
    server: str
    authority: bytes | None
    certificate: bytes | None
    key: bytes | None
    authorization: str | None
    is_verified: bool
    server_name: str | None
    proxy: str | None


def _ours(paths: list[Path], context: str | None) -> Meaning:
    environment = {**os.environ, "KUBECONFIG": os.pathsep.join(map(str, paths))}
    access = find_access(clock=VirtualClock(), environment=environment, context=context)
    identity = asyncio.run(access.credentials.obtain())
    pair = identity.certificate or access.tls.certificate
    return Meaning(
        access.server,
        _read(access.tls.authority),
        _read(pair.certificate) if pair else None,
        _read(pair.key) if pair else None,
        identity.authorization,
        not access.tls.insecure,
        access.tls.server_name,
        access.proxy_url,
    )


def _read(pem: Pem | None) -> bytes | None:
    return pem.read() if pem else None


def _theirs(paths: list[Path], context: str | None, folder: Path) -> Meaning:
    configuration = Configuration()
    load_kube_config(
        config_file=os.pathsep.join(map(str, paths)),
        context=context,
        client_configuration=configuration,
        persist_config=False,
        temp_file_path=str(folder),
    )

    def content(path: str | None) -> bytes | None:
        return Path(path).read_bytes() if path else None

    return Meaning(
        configuration.host,
        content(configuration.ssl_ca_cert),
        content(configuration.cert_file),
        content(configuration.key_file),
        configuration.api_key.get("BearerToken"),
        configuration.verify_ssl,
        configuration.tls_server_name,
        configuration.proxy,
    )


def _document(cluster: dict[str, object], user: dict[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


_EXEC_SCRIPT = """#!/bin/sh
cat <<'END'
{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/%s", "status": %s}
END
"""


def _files(folder: Path, certificates: Certificates) -> dict[str, dict[str, object]]:
    """Kubeconfigs by what is special about them."""
    for name, content in {
        "ca.crt": certificates.authority,
        "client.crt": certificates.client_certificate,
        "client.key": certificates.client_key,
        "token": b"token-of-file",
    }.items():
        (folder / name).write_bytes(content)
    for version in ("v1", "v1beta1"):
        plugin = folder / f"plugin-{version}.sh"
        plugin.write_text(_EXEC_SCRIPT % (version, '{"token": "token-of-plugin"}'))
        plugin.chmod(0o755)

    def data(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    def plugin_user(version: str) -> dict[str, object]:
        command = str(folder / f"plugin-{version}.sh")
        return {
            "exec": {
                "apiVersion": f"client.authentication.k8s.io/{version}",
                "command": command,
                "interactiveMode": "Never",
            }
        }

    ca_file: dict[str, object] = {"certificate-authority": "ca.crt"}
    ca_data: dict[str, object] = {"certificate-authority-data": data(certificates.authority)}
    return {
        "anonymous": _document({}, {}),
        "token": _document(ca_file, {"token": "abc"}),
        "token file": _document(ca_data, {"tokenFile": "token"}),
        "basic": _document(ca_file, {"username": "jane", "password": "word"}),
        "certificate files": _document(ca_file, {"client-certificate": "client.crt", "client-key": "client.key"}),
        "certificate data": _document(
            ca_data,
            {
                "client-certificate-data": data(certificates.client_certificate),
                "client-key-data": data(certificates.client_key),
            },
        ),
        "certificate and token": _document(
            ca_file, {"client-certificate": "client.crt", "client-key": "client.key", "token": "abc"}
        ),
        "data over file": _document({**ca_data, "certificate-authority": "missing"}, {"token": "abc"}),
        "insecure": _document({"insecure-skip-tls-verify": True}, {"token": "abc"}),
        "server name": _document({**ca_file, "tls-server-name": "kubernetes.default"}, {"token": "abc"}),
        "proxy": _document({**ca_file, "proxy-url": "http://proxy.example:3128"}, {"token": "abc"}),
        "path and slash": _document({**ca_file, "server": "https://rancher.example/k8s/c-1/"}, {"token": "abc"}),
        "plain http": _document({"server": "http://127.0.0.1:8001"}, {}),
        "exec v1": _document(ca_file, plugin_user("v1")),
        "exec v1beta1": _document(ca_file, plugin_user("v1beta1")),
    }


CASES = [
    "anonymous",
    "token",
    "token file",
    "basic",
    "certificate files",
    "certificate data",
    "certificate and token",
    "data over file",
    "insecure",
    "server name",
    "proxy",
    "path and slash",
    "plain http",
    "exec v1",
    "exec v1beta1",
]


@pytest.mark.parametrize("case", CASES)
def test_one_file_means_the_same_to_both(
    case: str, tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    documents = _files(tmp_path, certificates)
    assert list(documents) == CASES
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(documents[case]))

    assert _ours([path], None) == _theirs([path], None, tmp_path)


def test_several_files_are_merged_alike(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    documents = _files(tmp_path, certificates)
    first, second = documents["token"], documents["basic"]
    second["users"] = [{"name": "v", "user": {"token": "of-v"}}, {"name": "u", "user": {"token": "shadowed"}}]
    second["contexts"] = [{"name": "y", "context": {"cluster": "c", "user": "v"}}]
    del second["current-context"]
    paths = [tmp_path / "one", tmp_path / "missing", tmp_path / "two"]
    paths[0].write_text(yaml.safe_dump(first))
    paths[2].write_text(yaml.safe_dump(second))

    for context in (None, "x", "y"):
        assert _ours(paths, context) == _theirs(paths, context, tmp_path)
