from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bayplan.app.telemetry import Candidacy, Telemetry, health_checks
from bayplan.observe.clock import VirtualClock
from bayplan.server import ServerOptions, ServerParts, serve

from .answering import Answering, answer


def candidacy(*, is_leader: bool = True, is_healthy: bool = True) -> Candidacy:
    return Candidacy(lease_name="kube-scheduler", is_leader=lambda: is_leader, is_healthy=lambda: is_healthy)


def watching(*unsynced: str) -> Any:
    """As much of a scheduler as probes look at."""
    return SimpleNamespace(watching=SimpleNamespace(unsynced=lambda: list(unsynced)))


async def test_a_process_tells_about_itself_before_there_is_a_scheduler() -> None:
    telemetry = Telemetry(VirtualClock(), version="1.2.3", current=lambda: None, candidacy=candidacy(is_leader=False))
    transport = telemetry.measured(Answering(answer(200, {})), host="here")
    await transport.request("GET", "/version")
    text = telemetry.metrics("")[0].decode()

    assert 'leader_election_master_status{name="kube-scheduler"} 0' in text
    assert 'rest_client_requests_total{code="200",method="GET",host="here"} 1' in text
    assert 'bayplan_build_info{version="1.2.3"' in text
    assert "scheduler_preemption_attempts_total 0" in text
    assert "process_start_time_seconds 1700000000" in text
    assert list(telemetry.resource_metrics()) == []


def test_metrics_of_a_feature_exist_while_it_is_on() -> None:
    def names(**features: bool) -> set[str]:
        telemetry = Telemetry(VirtualClock(), version="", current=lambda: None, features=features)
        return {family.name for family in telemetry.registry.families}

    assert "scheduler_pending_async_api_calls" in names(SchedulerAsyncAPICalls=True)
    assert "scheduler_pending_async_api_calls" not in names(SchedulerAsyncAPICalls=False)


def test_a_disabled_metric_is_not_shown() -> None:
    telemetry = Telemetry(VirtualClock(), version="", current=lambda: None, disabled=["process_max_fds"])
    text = telemetry.metrics("")[0].decode()

    assert "process_max_fds" not in text
    assert "disabled_metrics_total 1" in text


def test_a_replica_is_ready_when_it_is_synced_and_stays() -> None:
    well = health_checks(lambda: watching(), is_stopping=lambda: False)

    assert list(well.readyz) == ["shutdown", "sched-handler-sync"]
    assert [check() for check in well.readyz.values()] == [None, None]
    assert well.healthz == {}


def test_a_replica_that_is_not_ready_says_why() -> None:
    nothing = health_checks(lambda: None, is_stopping=lambda: True)
    waiting = health_checks(lambda: watching("/api/v1/pods (forbidden)"), is_stopping=lambda: False)

    assert nothing.readyz["shutdown"]() == "the process is shutting down"
    assert nothing.readyz["sched-handler-sync"]() == "the scheduler is not built yet"
    assert waiting.readyz["sched-handler-sync"]() == "waiting for /api/v1/pods (forbidden)"


def test_a_replica_that_elects_is_healthy_while_its_lease_is() -> None:
    well = health_checks(lambda: watching(), is_stopping=lambda: False, candidacy=candidacy())
    stuck = health_checks(lambda: watching(), is_stopping=lambda: False, candidacy=candidacy(is_healthy=False))

    assert well.healthz["leaderElection"]() is None
    assert "kube-scheduler was not renewed" in (stuck.healthz["leaderElection"]() or "")
    assert list(stuck.readyz) == ["leaderElection", "shutdown", "sched-handler-sync"]


async def test_all_of_it_fits_into_a_server() -> None:
    telemetry = Telemetry(VirtualClock(), version="1.2.3", current=lambda: None)
    parts = ServerParts(
        version="1.2.3",
        health=health_checks(lambda: None, is_stopping=lambda: False),
        metrics=telemetry.metrics,
        resource_metrics=telemetry.resource_metrics,
    )
    async with serve(ServerOptions(port=0, is_plain_http=True), parts) as server:
        assert server.url.startswith("http://127.0.0.1:")
