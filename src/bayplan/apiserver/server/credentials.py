"""Credentials kept in a data directory, so that a kubeconfig stays valid across restarts: token, keys, TLS.

Every file is readable by its owner only. Without a data directory nothing is written and everything is new on each
start.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bayplan.apiserver.protocol.identity import new_admin_token
from bayplan.apiserver.server.tls import ServingCertificate, make_certificate
from bayplan.apiserver.storage.private_files import make_private_file, make_private_folder, write_private


@dataclass(frozen=True, slots=True)
class ClusterSecrets:
    """The secrets of one cluster."""

    token: str
    signing_key: bytes
    certificate: ServingCertificate | None


def cluster_secrets(folder: Path | None, *, host: str, token: str | None, tls: bool) -> ClusterSecrets:
    """The secrets kept in a folder, made on first use; fresh ones without a folder."""
    certificate = _certificate(folder, host) if tls else None
    if folder is None:
        return ClusterSecrets(token or new_admin_token(), secrets.token_bytes(32), certificate)
    make_private_folder(folder)
    kept = token or _kept(folder / "admin.token", lambda: new_admin_token().encode()).decode().strip()
    return ClusterSecrets(kept, _kept(folder / "signing.key", lambda: secrets.token_bytes(32)), certificate)


def _kept(path: Path, make: Callable[[], bytes]) -> bytes:
    if not path.exists():
        write_private(path, make())
    make_private_file(path)
    return path.read_bytes()


def _certificate(folder: Path | None, host: str) -> ServingCertificate:
    if folder is None:
        return make_certificate(host)
    paths = [folder / name for name in (f"ca-{host}.crt", f"tls-{host}.crt", f"tls-{host}.key")]
    if not all(path.exists() for path in paths):
        make_private_folder(folder)
        made = make_certificate(host)
        for path, content in zip(paths, (made.authority, made.certificate, made.key), strict=True):
            write_private(path, content)
    for path in paths:
        make_private_file(path)
    return ServingCertificate(*(path.read_bytes() for path in paths))
