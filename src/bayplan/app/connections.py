"""The connections of a scheduler process to API servers, measured, and closed together.

Work is limited by `clientConnection`. Renewals of the lease have connections of their own, because they must never
wait behind bindings; neither they nor the reviews of users count for the limit.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bayplan.app.client_metrics import MeasuredTransport, RequestMetrics
from bayplan.app.run_options import RunOptions
from bayplan.client.access import ClusterAccess
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.rate_limit import RateLimitedTransport, TokenBucket
from bayplan.client.transport import Transport
from bayplan.config.model import ClientConnection, SchedulerConfig
from bayplan.observe.clock import Clock
from bayplan.observe.metrics import MetricsRegistry

__all__ = ["Connections", "connected"]


@dataclass(frozen=True, kw_only=True)
class Connections:
    work: Transport
    lease: Transport
    token_reviews: Transport
    access_reviews: Transport
    server: str = ""
    """The address of the API server, for the log."""
    source: str = ""
    """Where the access to it comes from, for the log."""


@contextlib.asynccontextmanager
async def connected(
    options: RunOptions, config: SchedulerConfig, clock: Clock, registry: MetricsRegistry
) -> AsyncIterator[Connections]:
    """Raises KubeconfigError before anything is opened."""
    draw, requests = random.Random(options.seed).random, RequestMetrics(registry)
    path = config.client_connection.kubeconfig
    field = "--kubeconfig" if options.kubeconfig else "`clientConnection.kubeconfig` of the configuration"
    own = _access(Path(path) if path else None, options, clock, named_by=field, context=options.context)
    for_tokens = _other_access(options.authentication_kubeconfig, options, clock, "--authentication-kubeconfig")
    for_access = _other_access(options.authorization_kubeconfig, options, clock, "--authorization-kubeconfig")
    async with contextlib.AsyncExitStack() as opened:

        def to(access: ClusterAccess) -> Transport:
            transport = HttpTransport(access, draw=draw)
            opened.push_async_callback(transport.close)
            return MeasuredTransport(transport, requests, host=_host(access), clock=clock)

        plain = to(own)
        yield Connections(
            # What waits for the limit is not on its way to the server yet, so it is measured after that wait.
            work=_limited(plain, config.client_connection, clock, partial(requests.waited, _host(own))),
            lease=to(own),
            token_reviews=plain if for_tokens is None else to(for_tokens),
            access_reviews=plain if for_access is None else to(for_access),
            server=own.server,
            source=own.source,
        )


def _access(
    path: Path | None, options: RunOptions, clock: Clock, *, named_by: str, context: str | None = None
) -> ClusterAccess:
    environment = options.environment
    return find_access(clock=clock, environment=environment, kubeconfig=path, context=context, named_by=named_by)


def _other_access(path: Path | None, options: RunOptions, clock: Clock, flag: str) -> ClusterAccess | None:
    return None if path is None else _access(path, options, clock, named_by=flag)


def _limited(
    transport: Transport, connection: ClientConnection, clock: Clock, on_wait: Callable[[str, float], None]
) -> Transport:
    bucket = TokenBucket(qps=connection.qps, burst=connection.burst, clock=clock)
    return transport if bucket.is_unlimited else RateLimitedTransport(transport, bucket, on_wait=on_wait)


def _host(access: ClusterAccess) -> str:
    return urlsplit(access.server).netloc
