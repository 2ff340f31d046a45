"""Settings of a scheduler process besides its configuration: the flags of `bayplan run`, and further duties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bayplan.app.live import ChangeRecorder, LiveScheduler
from bayplan.app.settings import Settings
from bayplan.config.loading import DEFAULT_SCHEDULER_NAME
from bayplan.config.model import SchedulerConfig
from bayplan.config.own import BayplanConfig
from bayplan.loop.observer import Observer
from bayplan.observe.clock import Clock
from bayplan.observe.metrics import MetricsRegistry
from bayplan.server.options import ServerOptions

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

__all__ = ["Extras", "RunOptions"]


class Extras(Protocol):
    """What a process may carry besides scheduling: explanations and a dashboard, for one."""

    @property
    def observers(self) -> list[Observer]: ...

    def register(self, registry: MetricsRegistry) -> None:
        """Add metrics of its own."""

    def attach(self, live: LiveScheduler) -> None:
        """Use this scheduler from now on."""

    def routes(self) -> list[BaseRoute]: ...

    def note_reload(self, what: str, problems: Sequence[str]) -> None: ...

    async def run(self) -> None:
        """Until cancelled."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    config_path: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    plugins: Sequence[str] = ()
    election: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration's `leaderElection` to replace."""
    qps: float | None = None
    burst: int | None = None
    pod_max_in_unschedulable_seconds: float = 300.0
    own: BayplanConfig = field(default_factory=BayplanConfig)
    """Settings that kube-scheduler does not have."""
    server: ServerOptions = field(default_factory=ServerOptions)
    authentication_kubeconfig: Path | None = None
    """For token reviews; None takes the scheduler's own access."""
    authorization_kubeconfig: Path | None = None
    """The same for what users may do."""
    skip_lookup: bool = False
    """Do not read the client authorities of the cluster; see `bayplan.app.authentication`."""
    tolerate_lookup_failure: bool = True
    disabled_metrics: Sequence[str] = ()
    profiling: bool | None = None
    """None takes the configuration's word."""
    logging_format: str = "text"
    verbosity: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    """As given, for /flagz."""
    observers: Sequence[Observer] = ()
    extras: Callable[[Clock, Callable[[], Settings]], Extras] | None = None
    """Makes what a process carries besides scheduling, from its clock and its settings at any time."""

    recorder: ChangeRecorder | None = None
    """Writes down what the scheduler works on and decides."""

    @property
    def seed(self) -> int:
        return self.own.seed

    def applied_to(self, settings: Settings) -> Settings:
        """The settings, with what was given here in place of the configuration's."""
        config = settings.config
        given = {
            "kubeconfig": None if self.kubeconfig is None else str(self.kubeconfig),
            "qps": self.qps,
            "burst": self.burst,
        }
        connection = {name: value for name, value in given.items() if value is not None}
        config = msgspec.structs.replace(
            config,
            leader_election=msgspec.structs.replace(config.leader_election, **{**_own_lease(config), **self.election}),
            client_connection=msgspec.structs.replace(config.client_connection, **connection),
            enable_profiling=config.enable_profiling if self.profiling is None else self.profiling,
        )
        return replace(settings, config=config)


def _own_lease(config: SchedulerConfig) -> dict[str, str]:
    """A second scheduler without a lease in its configuration gets one of its own: with that of kube-scheduler it would
    stand by for ever."""
    names = [profile.scheduler_name for profile in config.profiles]
    if DEFAULT_SCHEDULER_NAME in names or not config.source_of("leaderElection.resourceName").is_default:
        return {}
    return {"resource_name": names[0]}
