"""What a scheduler process serves: health, metrics and configuration, put together from its parts.

The server knows nothing of schedulers; this module hands it callables that read the one at work now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.routing import BaseRoute

from bayplan import __version__
from bayplan.app.client_metrics import register_client
from bayplan.app.live import LiveScheduler
from bayplan.app.metrics import SchedulerMetrics, register_leadership, register_live, register_self
from bayplan.app.resource_metrics import pod_resource_lines
from bayplan.app.settings import Settings
from bayplan.client.errors import api_error
from bayplan.client.transport import Transport
from bayplan.config.effective import effective_dict
from bayplan.observe.clock import Clock
from bayplan.observe.exposition import render
from bayplan.observe.metrics import Registry
from bayplan.server.health import HealthChecks
from bayplan.server.options import ServerParts

__all__ = ["ProcessFacts", "make_metrics", "make_parts", "reviewer"]


@dataclass(frozen=True, kw_only=True)
class ProcessFacts:
    """How to ask the process about itself; each is called for every request."""

    live: Callable[[], LiveScheduler | None]
    settings: Callable[[], Settings]
    is_leader: Callable[[], bool]
    is_lease_healthy: Callable[[], bool]
    is_stopping: Callable[[], bool]
    flags: Mapping[str, Any]
    lease_name: str = ""


def make_metrics(clock: Clock, facts: ProcessFacts) -> tuple[Registry, SchedulerMetrics]:
    """The registry, and the listener that feeds it from the loop."""
    registry = Registry()
    metrics = SchedulerMetrics(registry, clock)
    register_live(registry, facts.live)
    register_client(registry, facts.live)
    register_self(registry)
    if facts.lease_name:
        register_leadership(registry, name=facts.lease_name, is_leader=facts.is_leader)
    return registry, metrics


def make_parts(
    facts: ProcessFacts, registry: Registry, transport: Transport, clock: Clock, routes: Sequence[BaseRoute] = ()
) -> ServerParts:
    def configuration() -> Mapping[str, Any]:
        settings = facts.settings()
        return effective_dict(settings.config, settings.profiles)

    def resources() -> Any:
        live = facts.live()
        return pod_resource_lines(live.cache.pods) if live is not None and facts.is_leader() else ()

    return ServerParts(
        version=__version__,
        health=_health(facts),
        config=configuration,
        flags=lambda: facts.flags,
        metrics=lambda accept: render(registry, accept),
        resource_metrics=resources,
        review=reviewer(transport),
        routes=routes,
        clock=clock,
    )


def _health(facts: ProcessFacts) -> HealthChecks:
    def lease() -> str | None:
        return None if facts.is_lease_healthy() else "this replica believes to lead with a lease that ran out long ago"

    def shutdown() -> str | None:
        return "the process is shutting down" if facts.is_stopping() else None

    def synced() -> str | None:
        live = facts.live()
        if live is None:
            return "not connected yet"
        waiting = live.watching.unsynced()
        return f"waiting for {', '.join(waiting)}" if waiting else None

    return HealthChecks(
        healthz={"leaderElection": lease} if facts.lease_name else {},
        readyz={"leaderElection": lease, "shutdown": shutdown, "sched-handler-sync": synced},
    )


def reviewer(transport: Transport) -> Callable[[str, Mapping[str, Any]], Any]:
    """POST an object to the API server and return its answer."""

    async def review(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        response = await transport.request("POST", path, body=msgspec.json.encode(body))
        if response.status >= 300:
            raise api_error(response.status, response.body, headers=response.headers)
        return msgspec.json.decode(response.body, type=dict[str, Any])

    return review
