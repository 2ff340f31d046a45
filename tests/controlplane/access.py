"""How clients get in: kubeconfig files, the static token file, and who may come without a name.

Kubeconfig files carry their certificates inside, so that one file can be handed on. Anonymous requests reach the
health endpoints and nothing else.
"""

from __future__ import annotations

import base64
import csv
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.certificates import KeyPair

_HEALTH_PATHS = ("/healthz", "/livez", "/readyz")


class TokenFile:
    """The API server's `--token-auth-file`: static bearer tokens for named users. It is read at server start only."""

    def __init__(self, path: Path, users: Mapping[str, Sequence[str]]) -> None:
        self.path = path
        self._entries: dict[tuple[str, tuple[str, ...]], str] = {}
        for user, groups in users.items():
            self._entries[user, tuple(groups)] = secrets.token_hex(16)
        self._write()

    def find(self, user: str, groups: Sequence[str]) -> str | None:
        return self._entries.get((user, tuple(groups)))

    def add(self, user: str, groups: Sequence[str]) -> str:
        token = self._entries[user, tuple(groups)] = secrets.token_hex(16)
        self._write()
        return token

    def _write(self) -> None:
        self.path.touch(mode=0o600)
        with self.path.open("w", newline="") as file:
            rows = ([token, user, f"uid-{user}", ",".join(groups)] for (user, groups), token in self._entries.items())
            csv.writer(file).writerows(rows)


def write_authentication_config(path: Path) -> Path:
    """An AuthenticationConfiguration that lets anonymous requests see health and nothing else."""
    conditions = [{"path": health_path} for health_path in _HEALTH_PATHS]
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [],
        "anonymous": {"enabled": True, "conditions": conditions},
    }
    path.write_text(yaml.safe_dump(document))
    return path


def write_certificate_kubeconfig(path: Path, *, url: str, ca_file: Path, pair: KeyPair) -> Path:
    """A kubeconfig whose user is a client certificate."""
    user = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    return _write_kubeconfig(path, url=url, ca_file=ca_file, user=user)


def write_token_kubeconfig(path: Path, *, url: str, ca_file: Path, token: str) -> Path:
    """A kubeconfig whose user is a bearer token."""
    return _write_kubeconfig(path, url=url, ca_file=ca_file, user={"token": token})


def _write_kubeconfig(path: Path, *, url: str, ca_file: Path, user: dict[str, Any]) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "bayplan-test", "cluster": {"server": url, "certificate-authority-data": _base64(ca_file)}}
        ],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "bayplan-test", "context": {"cluster": "bayplan-test", "user": "user"}}],
        "current-context": "bayplan-test",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
