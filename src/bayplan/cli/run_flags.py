"""The flags of `bayplan run` for endpoints and leader election, under kube-scheduler's names.

Each group of flags is a class; `bayplan.cli.run` takes them as parameters. All inconsistencies of the flags are
reported here at once before anything starts; the server reports problems of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from cyclopts import Parameter

from bayplan.cli.options import Names, named_path, option, path_of
from bayplan.cli.output import CommandError

if TYPE_CHECKING:
    from bayplan.server.options import AuthenticationOptions, RequestHeaderOptions, ServerOptions

__all__ = ["ElectionFlags", "ServingFlags", "duration_of", "shown_flags"]

_File = str | None
_Duration = str | None
_LONGEST_NUMBER = 15
_LOOK = "`bayplan run --help` lists the flags"


@dataclass(frozen=True, kw_only=True)
class ServingFlags:
    """Where health, metrics and debugging are served, and to whom."""

    bind_address: Annotated[
        str, option("--bind-address", metavar="ADDRESS", about="address to serve on (127.0.0.1)")
    ] = "127.0.0.1"
    secure_port: Annotated[int, option("--secure-port", metavar="PORT", about="HTTPS port (10259); 0 disables it")] = (
        10259
    )
    cert_file: Annotated[_File, option("--tls-cert-file", metavar="FILE", about="certificate of the server")] = None
    key_file: Annotated[_File, option("--tls-private-key-file", metavar="FILE", about="key of the certificate")] = None
    tls_min_version: Annotated[
        str, option("--tls-min-version", metavar="VERSION", about="VersionTLS12 (default) or VersionTLS13")
    ] = "VersionTLS12"
    cipher_suites: Annotated[
        Names, option("--tls-cipher-suites", metavar="NAMES", about="suites of TLS 1.2, Go's names separated by commas")
    ] = None
    client_ca_file: Annotated[
        _File, option("--client-ca-file", metavar="FILE", about="authority of client certificates")
    ] = None
    proxy_ca_file: Annotated[
        _File, option("--requestheader-client-ca-file", metavar="FILE", about="authority of front proxies")
    ] = None
    proxy_names: Annotated[
        Names, option("--requestheader-allowed-names", metavar="NAMES", about="common names of front proxies (any)")
    ] = None
    user_headers: Annotated[
        Names,
        option("--requestheader-username-headers", metavar="NAMES", about="headers with the user (x-remote-user)"),
    ] = None
    uid_headers: Annotated[
        Names,
        option("--requestheader-uid-headers", metavar="NAMES", about="headers with the user's uid (x-remote-uid)"),
    ] = None
    group_headers: Annotated[
        Names,
        option("--requestheader-group-headers", metavar="NAMES", about="headers with the groups (x-remote-group)"),
    ] = None
    extra_prefixes: Annotated[
        Names,
        option(
            "--requestheader-extra-headers-prefix", metavar="NAMES", about="prefixes of extra headers (x-remote-extra-)"
        ),
    ] = None
    open_paths: Annotated[
        Names,
        option(
            "--authorization-always-allow-paths",
            metavar="PATHS",
            about="paths without authorisation (/healthz,/readyz,/livez); `/x/*` for all below",
        ),
    ] = None
    authentication_kubeconfig: Annotated[
        _File,
        option("--authentication-kubeconfig", metavar="FILE", about="kubeconfig for token reviews (--kubeconfig)"),
    ] = None
    authorization_kubeconfig: Annotated[
        _File,
        option("--authorization-kubeconfig", metavar="FILE", about="kubeconfig for access reviews (--kubeconfig)"),
    ] = None
    token_ttl: Annotated[
        _Duration,
        option(
            "--authentication-token-webhook-cache-ttl", metavar="DURATION", about="cache time of token reviews (10s)"
        ),
    ] = None
    allowed_ttl: Annotated[
        _Duration,
        option(
            "--authorization-webhook-cache-authorized-ttl",
            metavar="DURATION",
            about="cache time of granted access reviews (10s)",
        ),
    ] = None
    denied_ttl: Annotated[
        _Duration,
        option(
            "--authorization-webhook-cache-unauthorized-ttl",
            metavar="DURATION",
            about="cache time of denied access reviews (10s)",
        ),
    ] = None
    skip_lookup: Annotated[
        bool,
        option(
            "--authentication-skip-lookup",
            about="do not read client authorities from the cluster",
        ),
    ] = False
    tolerate_lookup_failure: Annotated[
        bool,
        option("--authentication-tolerate-lookup-failure", about="continue if they cannot be read (true)"),
    ] = True
    disabled_metrics: Annotated[
        Names, option("--disabled-metrics", metavar="NAMES", about="metrics to leave out, separated by commas")
    ] = None
    profiling: Annotated[bool | None, option("--profiling", about="serve /debug/pprof (as configured; true)")] = None

    def metrics_to_leave_out(self) -> tuple[str, ...]:
        return _split(self.disabled_metrics, ())

    def server_options(self) -> ServerOptions:
        """Raises CommandError with every problem of these flags."""
        from bayplan.server.certificates import check_tls
        from bayplan.server.options import AuthorizationOptions, ServerOptions, ServingError, TlsFiles

        problems: list[str] = []
        seconds = _Seconds(problems)
        tls = None
        if self.cert_file is not None and self.key_file is not None:
            tls = TlsFiles(certificate=named_path(self.cert_file), key=named_path(self.key_file))
        elif self.cert_file is not None or self.key_file is not None:
            problems.append("--tls-cert-file and --tls-private-key-file are given together or not at all")
        open_paths = _split(self.open_paths, ("/healthz", "/livez", "/readyz"))
        problems += [
            f"--authorization-always-allow-paths: `{path}` does not start with a slash"
            for path in open_paths
            if not path.startswith("/")
        ]
        authentication = self._authentication(seconds, problems)
        authorization = AuthorizationOptions(
            always_allow_paths=open_paths,
            allowed_cache_seconds=seconds("--authorization-webhook-cache-authorized-ttl", self.allowed_ttl, 10.0),
            denied_cache_seconds=seconds("--authorization-webhook-cache-unauthorized-ttl", self.denied_ttl, 10.0),
        )
        try:
            if not problems:
                options = ServerOptions(
                    is_enabled=self.secure_port != 0,
                    bind_address=self.bind_address,
                    port=self.secure_port,
                    tls=tls,
                    tls_min_version=self.tls_min_version,
                    tls_cipher_suites=_split(self.cipher_suites, ()),
                    authentication=authentication,
                    authorization=authorization,
                )
                check_tls(options)
                return options
        except ServingError as error:
            problems.append(str(error))
        raise CommandError(*problems, hint=_LOOK)

    def _authentication(self, seconds: _Seconds, problems: list[str]) -> AuthenticationOptions:
        from bayplan.server.options import AuthenticationOptions

        return AuthenticationOptions(
            client_ca_file=path_of(self.client_ca_file),
            request_header=self._request_header(problems),
            token_cache_seconds=seconds("--authentication-token-webhook-cache-ttl", self.token_ttl, 10.0),
        )

    def _request_header(self, problems: list[str]) -> RequestHeaderOptions | None:
        from bayplan.server.options import RequestHeaderOptions

        given = {
            "--requestheader-allowed-names": self.proxy_names,
            "--requestheader-username-headers": self.user_headers,
            "--requestheader-uid-headers": self.uid_headers,
            "--requestheader-group-headers": self.group_headers,
            "--requestheader-extra-headers-prefix": self.extra_prefixes,
        }
        if self.proxy_ca_file is None:
            # Without the authority any client could send these headers, so they are ignored.
            idle = [name for name, value in given.items() if value is not None]
            if idle:
                problems.append(f"{', '.join(idle)}: without --requestheader-client-ca-file this has no effect")
            return None
        return RequestHeaderOptions(
            client_ca_file=named_path(self.proxy_ca_file),
            allowed_names=_split(self.proxy_names, ()),
            username_headers=_split(self.user_headers, ("x-remote-user",)),
            uid_headers=_split(self.uid_headers, ("x-remote-uid",)),
            group_headers=_split(self.group_headers, ("x-remote-group",)),
            extra_header_prefixes=_split(self.extra_prefixes, ("x-remote-extra-",)),
        )


@dataclass(frozen=True, kw_only=True)
class ElectionFlags:
    """Leader election; each flag overrides the configuration."""

    elect: Annotated[bool | None, option("--leader-elect", about="elect a leader before scheduling")] = None
    name: Annotated[_File, option("--leader-elect-resource-name", metavar="NAME", about="name of the Lease")] = None
    namespace: Annotated[
        _File, option("--leader-elect-resource-namespace", metavar="NAME", about="namespace of the Lease")
    ] = None
    lock: Annotated[_File, option("--leader-elect-resource-lock", metavar="KIND", about="leases is the only kind")] = (
        None
    )
    lease_duration: Annotated[
        _Duration, option("--leader-elect-lease-duration", metavar="DURATION", about="duration of the lease (15s)")
    ] = None
    renew_deadline: Annotated[
        _Duration,
        option("--leader-elect-renew-deadline", metavar="DURATION", about="time in which a leader must renew it (10s)"),
    ] = None
    retry_period: Annotated[
        _Duration, option("--leader-elect-retry-period", metavar="DURATION", about="time between attempts (2s)")
    ] = None

    def overrides(self) -> dict[str, Any]:
        """Fields of the configuration's `leaderElection` that these flags replace. Raises CommandError."""
        problems: list[str] = []
        seconds = _Seconds(problems)
        if self.lock not in (None, "leases"):
            problems.append(f"--leader-elect-resource-lock is `leases`, not `{self.lock}`")
        from datetime import timedelta

        times = {
            "lease_duration": ("--leader-elect-lease-duration", self.lease_duration),
            "renew_deadline": ("--leader-elect-renew-deadline", self.renew_deadline),
            "retry_period": ("--leader-elect-retry-period", self.retry_period),
        }
        found: dict[str, Any] = {
            field: timedelta(seconds=seconds(flag, text, 0.0, least=0.001))
            for field, (flag, text) in times.items()
            if text is not None
        }
        given = {"leader_elect": self.elect, "resource_name": self.name, "resource_namespace": self.namespace}
        found |= {field: value for field, value in given.items() if value is not None}
        if problems:
            raise CommandError(*problems, hint=_LOOK)
        return found


