"""`bayplan run`: a scheduler process, from start to hand-over.

    connect -> serve health -> reflect the cluster -> lead -> schedule -> (SIGHUP: reload) -> SIGTERM: finish

A replica asks for the lease once it knows the cluster; with `delayCacheUntilActive` it is the other way round.

Losing the lease ends the process with status 1, at once and without another binding, as a new leader may already be at
work. SIGTERM and SIGINT finish the bindings under way, hand the lease over and end with status 0.
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from starlette.routing import BaseRoute

from bayplan.api.kinds import Kind
from bayplan.app.client_metrics import MeasuredTransport, RequestMetrics
from bayplan.app.controllers.status_controllers import ControllerOptions, StatusControllers, kinds_among
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.serving import ProcessFacts, make_metrics, make_parts
from bayplan.app.settings import Settings, SettingsError, load_settings
from bayplan.app.watching import served_kinds
from bayplan.client.backoff import Backoff, BackoffSettings
from bayplan.client.errors import CredentialError, Forbidden, NoAnswer, ServerError, TooManyRequests, Unauthorized
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.rate_limit import RateLimitedTransport, TokenBucket
from bayplan.client.transport import Transport
from bayplan.config.model import SchedulerConfig
from bayplan.leader.election import ElectionSettings, LeaderElector, new_identity
from bayplan.loop.observer import Observer
from bayplan.observe.clock import Clock, SystemClock
from bayplan.observe.logs import Log, LogSettings, configure_logging
from bayplan.observe.metrics import Registry
from bayplan.server.options import ServerOptions, TlsFiles
from bayplan.server.serving import serve

__all__ = ["RunOptions", "SchedulerProcess", "run_scheduler"]

_log = structlog.get_logger()
_PATIENCE_AT_START_SECONDS = 30.0


class Extras(Protocol):
    """What a process may carry besides scheduling: explanations and a dashboard, for one."""

    @property
    def observers(self) -> list[Observer]: ...

    def attach(self, live: LiveScheduler) -> None:
        """The scheduler at work from now on."""

    def routes(self) -> list[BaseRoute]: ...

    def note_reload(self, what: str, problems: Sequence[str]) -> None: ...

    async def run(self) -> None:
        """Until cancelled."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The flags of `bayplan run`."""

    config_path: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    plugins: Sequence[str] = ()
    leader_elect: bool | None = None
    """None takes the configuration's word."""
    lease_name: str | None = None
    lease_namespace: str | None = None
    qps: float | None = None
    burst: int | None = None
    seed: int = 0
    pod_max_in_unschedulable_seconds: float = 300.0
    bind_address: str = "127.0.0.1"
    secure_port: int = 10259
    """Of the HTTPS endpoints; 0 switches them off."""
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    logging_format: str = "text"
    verbosity: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)
    with_controllers: bool = False
    """Whether the leader also writes the status of PodGroups and ElasticQuotas."""
    observers: Sequence[Observer] = ()
    extras: Callable[[Clock, Callable[[], Settings]], Extras] | None = None
    """Makes what a process carries besides scheduling, from its clock and its settings at any time."""


async def run_scheduler(options: RunOptions) -> int:
    """Run until told to stop; the exit status. Raises SettingsError and KubeconfigError before anything runs."""
    log = configure_logging(LogSettings(format=options.logging_format, verbosity=options.verbosity))
    settings = load_settings(options.config_path, options.plugins)
    clock = SystemClock()
    dice = random.Random(options.seed)
    access = find_access(
        clock=clock,
        environment=options.environment,
        kubeconfig=options.kubeconfig or _configured_kubeconfig(settings.config),
        context=options.context,
    )
    http = HttpTransport(access, draw=dice.random)
    lease_http = HttpTransport(access, draw=dice.random)
    registry = Registry()
    requests = RequestMetrics(registry)
    try:
        # What waits for the limit is not yet on its way to the server, so the clock starts after it.
        measured, measured_lease = (
            MeasuredTransport(each, requests, host=urlsplit(access.server).netloc, clock=clock)
            for each in (http, lease_http)
        )
        transport = _limited(measured, settings.config, options, clock)
        # Renewals have connections of their own: they must never wait behind bindings.
        process = SchedulerProcess(
            transport, settings, options, clock, lease_transport=measured_lease, log=log, registry=registry
        )
        return await process.run()
    finally:
        await http.close()
        await lease_http.close()


def _configured_kubeconfig(config: SchedulerConfig) -> Path | None:
    path = config.client_connection.kubeconfig
    return Path(path) if path else None


def _limited(transport: Transport, config: SchedulerConfig, options: RunOptions, clock: Clock) -> Transport:
    connection = config.client_connection
    qps = connection.qps if options.qps is None else options.qps
    burst = connection.burst if options.burst is None else options.burst
    bucket = TokenBucket(qps=qps, burst=burst, clock=clock)
    return transport if bucket.is_unlimited else RateLimitedTransport(transport, bucket)


