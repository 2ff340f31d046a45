from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator

import pytest

from bayplan.leader.election import ElectionSettings, LeaderElector, new_identity
from bayplan.observe.clock import VirtualClock

from .support import LeaseServer, Reply


class Candidate:
    """A replica with a diary of what election told it."""

    def __init__(self, name: str, server: LeaseServer, clock: VirtualClock, *, draw: float = 0.0) -> None:
        self.server = server
        self.diary: list[str] = []
        self.elector = LeaderElector(
            server,
            identity=name,
            clock=clock,
            draw=lambda: draw,
            on_started_leading=lambda: self.diary.append("started"),
            on_stopped_leading=lambda: self.diary.append("stopped"),
            on_new_leader=lambda identity: self.diary.append(f"leader={identity}"),
            on_lease_late=lambda: self.diary.append("late"),
            on_lease_overdue=lambda: self.diary.append("overdue"),
        )
        self.task = asyncio.create_task(self.elector.run(), name=name)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def die(self) -> None:
        """Stop as if killed: nothing reaches the server any more."""
        self.server.fault = Reply(500)
        await self.stop()
        self.server.fault = None


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def server() -> Iterator[LeaseServer]:
    yield LeaseServer()


async def test_the_first_candidate_creates_the_lease_and_leads(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)

    assert one.elector.is_leader
    assert one.diary == ["leader=one", "started"]
    assert server.spec == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
        "leaseTransitions": 0,
    }
    await clock.run_for(60.0)
    assert one.elector.is_leader
    assert server.spec["acquireTime"] == "2023-11-14T22:13:20.000000Z"
    assert server.spec["renewTime"] == "2023-11-14T22:14:20.000000Z"
    assert len(server.writes) == 31
    await one.stop()


async def test_the_second_waits_as_long_as_the_first_renews(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock)
    await clock.run_for(300.0)

    assert one.elector.is_leader
    assert not two.elector.is_leader
    assert two.elector.leader == "one"
    assert two.diary == ["leader=one"]
    await one.stop()
    await two.stop()


async def test_a_leader_that_vanishes_is_followed_after_its_lease(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock)
    await clock.run_for(1.0)
    await one.die()

    await clock.run_for(13.5)
    assert not two.elector.is_leader
    await clock.run_for(3.5)

    assert two.elector.is_leader
    assert server.spec["leaseTransitions"] == 1
    await two.stop()


async def test_a_follower_looks_at_the_moment_at_which_the_lease_expires(
    clock: VirtualClock, server: LeaseServer
) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock, draw=0.7)
    await clock.run_for(0.0)
    await one.die()
    await clock.run_for(14.9)
    assert not two.elector.is_leader
    await clock.run_for(0.2)

    assert two.elector.is_leader
    await two.stop()


async def test_a_leader_knows_until_when_another_may_have_led(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await one.elector.look()
    await clock.run_for(3.0)
    assert one.elector.free_since == 0.0

    two = Candidate("two", server, clock)
    await clock.run_for(20.0)
    await one.die()
    await clock.run_for(20.0)
    assert two.elector.is_leader
    assert 20.0 < two.elector.free_since <= clock.monotonic()

    three = Candidate("three", server, clock)
    await clock.run_for(5.0)
    released_at = clock.monotonic()
    await two.stop()
    await clock.run_for(5.0)
    assert three.elector.is_leader
    assert three.elector.free_since >= released_at
    await three.stop()

    await clock.run_for(5.0)
    late = Candidate("late", server, clock)
    await late.elector.look()
    looked_at = clock.monotonic()
    await clock.run_for(1.0)
    assert late.elector.free_since == looked_at
    await late.stop()


async def test_a_follower_is_told_once_when_the_leader_is_late_and_when_it_is_past_its_deadline(
    clock: VirtualClock, server: LeaseServer
) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock, draw=0.7)
    await clock.run_for(60.0)
    assert two.diary == ["leader=one"]

    died_at = clock.monotonic()
    await one.die()
    while "late" not in two.diary:
        await clock.run_for(0.1)
    late_at = clock.monotonic()
    await clock.run_for(0.9)
    assert two.diary == ["leader=one", "late"]
    await clock.run_for(0.2)
    assert two.diary == ["leader=one", "late", "overdue"]
    overdue_at = clock.monotonic()
    await clock.run_for(5.0)

    assert two.diary == ["leader=one", "late", "overdue", "leader=two", "started"]
    assert 9.0 <= late_at - died_at <= 14.0
    assert two.elector.free_since < overdue_at
    await two.stop()


