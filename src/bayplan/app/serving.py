"""What a scheduler process serves: health, metrics and configuration, put together from its parts.

The server is independent of schedulers; this module gives it callables that read the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bayplan import __version__
from bayplan.app.client_metrics import register_client
from bayplan.app.live import LiveScheduler
from bayplan.app.metrics import SchedulerMetrics, register_leadership, register_live, register_self
from bayplan.app.resource_metrics import known_pods, pod_resource_lines
from bayplan.app.settings import Settings
from bayplan.config.effective import effective_dict
from bayplan.config.own import BayplanConfig
from bayplan.observe.clock import Clock
from bayplan.observe.exposition import render
from bayplan.observe.metrics import MetricsRegistry
from bayplan.observe.process_metrics import register_build, register_process
from bayplan.server.options import HealthChecks, Review, ServerParts

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

__all__ = ["LocalMetrics", "ProcessFacts", "make_metrics", "make_parts"]


@dataclass(frozen=True, kw_only=True)
class ProcessFacts:
    """State of the process; each is called for every request."""

    live: Callable[[], LiveScheduler | None]
    settings: Callable[[], Settings]
    is_leader: Callable[[], bool]
    is_lease_healthy: Callable[[], bool]
    is_stopping: Callable[[], bool]
    flags: Mapping[str, Any]
    own: BayplanConfig
    is_profiling: Callable[[], bool]
    set_verbosity: Callable[[int], None]
    lease_name: str = ""


def make_metrics(registry: MetricsRegistry, clock: Clock, facts: ProcessFacts) -> SchedulerMetrics:
    """The listener that feeds the registry from the loop; everything else is read at scrape time."""
    metrics = _base_metrics(registry, clock, facts.live)
    if facts.lease_name:
        register_leadership(registry, name=facts.lease_name, is_leader=facts.is_leader)
    return metrics


def _base_metrics(
    registry: MetricsRegistry, clock: Clock, live: Callable[[], LiveScheduler | None]
) -> SchedulerMetrics:
    metrics = SchedulerMetrics(registry, clock)
    register_live(registry, live)
    register_client(registry, live)
    register_self(registry)
    register_process(registry, started_at=clock.now())
    register_build(registry, version=__version__)
    return metrics


class LocalMetrics:
    """Metrics of a scheduler that takes part in no election: `bayplan up`."""

    def __init__(self, clock: Clock) -> None:
        self.live: LiveScheduler | None = None
        """The scheduler at work, once there is one."""
        self._clock, self._registry = clock, MetricsRegistry()
        self.observer = _base_metrics(self._registry, clock, lambda: self.live)

    def parts(self, routes: Sequence[BaseRoute]) -> ServerParts:
        """These pages, and /metrics."""
        return ServerParts(
            routes=routes,
            clock=self._clock,
            metrics=lambda accept: render(self._registry, accept),
            turn=partial(_turn, lambda: self.live),
        )


def make_parts(
    facts: ProcessFacts, registry: MetricsRegistry, review: Review, clock: Clock, routes: Sequence[BaseRoute] = ()
) -> ServerParts:
    shown: tuple[object, Mapping[str, Any]] = (None, {})

    def configuration() -> Mapping[str, Any]:
        """Made once for each configuration."""
        nonlocal shown
        settings = facts.settings()
        if shown[0] is not settings:
            shown = (settings, effective_dict(settings.config, settings.profiles))
        return shown[1]

    def resources() -> Any:
        live = facts.live()
        return pod_resource_lines(lambda: known_pods(live)) if live is not None and facts.is_leader() else ()

    return ServerParts(
        version=__version__,
        health=_health(facts),
        config=configuration,
        own_config=facts.own.to_dict,
        flags=lambda: facts.flags,
        metrics=lambda accept: render(registry, accept),
        resource_metrics=resources,
        review=review,
        is_profiling=facts.is_profiling,
        set_verbosity=facts.set_verbosity,
        routes=routes,
        turn=partial(_turn, facts.live),
        clock=clock,
    )


async def _turn(live: Callable[[], LiveScheduler | None]) -> None:
    """Wait until the scheduler leaves its thread to a client."""
    current = live()
    if current is not None:
        await current.turns.take()


def _health(facts: ProcessFacts) -> HealthChecks:
    def lease() -> str | None:
        return None if facts.is_lease_healthy() else "this replica still leads with a lease that expired long ago"

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
        readyz=({"leaderElection": lease} if facts.lease_name else {})
        | {"shutdown": shutdown, "sched-handler-sync": synced},
    )