class SchedulerProcess:
    """One replica: its scheduler, its candidacy, and what signals do to it."""

    def __init__(
        self,
        transport: Transport,
        settings: Settings,
        options: RunOptions,
        clock: Clock,
        *,
        lease_transport: Transport,
        log: Log,
        registry: Registry | None = None,
    ) -> None:
        self._log = log
        self._transport = transport
        self._lease_transport = lease_transport
        self._settings = settings
        self._options = options
        self._clock = clock
        self._leads = asyncio.Event()
        self._stop = asyncio.Event()
        self._exit_status = 0
        self.live: LiveScheduler | None = None
        self.elector = self._make_elector() if self._elects else None
        self._extras = options.extras(clock, lambda: self._settings) if options.extras is not None else None
        self._facts = self._make_facts()
        self._registry = registry or Registry()
        self._metrics = make_metrics(self._registry, clock, self._facts)

    @property
    def _elects(self) -> bool:
        asked = self._options.leader_elect
        return self._settings.config.leader_election.leader_elect if asked is None else asked

    def _make_facts(self) -> ProcessFacts:
        return ProcessFacts(
            live=lambda: self.live,
            settings=lambda: self._settings,
            is_leader=self._still_leads,
            is_lease_healthy=lambda: self.elector is None or self.elector.is_healthy,
            is_stopping=self._stop.is_set,
            flags=_shown_flags(self._options),
            set_verbosity=self._log.set_verbosity,
            lease_name=self._lease_name if self.elector is not None else "",
        )

    @property
    def _lease_name(self) -> str:
        return self._options.lease_name or self._settings.config.leader_election.resource_name

    def _make_elector(self) -> LeaderElector:
        election = self._settings.config.leader_election
        return LeaderElector(
            self._lease_transport,
            identity=new_identity(socket.gethostname()),
            clock=self._clock,
            draw=random.Random(self._options.seed).random,
            on_started_leading=self._leads.set,
            on_stopped_leading=self._leads.clear,
            settings=ElectionSettings(
                lease_duration=election.lease_duration.total_seconds(),
                renew_deadline=election.renew_deadline.total_seconds(),
                retry_period=election.retry_period.total_seconds(),
                name=self._lease_name,
                namespace=self._options.lease_namespace or election.resource_namespace,
            ),
        )

    async def run(self) -> int:
        kinds = await self._discover()
        self.live = LiveScheduler(
            self._transport,
            self._settings.config,
            self._settings.profiles,
            self._settings.registry,
            kinds,
            self._live_options(),
        )
        self._follow_signals()
        routes = self._extras.routes() if self._extras is not None else []
        parts = make_parts(self._facts, self._registry, self._transport, self._clock, routes)
        beside = [
            asyncio.create_task(self._run_extras(self.live), name="extras"),
            asyncio.create_task(self._run_controllers(), name="controllers"),
        ]
        try:
            async with serve(self._server_options(), parts):
                await self._work(self.live)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._unfollow_signals()
        return self._exit_status

    async def _discover(self) -> list[Kind]:
        """What the API server serves. One that is away or has just started is given a moment."""
        backoff = Backoff(BackoffSettings(ceiling_seconds=3.0), draw=random.Random(self._options.seed).random)
        deadline = self._clock.monotonic() + _PATIENCE_AT_START_SECONDS
        while True:
            try:
                return await served_kinds(self._transport)
            except Unauthorized as error:
                hint = "renew the token or certificate that the kubeconfig names, or choose another --kubeconfig"
                raise CredentialError(f"the API server does not know this user: {error}", hint=hint) from error
            except (NoAnswer, ServerError, TooManyRequests, Forbidden) as error:
                if self._clock.monotonic() >= deadline:
                    raise
                _log.warning("the API server does not answer yet, will try again", error=str(error))
            await self._clock.sleep(backoff.next_delay())

    async def _run_extras(self, live: LiveScheduler) -> None:
        """What fails here must not take the scheduler with it."""
        if self._extras is None:
            return
        self._extras.attach(live)
        try:
            await self._extras.run()
        except Exception:
            _log.exception("explanations ended; scheduling goes on without them")

    async def _run_controllers(self) -> None:
        """Under the scheduler's own lease; what fails here must not take the scheduler with it."""
        if not self._options.with_controllers:
            return
        draw = random.Random(self._options.seed).random
        names = {name for profile in self._settings.profiles for name in profile.plugin_names}
        watched = [kind for name in names for kind in self._settings.registry.get(name).watches]
        options = ControllerOptions(
            clock=self._clock, draw=draw, is_leader=self._still_leads, kinds=kinds_among(watched)
        )
        try:
            await StatusControllers(self._transport, options).run()
        except Exception:
            _log.exception("the controllers ended; scheduling goes on without them")

    async def _work(self, live: LiveScheduler) -> None:
        scheduling = asyncio.create_task(self._schedule(live), name="scheduler")
        leading = asyncio.create_task(self._lead(live, self.elector), name="leader election") if self.elector else None
        stopping = asyncio.create_task(self._stop.wait(), name="signals")
        waited_for = {scheduling, stopping} | ({leading} if leading else set())
        try:
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._wind_down(scheduling, leading, stopping)

    @property
    def _reads_late(self) -> bool:
        """Whether a replica that stands by is to read nothing: `delayCacheUntilActive`."""
        return self.elector is not None and self._settings.config.delay_cache_until_active

    async def _schedule(self, live: LiveScheduler) -> None:
        if self._reads_late:
            await self._wait_to_lead()
        await live.run()

    async def _lead(self, live: LiveScheduler, elector: LeaderElector) -> None:
        """A replica that cannot see the cluster must not keep the lease from one that can."""
        if not self._reads_late:
            await live.is_ready.wait()
        await elector.run()

    def _server_options(self) -> ServerOptions:
        options = self._options
        files = None
        if options.tls_cert_file is not None and options.tls_private_key_file is not None:
            files = TlsFiles(certificate=options.tls_cert_file, key=options.tls_private_key_file)
        return ServerOptions(
            is_enabled=options.secure_port != 0,
            bind_address=options.bind_address,
            port=options.secure_port,
            tls=files,
        )

    def _live_options(self) -> LiveOptions:
        options = LiveOptions(
            seed=self._options.seed,
            pod_max_in_unschedulable_seconds=self._options.pod_max_in_unschedulable_seconds,
            observers=[self._metrics, *(self._extras.observers if self._extras else ()), *self._options.observers],
            clock=self._clock,
            hint_observer=self._metrics.hint_asked,
        )
        if self.elector is None:
            return options
        return replace(options, is_leader=self._still_leads, wait_to_lead=self._wait_to_lead)

    def _still_leads(self) -> bool:
        return self.elector is None or self.elector.is_leader

    async def _wait_to_lead(self) -> None:
        await self._leads.wait()

    async def _wind_down(
        self, scheduling: asyncio.Task[None], leading: asyncio.Task[None] | None, stopping: asyncio.Task[bool]
    ) -> None:
        """Scheduling ends before the lease is given back, so that two replicas never bind at once."""
        if leading is not None and leading.done() and not self._stop.is_set():
            _log.error("leader election lost; another replica may be leading, so this one ends now")
            self._exit_status = 1
        elif scheduling.done() and not scheduling.cancelled() and scheduling.exception() is not None:
            _log.error("the scheduler failed", exc_info=scheduling.exception())
            self._exit_status = 1
        stopping.cancel()
        scheduling.cancel()
        await asyncio.gather(scheduling, stopping, return_exceptions=True)
        if leading is not None:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)

    # Signals

    def _follow_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number, act in self._signals().items():
            loop.add_signal_handler(number, act)

    def _unfollow_signals(self) -> None:
        for number in self._signals():
            asyncio.get_running_loop().remove_signal_handler(number)

    def _signals(self) -> dict[signal.Signals, Callable[[], object]]:
        return {signal.SIGTERM: self.stop, signal.SIGINT: self.stop, signal.SIGHUP: self.reload}

    def stop(self) -> None:
        """Finish what is under way and end."""
        self._stop.set()

    def reload(self) -> bool:
        """Read configuration and plugins again; a bad one is reported and the old one stays in force."""
        if self.live is None:
            return False
        try:
            settings = load_settings(self._options.config_path, self._options.plugins)
            self.live.reload(settings.config, settings.profiles, settings.registry)
        except SettingsError as error:
            self._note_reload("the new configuration is bad; the old one stays in force", error.problems)
            return False
        except Exception as error:
            _log.exception("reloading failed", error=str(error))
            self._note_reload(
                "the new configuration could not be put to work; the old one stays in force", [str(error)]
            )
            return False
        self._settings = settings
        self._note_reload("configuration reloaded", ())
        return True

    def _note_reload(self, what: str, problems: Sequence[str]) -> None:
        if problems:
            _log.error(what, problems=list(problems))
        else:
            _log.info(what, profiles=[p.scheduler_name for p in self._settings.profiles])
        if self._extras is not None:
            self._extras.note_reload(what, problems)


def _shown_flags(options: RunOptions) -> dict[str, str]:
    """The flags as given, for /flagz."""
    hidden = ("environment", "observers", "extras")
    return {field.name: str(getattr(options, field.name)) for field in fields(options) if field.name not in hidden}
