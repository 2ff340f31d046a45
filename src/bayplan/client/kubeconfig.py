"""From a kubeconfig context to a `ClusterAccess`: server, trust, credential, proxy.

`find_access` is the entry point: the named kubeconfig, else KUBECONFIG, else ~/.kube/config, else the service account
of the pod. Precedence inside a user entry is kubectl's: data over file, token file over token, token over password over
exec plugin. What kubectl calls ambiguous (token and password together) is refused here too, and so are the auth
providers that exec plugins replaced.
"""

from __future__ import annotations

import base64
import binascii
import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from bayplan.client.access import ClusterAccess, in_cluster_access
from bayplan.client.credentials import (
    Credentials,
    StaticCredentials,
    TokenFileCredentials,
    basic,
    bearer,
    is_header_safe,
)
from bayplan.client.errors import KubeconfigError
from bayplan.client.exec_plugin import SUPPORTED_VERSIONS, ExecCredentials, ExecPlugin, resolve_command
from bayplan.client.kubeconfig_file import ClusterEntry, Exec, Merged, UserEntry, kubeconfig_paths, read_merged
from bayplan.client.proxy import proxy_for
from bayplan.client.tls import ClientCertificate, Pem, TlsSettings
from bayplan.observe.clock import Clock

_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def find_access(
    *,
    clock: Clock,
    environment: Mapping[str, str],
    kubeconfig: Path | None = None,
    context: str | None = None,
    named_by: str = "--kubeconfig",
) -> ClusterAccess:
    """The access to use, in kubectl's order of places. Raises `KubeconfigError` that names the places tried.

    `named_by` is the option or field that `kubeconfig` comes from, for messages.
    """
    if kubeconfig is not None:
        merged = read_merged([kubeconfig], named_by=named_by)
    else:
        merged = read_merged(kubeconfig_paths(environment))
    if merged.files:
        return access_from(merged, clock=clock, environment=environment, context=context)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster_access(clock=clock, environment=environment)
    tried = ", ".join(f"`{path}`" for path in kubeconfig_paths(environment))
    raise KubeconfigError(
        f"no kubeconfig: {tried} does not exist, and this is not a pod in a cluster",
        hint="name one with --kubeconfig or KUBECONFIG, or start a cluster with `bayplan up`",
    )


def access_from(
    merged: Merged, *, clock: Clock, environment: Mapping[str, str], context: str | None = None
) -> ClusterAccess:
    """Resolve one context of merged kubeconfig files."""
    name = context or merged.current_context
    if not name and not merged.contexts:
        raise KubeconfigError(
            "the kubeconfig has no contexts",
            hint="name another file with --kubeconfig or KUBECONFIG; `bayplan up` writes one",
        )
    if not name:
        raise KubeconfigError(
            "the kubeconfig has no current context",
            hint=f"name one of {_listed(merged.contexts)} with --context, or `kubectl config use-context NAME`",
        )
    chosen = merged.contexts.get(name)
    if chosen is None:
        raise _unknown("context", name, merged.contexts)
    if chosen.cluster not in merged.clusters:
        raise _unknown("cluster", chosen.cluster, merged.clusters)
    if chosen.user and chosen.user not in merged.users:
        raise _unknown("user", chosen.user, merged.users)
    cluster, cluster_folder = merged.clusters[chosen.cluster]
    user, user_folder = merged.users.get(chosen.user, (UserEntry(), Path()))
    tls = _tls(cluster, cluster_folder, user, user_folder)
    server = _server(cluster, tls)
    credentials = _Resolver(clock=clock, environment=environment, cluster=cluster, tls=tls, server=server).credentials(
        user, user_folder
    )
    return ClusterAccess(
        server=server,
        credentials=credentials,
        tls=tls,
        proxy_url=proxy_for(server, cluster.proxy_url or None, environment),
        headers=_impersonation(user),
        namespace=chosen.namespace or "default",
        source=f"context `{name}` of {', '.join(str(path) for path in merged.files)}",
    )


def _server(cluster: ClusterEntry, tls: TlsSettings) -> str:
    """The server's URL with a scheme and without a trailing slash; without a scheme it is HTTPS if TLS is set up."""
    server = cluster.server.strip()
    if server and "://" not in server:
        uses_tls = tls.authority is not None or tls.certificate is not None or tls.insecure
        server = f"{'https' if uses_tls else 'http'}://{server}"
    try:
        parts = urlsplit(server)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
        _ = parts.port
    except ValueError:
        is_usable = False
    if not is_usable:
        raise KubeconfigError(
            f"the cluster's server `{cluster.server}` is not a URL", hint="write it as `https://address:port`"
        )
    return server.rstrip("/")


