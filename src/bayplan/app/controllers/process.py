"""`bayplan controllers`: the controllers as a process, under a lease of their own."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from bayplan.app.controllers.status_controllers import CONTROLLER_NAME, WATCHES, ControllerOptions, StatusControllers
from bayplan.client.events import reporting_instance
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.rate_limit import RateLimitedTransport, TokenBucket
from bayplan.client.transport import Transport
from bayplan.leader.election import ElectionSettings, LeaderElector, new_identity
from bayplan.observe.clock import Clock, SystemClock
from bayplan.observe.logs import LogSettings, configure_logging

__all__ = ["ControllersProcessOptions", "run_controllers"]

_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ControllersProcessOptions:
    """The flags of `bayplan controllers`."""

    kubeconfig: Path | None = None
    context: str | None = None
    leader_elect: bool = False
    lease_name: str = CONTROLLER_NAME
    lease_namespace: str = "kube-system"
    qps: float = 5.0
    burst: int = 10
    logging_format: str = "text"
    verbosity: int = 2
    kinds: tuple[type[Any], ...] = WATCHES
    environment: Mapping[str, str] = field(default_factory=dict)


async def run_controllers(options: ControllersProcessOptions) -> int:
    """Run until a signal; the exit status. Losing the lease ends it with 1."""
    configure_logging(LogSettings(format=options.logging_format, verbosity=options.verbosity))
    clock, dice = SystemClock(), random.Random()
    access = find_access(
        clock=clock, environment=options.environment, kubeconfig=options.kubeconfig, context=options.context
    )
    http, lease_http = HttpTransport(access, draw=dice.random), HttpTransport(access, draw=dice.random)
    try:
        bucket = TokenBucket(qps=options.qps, burst=options.burst, clock=clock)
        transport: Transport = http if bucket.is_unlimited else RateLimitedTransport(http, bucket)
        return await _run(transport, lease_http, options, clock, dice)
    finally:
        await http.close()
        await lease_http.close()


async def _run(
    transport: Transport, lease: Transport, options: ControllersProcessOptions, clock: Clock, dice: random.Random
) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    elector = _elector(lease, options, clock, dice) if options.leader_elect else None
    controllers = StatusControllers(
        transport,
        ControllerOptions(
            clock=clock,
            draw=dice.random,
            instance=reporting_instance(CONTROLLER_NAME, socket.gethostname()),
            is_leader=lambda: elector is None or elector.is_leader,
            kinds=options.kinds,
        ),
    )
    work = [
        asyncio.create_task(controllers.run(), name="controllers"),
        asyncio.create_task(stop.wait(), name="signals"),
    ]
    if elector is not None:
        work.append(asyncio.create_task(elector.run(), name="leader election"))
    done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    if stop.is_set():
        return 0
    failures = [task.exception() for task in done if not task.cancelled()]
    _log.error("the controllers ended", reason=str(next(iter(failures), None) or "the lease is lost"))
    return 1


def _elector(
    transport: Transport, options: ControllersProcessOptions, clock: Clock, dice: random.Random
) -> LeaderElector:
    return LeaderElector(
        transport,
        identity=new_identity(socket.gethostname()),
        clock=clock,
        draw=dice.random,
        on_started_leading=lambda: _log.info("leading"),
        on_stopped_leading=lambda: _log.warning("no longer leading"),
        settings=ElectionSettings(name=options.lease_name, namespace=options.lease_namespace),
    )