class _Seconds:
    """Reads durations and collects what is wrong with them."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def __call__(self, flag: str, text: str | None, default: float, *, least: float = 0.0) -> float:
        if text is None:
            return default
        try:
            seconds = duration_of(text)
        except ValueError as error:
            self._problems.append(f"{flag}: {error}")
            return default
        if seconds < least:
            self._problems.append(f"{flag}: `{text}` is too short")
        return seconds


def duration_of(text: str) -> float:
    """Seconds, from `1m30s` as Kubernetes writes it or from a plain number of seconds."""
    from bayplan.config.durations import parse_duration

    is_number = text.isascii() and text.replace(".", "", 1).isdecimal()
    if is_number and len(text) <= _LONGEST_NUMBER:
        return float(text)
    parsed = None if is_number else parse_duration(text)
    if parsed is None:
        raise ValueError(f"`{text}` is not a duration; write `90s`, `1m30s` or a number of seconds")
    return parsed.total_seconds()


def _split(given: Names, default: tuple[str, ...]) -> tuple[str, ...]:
    """Values of a flag that may be repeated, or hold several with commas between them."""
    if given is None:
        return default
    return tuple(part.strip() for text in given for part in text.split(",") if part.strip())


def shown_flags(declared: Callable[..., Any] | type, values: Mapping[str, Any]) -> dict[str, str]:
    """Flags under the names by which they are given, for /flagz; a group of flags is opened up."""
    shown: dict[str, str] = {}
    for name, hint in get_type_hints(declared, include_extras=True).items():
        flag = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Parameter)), None)
        value = values.get(name)
        if is_dataclass(value) and not isinstance(value, type):
            shown |= shown_flags(type(value), {each.name: getattr(value, each.name) for each in fields(value)})
        elif flag is not None and flag.name:
            shown[next(iter(flag.name)).lstrip("-")] = "" if value is None else str(value)
    return shown
