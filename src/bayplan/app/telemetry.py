"""What a scheduler process tells about itself, put together once: its metrics and its health.

    telemetry = Telemetry(clock, version=__version__, current=lambda: process.live)
    transport = telemetry.measured(transport, host="10.0.0.1:6443")
    LiveOptions(observers=[telemetry.scheduler], …)
    ServerParts(metrics=telemetry.metrics, resource_metrics=telemetry.resource_metrics, health=health_checks(…), …)

`current` is asked at every scrape and probe, because the scheduler comes after its endpoints and may be replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bayplan.app.client_metrics import MeasuredTransport, RequestMetrics, register_client
from bayplan.app.metrics import Current, SchedulerMetrics, register_leadership, register_live, register_self
from bayplan.app.resource_metrics import known_pods, pod_resource_lines
from bayplan.client.transport import Transport
from bayplan.observe.clock import Clock
from bayplan.observe.exposition import render
from bayplan.observe.metrics import Registry
from bayplan.observe.process_metrics import register_build, register_process
from bayplan.server import Check, HealthChecks

__all__ = ["Candidacy", "Telemetry", "health_checks"]


@dataclass(frozen=True, kw_only=True)
class Candidacy:
    """Leader election, as far as metrics and probes are concerned."""

    lease_name: str
    is_leader: Callable[[], bool]
    is_healthy: Callable[[], bool]


class Telemetry:
    """The metrics of one process."""

    def __init__(
        self,
        clock: Clock,
        *,
        version: str,
        current: Current,
        candidacy: Candidacy | None = None,
        features: Mapping[str, bool] | None = None,
        disabled: Iterable[str] = (),
    ) -> None:
        self._clock = clock
        self._current = current
        self._candidacy = candidacy
        self.registry = Registry(disabled=disabled)
        gates = [name for name, is_on in (features or {}).items() if is_on]
        self.scheduler = SchedulerMetrics(self.registry, clock, gates=gates)
        """Observer of the loop; its `hint_asked` observes the queue."""
        self.requests = RequestMetrics(self.registry)
        register_live(self.registry, current)
        register_client(self.registry, current)
        register_process(self.registry, started_at=clock.now())
        register_build(self.registry, version=version)
        register_self(self.registry, features=features)
        if candidacy is not None:
            register_leadership(self.registry, name=candidacy.lease_name, is_leader=candidacy.is_leader)

    def measured(self, transport: Transport, *, host: str) -> MeasuredTransport:
        """The same transport, counted."""
        return MeasuredTransport(transport, self.requests, host=host, clock=self._clock)

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """For /metrics."""
        return render(self.registry, accept)

    def resource_metrics(self) -> Iterator[bytes]:
        """For /metrics/resources: nothing while another replica leads, so that no pod is counted twice."""
        live = self._current()
        if live is None or (self._candidacy is not None and not self._candidacy.is_leader()):
            return iter(())
        return pod_resource_lines(lambda: known_pods(live))


def health_checks(
    current: Current, *, is_stopping: Callable[[], bool], candidacy: Candidacy | None = None
) -> HealthChecks:
    """kube-scheduler's checks: who elects watches the lease, who is not synced or is stopping is not ready."""

    def lease() -> str | None:
        is_well = candidacy is None or candidacy.is_healthy()
        return None if is_well else f"the lease {candidacy.lease_name if candidacy else ''} was not renewed in time"

    def shutdown() -> str | None:
        return "the process is shutting down" if is_stopping() else None

    def synced() -> str | None:
        live = current()
        if live is None:
            return "the scheduler is not built yet"
        unsynced = live.watching.unsynced()
        return f"waiting for {', '.join(unsynced)}" if unsynced else None

    election: dict[str, Check] = {"leaderElection": lease} if candidacy is not None else {}
    return HealthChecks(healthz=election, readyz={**election, "shutdown": shutdown, "sched-handler-sync": synced})
