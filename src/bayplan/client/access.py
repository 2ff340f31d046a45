"""The data that a transport needs to reach one API server as one user, and the access that a service account gives.

The environment is a parameter, here and in `kubeconfig`: no module of this package reads it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bayplan.client.credentials import Credentials, TokenFileCredentials
from bayplan.client.errors import KubeconfigError
from bayplan.client.tls import Pem, TlsSettings
from bayplan.observe.clock import Clock

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """One server and one user. `source` describes in words where the access comes from; `headers` are sent with every
    request."""

    server: str
    credentials: Credentials = field(repr=False)
    tls: TlsSettings = field(default_factory=TlsSettings)
    proxy_url: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    namespace: str = "default"
    source: str = ""


def in_cluster_access(
    *, clock: Clock, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT_FOLDER
) -> ClusterAccess:
    """The access of a pod's service account. The token is read again as the kubelet rotates it."""
    address, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not address or not port:
        raise KubeconfigError(
            "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
            hint="name a kubeconfig with --kubeconfig or KUBECONFIG",
        )
    for name in ("token", "ca.crt"):
        if not (folder / name).is_file():
            raise KubeconfigError(
                f"the service account file `{folder / name}` is missing",
                hint="set `automountServiceAccountToken: true` on the pod or its service account",
            )
    return ClusterAccess(
        server=f"https://{f'[{address}]' if ':' in address else address}:{port}",
        credentials=TokenFileCredentials(folder / "token", clock=clock),
        tls=TlsSettings(authority=Pem(path=folder / "ca.crt")),
        namespace=_namespace(folder),
        source="the service account of this pod",
    )


def _namespace(folder: Path) -> str:
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