def _tls(cluster: ClusterEntry, cluster_folder: Path, user: UserEntry, user_folder: Path) -> TlsSettings:
    authority = _pem(
        cluster.certificate_authority_data,
        cluster.certificate_authority,
        folder=cluster_folder,
        field="certificate-authority-data",
    )
    if authority is not None and cluster.insecure_skip_tls_verify:
        raise KubeconfigError(
            "the cluster names a certificate authority and also `insecure-skip-tls-verify: true`",
            hint="remove one of the two; keep the certificate authority if you can",
        )
    certificate = _pem(
        user.client_certificate_data, user.client_certificate, folder=user_folder, field="client-certificate-data"
    )
    key = _pem(user.client_key_data, user.client_key, folder=user_folder, field="client-key-data")
    if (certificate is None) != (key is None):
        raise KubeconfigError(
            "the user has a client certificate without its key, or a key without its certificate",
            hint="`client-certificate(-data)` and `client-key(-data)` belong together",
        )
    return TlsSettings(
        authority=authority,
        certificate=ClientCertificate(certificate, key) if certificate and key else None,
        server_name=cluster.tls_server_name or None,
        insecure=cluster.insecure_skip_tls_verify,
    )


def _pem(data: str, path: str, *, folder: Path, field: str) -> Pem | None:
    if data:
        try:
            return Pem(data=base64.b64decode("".join(data.split()), validate=True))
        except (binascii.Error, ValueError):
            raise KubeconfigError(
                f"`{field}` is not base64",
                hint="it holds a PEM file in base64; use the field without `-data` for a path",
            ) from None
    return Pem(path=folder / path) if path else None


class _Resolver:
    """Chooses the credentials of a user entry; exec plugins may also need the cluster entry."""

    def __init__(
        self, *, clock: Clock, environment: Mapping[str, str], cluster: ClusterEntry, tls: TlsSettings, server: str
    ) -> None:
        self._clock = clock
        self._environment = environment
        self._cluster = cluster
        self._tls = tls
        self._server = server

    def credentials(self, user: UserEntry, folder: Path) -> Credentials:
        self._refuse_ambiguous(user)
        if user.token_file:
            return TokenFileCredentials(folder / user.token_file, clock=self._clock, fallback_token=user.token or None)
        if user.token:
            return StaticCredentials(bearer(user.token.strip()))
        if user.username:
            return StaticCredentials(basic(user.username, user.password))
        if user.exec is not None:
            return self._exec(user.exec, folder)
        return StaticCredentials()

    def _refuse_ambiguous(self, user: UserEntry) -> None:
        if (user.token or user.token_file) and user.username:
            raise KubeconfigError("the user has both a token and a user name", hint="keep one way to identify")
        if user.token and not is_header_safe(user.token.strip()):
            raise KubeconfigError("the user's `token` holds characters that a header cannot", hint="log in again")
        if user.auth_provider is not None:
            raise KubeconfigError(
                f"the auth-provider `{user.auth_provider.name}` is not supported",
                hint="use the exec plugin that replaced it (for OIDC: kubelogin; for clouds: their own plugin)",
            )

    def _exec(self, exec_: Exec, folder: Path) -> ExecCredentials:
        if exec_.api_version not in SUPPORTED_VERSIONS:
            raise KubeconfigError(
                f"the exec plugin's apiVersion `{exec_.api_version}` is not supported",
                hint=f"use {' or '.join(SUPPORTED_VERSIONS)}; a newer version of the plugin will know it",
            )
        if not exec_.command:
            raise KubeconfigError("the exec plugin has no `command`", hint="name the program to run")
        mode = exec_.interactive_mode or "IfAvailable"
        if mode not in _INTERACTIVE_MODES:
            raise KubeconfigError(
                f"the exec plugin's interactiveMode `{mode}` is unknown", hint=f"use {', '.join(_INTERACTIVE_MODES)}"
            )
        plugin = ExecPlugin(
            api_version=exec_.api_version,
            command=resolve_command(exec_.command, folder),
            args=tuple(exec_.args),
            env={variable.name: variable.value for variable in exec_.env},
            install_hint=exec_.install_hint,
            interactive_mode=mode,
            cluster=self._cluster_info() if exec_.provide_cluster_info else None,
        )
        return ExecCredentials(plugin, clock=self._clock, environment=self._environment)

    def _cluster_info(self) -> dict[str, object]:
        """The cluster information for `provideClusterInfo`, without fields that are not set."""
        authority = base64.b64encode(self._tls.authority.read()).decode() if self._tls.authority else None
        config = next((item.extension for item in self._cluster.extensions if item.name == _EXEC_EXTENSION), None)
        fields: dict[str, object] = {
            "server": self._server,
            "tls-server-name": self._tls.server_name,
            "insecure-skip-tls-verify": self._tls.insecure or None,
            "certificate-authority-data": authority,
            "proxy-url": self._cluster.proxy_url or None,
            "config": config,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _impersonation(user: UserEntry) -> tuple[tuple[str, str], ...]:
    """The headers of `as…`. A group is a header of its own: the server does not split at commas."""
    headers = [("Impersonate-User", user.as_user)] if user.as_user else []
    headers += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    for key, values in user.as_user_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    if headers and not user.as_user:
        raise KubeconfigError("`as-groups`, `as-uid` and `as-user-extra` need `as`", hint="set `as`, or remove them")
    if not all(is_header_safe(value) for _, value in headers):
        raise KubeconfigError("an impersonation field holds characters that a header cannot", hint="correct `as…`")
    return tuple(headers)


def _unknown(kind: str, name: str, known: Iterable[str]) -> KubeconfigError:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"known: {_listed(names)}"
    return KubeconfigError(f"the kubeconfig has no {kind} `{name}`", hint=hint)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "(none)"
