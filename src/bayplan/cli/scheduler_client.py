"""The client of a running scheduler: endpoint, credentials, and typed answers.

`--server`, BAYPLAN_SERVER or the kubeconfig of `bayplan up` names the endpoint. Over HTTPS the credentials of the
kubeconfig are sent, because the scheduler authenticates by its API server; over plain HTTP, allowed on this machine
only, just a token: that of `--token-file`, of the address (`http://127.0.0.1:PORT/?token=…`, as `up` and `dashboard`
print it), or of the kubeconfig of `bayplan up`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec
from cyclopts import Parameter

from bayplan.cli.options import named_path, option, path_of
from bayplan.cli.output import CommandError

if TYPE_CHECKING:
    from bayplan.client.access import ClusterAccess
    from bayplan.client.http_transport import HttpTransport

__all__ = [
    "EXTENSION",
    "Endpoint",
    "Scheduler",
    "SchedulerOptions",
    "ask",
    "ask_over",
    "endpoint",
    "namespace_of",
    "pod_path",
    "transport_to",
]

T = TypeVar("T")
DEFAULT_SERVER = "https://127.0.0.1:10259"
EXTENSION = "bayplan.dev/scheduler"
"""Of a cluster in a kubeconfig: `extension: {server: URL, token: TOKEN}` says where its scheduler answers."""
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    server: str
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    authority: Path | None = None
    is_insecure: bool = False
    otherwise: str = ""
    """What the command can do without a scheduler, for hints."""


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions:
    """Options of every command that asks a running scheduler; see `Scheduler`."""

    server: Annotated[
        str | None, option("--server", metavar="URL", about=f"URL of the scheduler ({DEFAULT_SERVER})")
    ] = None
    token_file: Annotated[str | None, option("--token-file", metavar="FILE", about="file with a bearer token")] = None
    kubeconfig: Annotated[
        str | None, option("--kubeconfig", metavar="FILE", about="kubeconfig with the user's credentials")
    ] = None
    context: Annotated[str | None, option("--context", metavar="NAME", about="context in the kubeconfig")] = None
    certificate_authority: Annotated[
        str | None, option("--certificate-authority", metavar="FILE", about="authority of the scheduler's certificate")
    ] = None
    insecure_skip_tls_verify: Annotated[
        bool, option("--insecure-skip-tls-verify", about="do not verify the scheduler's certificate")
    ] = False


Scheduler = Annotated[SchedulerOptions | None, Parameter(name="*")]
"""The parameter of a command; its fields are options of the command."""


def endpoint(options: SchedulerOptions | None = None, *, otherwise: str = "") -> Endpoint:
    options = options or SchedulerOptions()
    if options.context is not None:
        _access_of(options)
    named, named_token = _scheduler_of(options.kubeconfig, options.context)
    wanted = options.server or os.environ.get("BAYPLAN_SERVER") or named or DEFAULT_SERVER
    try:
        given = urlsplit(wanted)
        _ = given.port  # raises for one that is no number, or too high
    except ValueError as error:
        raise CommandError(f"--server {wanted}: {error}", hint=f"write a URL such as {DEFAULT_SERVER}") from error
    parts = given._replace(path="" if given.path == "/" else given.path, query="", fragment="")
    url = parts.geturl()
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise CommandError(f"--server {url}: expected a URL such as {DEFAULT_SERVER}")
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise CommandError(f"--server {url}: plain HTTP is for this machine alone", hint="use https")
    return Endpoint(
        server=url,
        token=dict(parse_qsl(given.query)).get("token", named_token if url == named else ""),
        token_file=path_of(options.token_file),
        kubeconfig=path_of(options.kubeconfig),
        context=options.context,
        authority=path_of(options.certificate_authority),
        is_insecure=options.insecure_skip_tls_verify,
        otherwise=otherwise,
    )


def namespace_of(options: SchedulerOptions | None, namespace: str | None) -> str:
    """The namespace that is named, that of the context, or `default`."""
    access = None if namespace else _access_of(options or SchedulerOptions())
    return namespace or (access.namespace if access is not None else "") or "default"


def _access_of(options: SchedulerOptions) -> ClusterAccess | None:
    """By the kubeconfig; None where there is none, which is reported where one is needed. A context that is named must
    be there."""
    from bayplan.client.errors import KubeconfigError
    from bayplan.client.kubeconfig import find_access
    from bayplan.observe.clock import SystemClock

    try:
        return find_access(
            clock=SystemClock(),
            environment=dict(os.environ),
            kubeconfig=path_of(options.kubeconfig),
            context=options.context,
        )
    except KubeconfigError as error:
        if options.context is not None:
            raise CommandError(str(error).splitlines()[0], hint=error.hint) from error
        return None


def _scheduler_of(kubeconfig: str | None, context: str | None) -> tuple[str, str]:
    """Server and token of the scheduler, as the kubeconfig of `bayplan up` has them; empty for any other kubeconfig."""
    from bayplan.api.documents import read_plain

    name = kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or "~/.kube/config"
    try:
        config = read_plain(named_path(name).read_bytes()).value
        contexts = {entry["name"]: entry["context"] for entry in config["contexts"]}
        clusters = {entry["name"]: entry["cluster"] for entry in config["clusters"]}
        extensions = clusters[contexts[context or config["current-context"]]["cluster"]].get("extensions") or ()
        found: dict[str, str] = next((entry["extension"] for entry in extensions if entry["name"] == EXTENSION), {})
        return str(found.get("server", "")), str(found.get("token", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "", ""  # reported where the kubeconfig is needed


def pod_path(name: str, namespace: str) -> str:
    """`NAME`, or `NAMESPACE/NAME`."""
    before, _, after = name.rpartition("/")
    return f"/explain/pod/{quote(before or namespace, safe='')}/{quote(after, safe='')}"


def ask(
    where: Endpoint,
    path: str,
    kind: type[T],
    *,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> T:
    """GET, or POST with a body. Raises `CommandError` that says what to do."""
    return asyncio.run(_ask(where, path, kind, query, body))


def transport_to(where: Endpoint, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> HttpTransport:
    """Close it after use."""
    from bayplan.client.http_transport import HttpTransport

    return HttpTransport(_access(where), draw=lambda: 0.5, default_timeout=timeout_seconds)


async def _ask(where: Endpoint, path: str, kind: type[T], query: Mapping[str, str] | None, body: bytes | None) -> T:
    transport = transport_to(where)
    try:
        return await ask_over(transport, where, path, kind, query=query, body=body)
    finally:
        await transport.close()


async def ask_over(
    transport: HttpTransport,
    where: Endpoint,
    path: str,
    kind: type[T],
    *,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> T:
    """The same over a transport that stays open."""
    from bayplan.client.errors import ClientError

    try:
        method = "GET" if body is None else "POST"
        response = await transport.request(method, f"/bayplan/v1{path}", query=query, body=body)
    except ClientError as error:
        reason = str(error).splitlines()[0].removeprefix(f"cannot reach {where.server}: ")
        reached = "name the scheduler with --server or BAYPLAN_SERVER, one in a cluster after `kubectl port-forward`"
        hint = f"{reached}; or {where.otherwise}" if where.otherwise else reached
        raise CommandError(f"{where.server} does not answer: {reason}", hint=hint) from error
    if response.status >= 300:
        raise _refused(where, response.status, response.body)
    try:
        return msgspec.json.decode(response.body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = "is it a scheduler of this version of Bayplan? name it with --server or BAYPLAN_SERVER"
        raise CommandError(f"{where.server} answered something unexpected: {error}", hint=hint) from error


def _refused(where: Endpoint, status: int, body: bytes) -> CommandError:
    try:
        message = str(msgspec.json.decode(body, type=dict[str, Any]).get("message", ""))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = ""
    hint = "the log of the scheduler says more"
    if status in (400, 404) and message:
        # The request is wrong, not the user: the scheduler's message says what.
        return CommandError(f"{message}, says {where.server}", status=1)
    if status == 404:
        hint = "something else may answer there; name the scheduler with --server or BAYPLAN_SERVER"
    if status in (401, 403):
        hint = "present a user who may read the scheduler's endpoints: --kubeconfig or --token-file"
    return CommandError(f"{where.server} refused ({status}): {message or 'no reason given'}", hint=hint, status=1)


def _access(where: Endpoint) -> ClusterAccess:
    from bayplan.client.access import ClusterAccess
    from bayplan.client.credentials import Credentials, StaticCredentials, TokenFileCredentials, bearer
    from bayplan.client.tls import Pem, TlsSettings
    from bayplan.observe.clock import SystemClock

    credentials: Credentials = StaticCredentials()
    certificate = None
    if where.token_file is not None:
        credentials = TokenFileCredentials(where.token_file, clock=SystemClock())
    elif where.token:
        credentials = StaticCredentials(bearer(where.token))
    elif where.server.startswith("https:") and (access := _cluster_access(where)) is not None:
        credentials, certificate = access.credentials, access.tls.certificate
    authority = Pem(path=where.authority) if where.authority is not None else None
    tls = TlsSettings(authority=authority, certificate=certificate, insecure=where.is_insecure)
    return ClusterAccess(server=where.server, credentials=credentials, tls=tls)


def _cluster_access(where: Endpoint) -> ClusterAccess | None:
    """The access of the kubeconfig; None when there is none and none was named."""
    from bayplan.client.errors import KubeconfigError
    from bayplan.client.kubeconfig import find_access
    from bayplan.observe.clock import SystemClock

    try:
        return find_access(
            clock=SystemClock(), environment=dict(os.environ), kubeconfig=where.kubeconfig, context=where.context
        )
    except KubeconfigError as error:
        if where.kubeconfig is None:
            return None
        raise CommandError(str(error).splitlines()[0]) from error