async def test_a_deadline_that_is_not_known_is_taken_to_be_the_end_of_the_lease(
    clock: VirtualClock, server: LeaseServer
) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    server.spec["leaseDurationSeconds"] = 20
    two = Candidate("two", server, clock)
    await clock.run_for(0.0)
    seen_at = clock.monotonic()
    await one.die()
    await clock.run_for(21.0)

    assert two.diary == ["leader=one", "late", "leader=two", "started"]
    assert two.elector.free_since == seen_at + 20
    await two.stop()


async def test_a_leader_that_is_cancelled_hands_over_at_once(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock)
    await clock.run_for(1.0)
    await one.stop()

    assert one.task.cancelled()
    assert one.diary == ["leader=one", "started", "stopped"]
    assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
    await clock.run_for(2.0)
    assert two.elector.is_leader
    await two.stop()


async def test_a_follower_that_is_cancelled_touches_nothing(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock)
    await clock.run_for(5.0)
    await two.stop()

    assert set(server.writes) == {"one"}
    await one.stop()


@pytest.mark.parametrize("fault", [Reply(500), OSError("unreachable"), "stuck"])
async def test_a_leader_that_cannot_renew_stops_at_the_deadline(
    clock: VirtualClock, server: LeaseServer, fault: Reply | Exception | str
) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    server.is_stuck = fault == "stuck"
    server.fault = None if isinstance(fault, str) else fault

    await clock.run_for(9.9)
    assert one.elector.is_leader
    await clock.run_for(0.2)

    assert not one.elector.is_leader
    assert one.diary[-1] == "stopped"
    assert one.task.done()
    assert one.task.exception() is None


async def test_a_leader_whose_event_loop_was_stuck_knows_it_by_its_own_clock(
    clock: VirtualClock, server: LeaseServer
) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)

    clock.advance(10.0)

    assert not one.elector.is_leader
    assert one.diary[-1] == "started"
    await clock.run_for(0.0)
    assert one.diary[-1] == "stopped"
    await one.stop()


async def test_two_replicas_never_lead_at_the_same_time(clock: VirtualClock, server: LeaseServer) -> None:
    replicas = [Candidate(name, server, clock) for name in ("one", "two", "three")]
    for second in range(200):
        server.fault = Reply(500) if 20 <= second % 50 < 45 else None
        await clock.run_for(1.0)
        assert sum(replica.elector.is_leader for replica in replicas) <= 1
        for index, replica in enumerate(replicas):
            if replica.task.done():
                replicas[index] = Candidate(replica.elector.identity + "'", server, clock)
    for replica in replicas:
        await replica.stop()

    assert len(set(server.writes)) > 2


async def test_a_lost_write_race_is_settled_by_looking(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    server.touch()
    await clock.run_for(2.0)
    assert one.elector.is_leader

    server.spec["holderIdentity"] = "usurper"
    server.spec["renewTime"] = "2023-11-14T22:14:00.000000Z"
    server.touch()
    await clock.run_for(2.0)

    assert not one.elector.is_leader
    assert one.diary[-2:] == ["leader=usurper", "stopped"]
    assert one.task.done()


async def test_a_released_or_empty_lease_is_taken(clock: VirtualClock, server: LeaseServer) -> None:
    server.lease = {"metadata": {"resourceVersion": "0"}, "spec": {}}
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)

    assert one.elector.is_leader
    await one.stop()


