"""`bayplan run`: a scheduler process, from start to hand-over.

    connect -> reflect the cluster -> serve health -> lead -> schedule -> (SIGHUP: reload) -> SIGTERM: finish

What serves is loaded while the API server works on the first lists; nothing is scheduled before it serves. A replica
competes for the lease once it has read the cluster; with `delayCacheUntilActive` it is the other way round.

Losing the lease ends the process with status 1, at once and without another binding, as a new leader may already be at
work. SIGTERM and SIGINT finish the bindings under way, hand the lease over and end with status 0.
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from bayplan import __version__
from bayplan.api.kinds import ObjectKind
from bayplan.app.cache_debugger import CacheDebugger
from bayplan.app.connections import Connections, connected
from bayplan.app.decision_logger import DecisionLogger
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.run_options import RunOptions
from bayplan.app.serving import ProcessFacts, make_metrics, make_parts
from bayplan.app.settings import Settings, SettingsError, load_settings
from bayplan.app.stalls import at_work
from bayplan.app.watching import served_kinds, wanted_kinds
from bayplan.client.backoff import Backoff, BackoffSettings
from bayplan.client.errors import CredentialError, Forbidden, NoAnswer, ServerError, TooManyRequests, Unauthorized
from bayplan.config.own import WatchdogSettings
from bayplan.leader.election import ElectionSettings, LeaderElector, new_identity
from bayplan.observe.clock import Clock, SystemClock
from bayplan.observe.component_metrics import LOOP_STALLS
from bayplan.observe.logs import Log, LogSettings, configure_logging
from bayplan.observe.metrics import MetricsRegistry
from bayplan.observe.watchdog import StallLimits, Watchdog

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from bayplan.app.authentication import ClientAuthorities

__all__ = ["RunOptions", "SchedulerProcess", "run_scheduler"]

T = TypeVar("T")
_log = structlog.get_logger()
_PATIENCE_AT_START_SECONDS = 30.0


async def run_scheduler(options: RunOptions) -> int:
    """Run until a signal; the exit status. Raises SettingsError and KubeconfigError before anything runs."""
    log = configure_logging(LogSettings(format=options.logging_format, verbosity=options.verbosity))
    settings = options.applied_to(load_settings(options.config_path, options.plugins))
    log.show_plugins_in(settings.plugin_places)
    clock, registry = SystemClock(), MetricsRegistry(disabled=options.disabled_metrics)
    async with connected(options, settings.config, clock, registry) as connections:
        process = SchedulerProcess(connections, settings, options, clock, log=log, registry=registry)
        return await process.run()


class SchedulerProcess:
    """One replica: its scheduler, its candidacy, and what signals do to it."""

    def __init__(
        self,
        connections: Connections,
        settings: Settings,
        options: RunOptions,
        clock: Clock,
        *,
        log: Log,
        registry: MetricsRegistry,
    ) -> None:
        self._log = log
        self._decision_log = DecisionLogger(log, slow_seconds=options.own.logging.slow_call.total_seconds())
        self._connections = connections
        self._transport = connections.work
        self._settings = options.applied_to(settings)
        self._options = options
        self._clock = clock
        self._leads = asyncio.Event()
        self._serves = asyncio.Event()
        self._stop = asyncio.Event()
        self._exit_status = 0
        self.live: LiveScheduler | None = None
        self._election = self._settings.config.leader_election
        self.elector = self._make_elector() if self._election.leader_elect else None
        self._extras = options.extras(clock, lambda: self._settings) if options.extras is not None else None
        self._debugger = CacheDebugger(lambda: self.live, clock)
        self._facts = self._make_facts()
        self._registry = registry
        if self._extras is not None:
            self._extras.register(registry)
        self._metrics = make_metrics(self._registry, clock, self._facts)
        self._watchdog = Watchdog(
            _stall_limits(options.own.watchdog),
            describe=at_work,
            on_stall=registry.counter(LOOP_STALLS).only.inc,
        )
        self._note_unknown_metrics()

    def _note_unknown_metrics(self) -> None:
        unknown = sorted(set(self._options.disabled_metrics) - set(self._registry.disabled))
        if unknown:
            _log.warning("--disabled-metrics names metrics that do not exist; /metrics lists those that do", of=unknown)

    def _make_facts(self) -> ProcessFacts:
        return ProcessFacts(
            live=lambda: self.live,
            settings=lambda: self._settings,
            is_leader=self._still_leads,
            is_lease_healthy=lambda: self.elector is None or self.elector.is_healthy,
            is_stopping=self._stop.is_set,
            flags=self._options.flags,
            own=self._options.own,
            is_profiling=lambda: self._settings.config.enable_profiling,
            set_verbosity=self._set_verbosity,
            lease_name=self._election.resource_name if self.elector is not None else "",
        )

    def _set_verbosity(self, verbosity: int) -> None:
        self._log.set_verbosity(verbosity)
        self._decision_log.follow_verbosity()

    def _make_elector(self) -> LeaderElector:
        election = self._election
        try:
            settings = ElectionSettings(
                lease_duration=election.lease_duration.total_seconds(),
                renew_deadline=election.renew_deadline.total_seconds(),
                retry_period=election.retry_period.total_seconds(),
                name=election.resource_name,
                namespace=election.resource_namespace,
            )
        except ValueError as error:
            raise SettingsError([str(error)]) from error
        identity = new_identity(socket.gethostname())
        return LeaderElector(
            self._connections.lease,
            identity=identity,
            clock=self._clock,
            draw=random.Random(self._options.seed).random,
            on_started_leading=self._leads.set,
            on_stopped_leading=self._leads.clear,
            on_new_leader=lambda leader: _note_leader(leader, identity, settings),
            on_lease_late=self._prepare_to_follow,
            on_lease_overdue=self._read_ahead,
            settings=settings,
        )

    async def run(self) -> int:
        _log.info(
            "bayplan starts",
            version=__version__,
            api_server=self._connections.server,
            access=self._connections.source,
            profiles=[profile.scheduler_name for profile in self._settings.profiles],
            plugins=list(self._options.plugins),
        )
        _note_cautions(self._settings)
        self._follow_signals()
        try:
            async with self._watchdog.watching():
                kinds = await self._unless_stopped(self._look_around())
                if kinds is not None:
                    await self._read_and_work(kinds)
        finally:
            await self._debugger.close()
            self._unfollow_signals()
        return self._exit_status

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of the work; None when a signal came first."""
        working = asyncio.create_task(work, name="start")
        stopping = asyncio.create_task(self._stop.wait(), name="signals")
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    async def _look_around(self) -> list[ObjectKind]:
        """Find out which kinds the API server serves, and who leads: read before all else, so that it is known since
        when the lease has been free."""
        kinds = await self._discover()
        if self.elector is not None:
            await self.elector.look()
        return kinds

    async def _read_and_work(self, kinds: list[ObjectKind]) -> None:
        self.live = LiveScheduler(
            self._transport,
            self._settings.config,
            self._settings.profiles,
            self._settings.registry,
            kinds,
            self._live_options(),
        )
        self._decision_log.attach(self.live)
        scheduling = asyncio.create_task(self._schedule(self.live), name="scheduler")
        try:
            await self._serve_and_work(self.live, scheduling)
        finally:
            scheduling.cancel()
            await asyncio.gather(scheduling, return_exceptions=True)

    async def _serve_and_work(self, live: LiveScheduler, scheduling: asyncio.Task[None]) -> None:
        routes: list[BaseRoute] = []
        if self._options.server.is_enabled:
            # In a thread: meanwhile the API server works on the lists, and the event loop turns.
            await asyncio.to_thread(_load_endpoints)
            routes = await asyncio.to_thread(self._extras.routes) if self._extras is not None else []
        from bayplan.app.authentication import find_authorities, review_with
        from bayplan.server.serving import serve

        async def look_up() -> tuple[ClientAuthorities | None]:
            return (await find_authorities(self._options, self._connections.token_reviews, self._clock),)

        found = await self._unless_stopped(look_up())
        if found is None:
            return
        (authorities,) = found
        review = review_with(self._connections.token_reviews, self._connections.access_reviews)
        parts = make_parts(self._facts, self._registry, review, self._clock, routes)
        beside = [
            asyncio.create_task(self._run_extras(live), name="extras"),
            asyncio.create_task(self._run_controllers(), name="controllers"),
        ]
        server = self._options.server
        if authorities is not None:
            server = replace(server, authentication=authorities.complete(server.authentication))
            beside.append(asyncio.create_task(authorities.follow(), name="client authorities"))
        try:
            async with serve(server, parts):
                self._serves.set()
                await self._work(live, scheduling)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _discover(self) -> list[ObjectKind]:
        """What the API server serves. One that is away or has just started is given a moment."""
        backoff = Backoff(BackoffSettings(ceiling_seconds=3.0), draw=random.Random(self._options.seed).random)
        deadline = self._clock.monotonic() + _PATIENCE_AT_START_SECONDS
        while True:
            try:
                return await served_kinds(self._transport, wanted_kinds(self._options.own))
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
        if not self._options.own.with_controllers:
            return
        from bayplan.app.controllers.status_controllers import ControllerOptions, StatusControllers, kinds_among

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

    async def _work(self, live: LiveScheduler, scheduling: asyncio.Task[None]) -> None:
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

    def _prepare_to_follow(self) -> None:
        """The leader owes renewals, and may be past its deadline soon."""
        if self.live is not None and self.live.is_ready.is_set():
            self.live.watching.prepare_refresh()

    def _read_ahead(self) -> None:
        """The leader may not write any more: learn now what it wrote, so that this is done when its lease expires."""
        if self.live is not None and self.live.is_ready.is_set():
            self.live.watching.refresh()

    async def _lead(self, live: LiveScheduler, elector: LeaderElector) -> None:
        """A replica that cannot see the cluster must not keep the lease from one that can."""
        if not self._reads_late:
            await live.is_ready.wait()
        await elector.run()

    def _live_options(self) -> LiveOptions:
        options = LiveOptions(
            seed=self._options.seed,
            pod_max_in_unschedulable_seconds=self._options.pod_max_in_unschedulable_seconds,
            observers=[
                self._metrics,
                self._decision_log,
                *(self._extras.observers if self._extras else ()),
                *self._options.observers,
            ],
            clock=self._clock,
            hint_observer=self._metrics.hint_asked,
            on_move=self._decision_log.moved,
            recorder=self._options.recorder,
            wait_to_lead=self._wait_to_lead,
        )
        if self.elector is None:
            return options
        elector = self.elector
        return replace(options, is_leader=self._still_leads, others_led_until=lambda: elector.free_since)

    def _still_leads(self) -> bool:
        return self.elector is None or self.elector.is_leader

    async def _wait_to_lead(self) -> None:
        await self._serves.wait()
        if self.elector is not None:
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
        self._watchdog.follow_signals(signal.SIGTERM, signal.SIGINT)

    def _unfollow_signals(self) -> None:
        for number in self._signals():
            asyncio.get_running_loop().remove_signal_handler(number)

    def _signals(self) -> dict[signal.Signals, Callable[[], object]]:
        return {
            signal.SIGTERM: self.stop,
            signal.SIGINT: self.stop,
            signal.SIGHUP: self.reload,
            signal.SIGUSR2: self._debugger.start,
        }

    def stop(self) -> None:
        """Finish what is under way and end."""
        if not self._stop.is_set():
            _log.info("stopping on a signal")
        self._stop.set()

    def reload(self) -> bool:
        """Read configuration and plugins again; a bad one is reported and the old one stays in force."""
        if self.live is None:
            return False
        try:
            settings = self._options.applied_to(load_settings(self._options.config_path, self._options.plugins))
            self.live.reload(settings.config, settings.profiles, settings.registry)
        except SettingsError as error:
            self._note_reload("the new configuration is bad; the old one stays in force", error.problems)
            return False
        except Exception as error:
            _log.exception("reloading failed", error=str(error))
            self._note_reload("the new configuration could not be applied; the old one stays in force", [str(error)])
            return False
        self._settings = settings
        self._log.show_plugins_in(settings.plugin_places)
        self._note_reload("configuration reloaded", ())
        _note_cautions(settings)
        return True

    def _note_reload(self, what: str, problems: Sequence[str]) -> None:
        if problems:
            _log.error(what, problems=list(problems))
        else:
            _log.info(what, profiles=[p.scheduler_name for p in self._settings.profiles])
        if self._extras is not None:
            self._extras.note_reload(what, problems)


def _load_endpoints() -> None:
    import bayplan.app.authentication
    import bayplan.server.serving  # noqa: F401 - loads them for later imports


def _note_cautions(settings: Settings) -> None:
    for caution in settings.cautions:
        _log.warning(caution.text, plugin=caution.plugin)


def _stall_limits(watchdog: WatchdogSettings) -> StallLimits:
    return StallLimits(
        notice_seconds=watchdog.notice_after.total_seconds(),
        end_seconds=watchdog.end_after.total_seconds(),
        stop_seconds=watchdog.stop_within.total_seconds(),
    )


def _note_leader(leader: str, identity: str, lease: ElectionSettings) -> None:
    if leader != identity:
        what = "another replica leads, this one stands by" if leader else "no replica holds the lease"
        _log.info(what, leader=leader, lease=f"{lease.namespace}/{lease.name}")