async def test_the_same_identity_takes_its_own_lease_back(clock: VirtualClock, server: LeaseServer) -> None:
    first = Candidate("one", server, clock)
    await clock.run_for(0.0)
    await first.die()
    again = Candidate("one", server, clock)
    await clock.run_for(0.0)

    assert again.elector.is_leader
    assert server.spec["leaseTransitions"] == 0
    await again.stop()


async def test_a_leader_that_is_cancelled_amid_a_renewal_hands_over_at_once(
    clock: VirtualClock, server: LeaseServer
) -> None:
    """The renewal was written, and its answer is lost."""
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    server.touch()
    await one.stop()

    assert server.spec["holderIdentity"] == ""


async def test_a_lease_that_another_took_meanwhile_is_not_released(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    server.spec["holderIdentity"] = "two"
    server.touch()
    await one.stop()

    assert server.spec["holderIdentity"] == "two"


async def test_a_release_that_fails_is_only_logged(
    clock: VirtualClock, server: LeaseServer, caplog: pytest.LogCaptureFixture
) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    server.fault = Reply(500)
    with caplog.at_level(logging.WARNING):
        await one.stop()

    assert "could not be released" in caplog.text


async def test_a_problem_is_told_once(
    clock: VirtualClock, server: LeaseServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fault = Reply(403)
    with caplog.at_level(logging.WARNING):
        one = Candidate("one", server, clock)
        await clock.run_for(30.0)
        await one.stop()

    assert caplog.text.count("grant get, create and update on leases") == 1


async def test_the_watchdog_notices_a_leader_that_is_stuck(clock: VirtualClock, server: LeaseServer) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    assert one.elector.is_healthy
    clock.advance(34.0)  # and the event loop has not turned yet
    assert one.elector.is_healthy
    clock.advance(2.0)
    assert not one.elector.is_healthy
    await one.stop()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"lease_duration": 10.0}, "leaseDuration .10s. must be greater than renewDeadline .10s."),
        ({"retry_period": 9.0}, "renewDeadline .10s. must be greater than 1.2 times retryPeriod .9s."),
        ({"retry_period": 0.0}, "retryPeriod more than 0s"),
        ({"lease_duration": 0.5, "renew_deadline": 0.4}, "at least 1s"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ElectionSettings(**settings)  # type: ignore[arg-type]


def test_an_identity_is_the_host_and_something_unique() -> None:
    assert re.fullmatch(r"node-1_[0-9a-f-]{36}", new_identity("node-1"))
    assert new_identity("x") != new_identity("x")


async def test_a_lease_that_somebody_deletes_is_left_to_its_holder(clock: VirtualClock, server: LeaseServer) -> None:
    """The holder leads until its deadline, whether it has noticed or not."""
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock)
    for _ in range(5):
        await clock.run_for(1.0)
        server.lease = None
        await clock.run_for(0.0)
        for _ in range(80):
            await clock.run_for(0.1)
            assert not two.elector.is_leader
    assert one.elector.is_leader

    await one.die()
    server.lease = None
    await clock.run_for(17.5)
    assert two.elector.is_leader
    await two.stop()


@pytest.mark.parametrize(
    "body", [b"{}", b'{"kind": "Status", "metadata": {}}', b'{"kind": "Pod", "metadata": {"resourceVersion": "1"}}']
)
async def test_an_answer_that_is_no_lease_gives_and_costs_nobody_the_lease(
    clock: VirtualClock, server: LeaseServer, body: bytes
) -> None:
    one = Candidate("one", server, clock)
    await clock.run_for(0.0)
    two = Candidate("two", server, clock)
    await clock.run_for(1.0)
    server.fault = Reply(201, body)
    await clock.run_for(6.0)
    assert not two.elector.is_leader
    assert one.elector.is_leader
    server.fault = None
    await clock.run_for(30.0)

    assert one.elector.is_leader
    await one.stop()
    await two.stop()
