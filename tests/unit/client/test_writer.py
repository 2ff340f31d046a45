from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from bayplan.client.errors import (
    Conflict,
    ConnectionFailed,
    Forbidden,
    InvalidResponse,
    KubeconfigError,
    NoAnswer,
    NotFound,
    RequestTimeout,
    ServerError,
)
from bayplan.client.transport import Response
from bayplan.client.writer import Writer
from bayplan.observe.clock import VirtualClock

from .support import Call, ScriptedTransport, answer, in_turn, no_draw, refusal

RESET = ConnectionFailed("reset", may_have_been_processed=True)
UNUSABLE = KubeconfigError("the certificate and its key cannot be used", hint="wait")
REFUSED = ConnectionFailed("refused", may_have_been_processed=False)
LATE = RequestTimeout("late", may_have_been_processed=True)
OK = answer(201, {"kind": "Status"})
TAKEN = refusal(409, "Conflict", 'pod web is already assigned to node "n1"')


def pod(*, uid: str = "u-1", node: str = "n1") -> Response:
    return answer(200, {"metadata": {"uid": uid}, "spec": {"nodeName": node, "containers": []}})


async def _run(clock: VirtualClock, work: Coroutine[object, object, None]) -> None:
    task = asyncio.create_task(work)
    await clock.run_for(200.0)
    await task


def _bind(clock: VirtualClock, *answers: Response | Exception) -> tuple[Coroutine[object, object, None], list[Call]]:
    transport = ScriptedTransport(in_turn(*answers))
    writer = Writer(transport, clock=clock, draw=no_draw)
    return writer.bind("team", "web", uid="u-1", node="n1"), transport.calls


async def test_a_binding_is_one_request_with_the_uid_as_its_precondition(clock: VirtualClock) -> None:
    work, calls = _bind(clock, OK)
    await _run(clock, work)

    assert [(call.method, call.path) for call in calls] == [("POST", "/api/v1/namespaces/team/pods/web/binding")]
    assert calls[0].json == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web", "namespace": "team", "uid": "u-1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


@pytest.mark.parametrize("unclear", [RESET, LATE, refusal(500), refusal(503), refusal(504)])
async def test_a_binding_that_went_through_before_the_answer_was_lost_is_a_success(
    clock: VirtualClock, unclear: Response | Exception
) -> None:
    work, calls = _bind(clock, unclear, TAKEN, pod())
    await _run(clock, work)

    assert [call.method for call in calls] == ["POST", "POST", "GET"]


async def test_a_binding_that_did_not_go_through_is_made_by_the_next_attempt(clock: VirtualClock) -> None:
    for first in (RESET, REFUSED, refusal(429, "TooManyRequests")):
        work, calls = _bind(clock, first, OK)
        await _run(clock, work)
        assert [call.method for call in calls] == ["POST", "POST"]


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (pod(node="n2"), 'already assigned to node "n2"'),
        (pod(node=""), 'already assigned to node "n1"'),
        (pod(uid="u-2"), "another pod by now"),
    ],
)
async def test_a_conflict_that_is_not_our_doing_is_raised(clock: VirtualClock, found: Response, problem: str) -> None:
    work, _ = _bind(clock, RESET, TAKEN, found)

    with pytest.raises(Conflict, match=problem):
        await _run(clock, work)


async def test_a_pod_that_went_elsewhere_while_no_answer_came_is_a_conflict(clock: VirtualClock) -> None:
    work, _ = _bind(clock, *[RESET] * 5, pod(node="n2"))

    with pytest.raises(Conflict, match='already assigned to node "n2"'):
        await _run(clock, work)


async def test_a_pod_that_a_leader_before_this_one_bound_to_the_same_node_is_bound(clock: VirtualClock) -> None:
    work, calls = _bind(clock, TAKEN, pod())
    await _run(clock, work)

    assert [call.method for call in calls] == ["POST", "GET"]


async def test_a_pod_that_somebody_else_bound_elsewhere_is_a_conflict(clock: VirtualClock) -> None:
    work, calls = _bind(clock, TAKEN, pod(node="n2"))

    with pytest.raises(Conflict, match='already assigned to node "n2"'):
        await _run(clock, work)
    assert [call.method for call in calls] == ["POST", "GET"]


async def test_when_every_attempt_is_unclear_the_pod_itself_tells(clock: VirtualClock) -> None:
    work, calls = _bind(clock, *[refusal(500)] * 5, pod())
    await _run(clock, work)
    assert [call.method for call in calls] == ["POST"] * 5 + ["GET"]

    work, _ = _bind(clock, *[refusal(500)] * 5, pod(node=""))
    with pytest.raises(ServerError):
        await _run(clock, work)

    work, _ = _bind(clock, *[RESET] * 5, refusal(404, "NotFound"))
    with pytest.raises(NotFound):
        await _run(clock, work)


REFUSALS = [refusal(403, "Forbidden"), refusal(401, "Unauthorized"), refusal(429)]


@pytest.mark.parametrize("last", [REFUSED, UNUSABLE, *REFUSALS])
async def test_an_attempt_that_may_have_gone_through_is_not_forgotten_for_a_later_refusal(
    clock: VirtualClock, last: Response | Exception
) -> None:
    """A server that is killed and restarted resets, refuses connections, and forbids until it has read its roles."""
    work, calls = _bind(clock, RESET, *[last] * 4, pod())
    await _run(clock, work)

    assert calls[-1].method == "GET"


@pytest.mark.parametrize("away", [RESET, REFUSED, refusal(503), refusal(403, "Forbidden"), refusal(401)])
async def test_a_look_at_the_pod_outlasts_the_restart_of_a_server(
    clock: VirtualClock, away: Response | Exception
) -> None:
    work, calls = _bind(clock, *[RESET] * 5, *[away] * 12, pod())
    await _run(clock, work)

    assert [call.method for call in calls] == ["POST"] * 5 + ["GET"] * 13


async def test_only_when_nobody_can_tell_is_the_outcome_unknown(clock: VirtualClock) -> None:
    work, _ = _bind(clock, RESET)
    with pytest.raises(NoAnswer, match="what became of pod team/web is unknown"):
        await _run(clock, work)

    work, _ = _bind(clock, RESET, TAKEN, Response(200, {}, b"<html>"))
    with pytest.raises(NoAnswer, match="what became of pod team/web is unknown"):
        await _run(clock, work)

    work, _ = _bind(clock, RESET, TAKEN, Response(200, {}, b'{"spec": 1}'))
    with pytest.raises(InvalidResponse):
        await _run(clock, work)


async def test_a_server_that_never_could_be_reached_bound_nothing(clock: VirtualClock) -> None:
    work, calls = _bind(clock, REFUSED)

    with pytest.raises(ConnectionFailed):
        await _run(clock, work)
    assert {call.method for call in calls} == {"POST"}


@pytest.mark.parametrize(("code", "kind"), [(403, Forbidden), (404, NotFound)])
async def test_a_refused_binding_is_raised_at_once(clock: VirtualClock, code: int, kind: type[Exception]) -> None:
    work, calls = _bind(clock, refusal(code))

    with pytest.raises(kind):
        await _run(clock, work)
    assert len(calls) == 1


async def test_status_is_merged_strategically_and_repeated_as_kube_scheduler_does(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(refusal(500), refusal(409, "Conflict"), REFUSED, answer(200, {})))
    writer = Writer(transport, clock=clock, draw=no_draw)
    started = clock.monotonic()
    task = asyncio.create_task(writer.patch_pod_status("team", "web", {"nominatedNodeName": "n1"}))
    await clock.run_for(0.311)
    await task

    assert clock.monotonic() - started == pytest.approx(0.311)  # 10 ms, 50 ms and 250 ms apart
    assert len(transport.calls) == 4
    assert transport.calls[0].path == "/api/v1/namespaces/team/pods/web/status"
    assert transport.calls[0].content_type == "application/strategic-merge-patch+json"
    assert transport.calls[0].json == {"status": {"nominatedNodeName": "n1"}}
    assert writer.retries == 3


async def test_a_status_patch_gives_up_after_four_attempts(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(refusal(409, "Conflict")))

    with pytest.raises(Conflict):
        await _run(clock, Writer(transport, clock=clock, draw=no_draw).patch_pod_status("team", "web", {}))
    assert len(transport.calls) == 4


async def test_deleting_a_pod_that_is_gone_is_a_success(clock: VirtualClock) -> None:
    for answers in ([answer(200, {})], [refusal(404, "NotFound")], [RESET, refusal(404, "NotFound")]):
        transport = ScriptedTransport(in_turn(*answers))
        await _run(clock, Writer(transport, clock=clock, draw=no_draw).delete_pod("team", "web"))
        assert transport.calls[0].method == "DELETE"
        assert transport.calls[0].body is None

    transport = ScriptedTransport(in_turn(*[refusal(409, "Conflict")] * 5, pod(uid="another")))
    with pytest.raises(Conflict):
        await _run(clock, Writer(transport, clock=clock, draw=no_draw).delete_pod("team", "web", uid="u-1"))
    assert transport.calls[0].json["preconditions"] == {"uid": "u-1"}


async def test_a_conflict_about_the_very_pod_is_no_deletion(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(*[refusal(409, "Conflict")] * 5, pod()))

    with pytest.raises(ServerError, match="was not deleted, though it is the pod that was meant"):
        await _run(clock, Writer(transport, clock=clock, draw=no_draw).delete_pod("team", "web", uid="u-1"))


@pytest.mark.parametrize("left", [{"uid": "u-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}, None])
async def test_a_conflict_about_a_pod_that_goes_is_as_good_as_a_deletion(
    clock: VirtualClock, left: dict[str, object] | None
) -> None:
    found = answer(200, {"metadata": left}) if left else refusal(404, "NotFound")
    transport = ScriptedTransport(in_turn(*[refusal(409, "Conflict")] * 5, found))

    await _run(clock, Writer(transport, clock=clock, draw=no_draw).delete_pod("team", "web", uid="u-1"))

    assert [call.method for call in transport.calls] == ["DELETE"] * 5 + ["GET"]


async def test_a_passing_conflict_does_not_keep_a_pod(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(refusal(409, "Conflict"), answer(200, {})))

    await _run(clock, Writer(transport, clock=clock, draw=no_draw).delete_pod("team", "web", uid="u-1"))

    assert [call.method for call in transport.calls] == ["DELETE"] * 2


async def test_an_answer_about_no_pod_does_not_settle_what_became_of_a_binding(clock: VirtualClock) -> None:
    """Taken for another pod, the room of a pod that is bound would be given away."""
    nothing = answer(201, {})
    work, calls = _bind(clock, RESET, TAKEN, nothing, nothing, pod())
    await _run(clock, work)

    assert [call.method for call in calls] == ["POST", "POST", "GET", "GET", "GET"]


@pytest.mark.parametrize(
    "left", [{"uid": "another"}, {"uid": "u-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}, None]
)
async def test_a_deletion_that_may_have_been_done_is_looked_after(
    clock: VirtualClock, left: dict[str, object] | None
) -> None:
    found = answer(200, {"metadata": left}) if left else refusal(404, "NotFound")
    transport = ScriptedTransport(in_turn(*[RESET] * 5, found))

    await _run(clock, Writer(transport, clock=clock, draw=no_draw).delete_pod("team", "web", uid="u-1"))

    assert [call.method for call in transport.calls] == ["DELETE"] * 5 + ["GET"]


async def test_a_deletion_that_was_not_done_is_an_error(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(*[RESET] * 5, answer(200, {"metadata": {"uid": "u-1"}})))
    with pytest.raises(NoAnswer, match="reset"):
        await _run(clock, Writer(transport, clock=clock, draw=no_draw).delete_pod("team", "web", uid="u-1"))


async def test_no_more_writes_are_under_way_than_allowed(clock: VirtualClock) -> None:
    release = asyncio.Event()
    most = 0
    under_way = 0

    async def slow() -> Response:
        nonlocal most, under_way
        under_way += 1
        most = max(most, under_way)
        await release.wait()
        under_way -= 1
        return OK

    writer = Writer(ScriptedTransport(lambda call: slow()), clock=clock, draw=no_draw, max_in_flight=3)
    tasks = [asyncio.create_task(writer.bind("team", f"web-{number}", uid="u", node="n")) for number in range(10)]
    await clock.run_for(0.0)
    assert (most, writer.bindings_under_way) == (3, 10)
    release.set()
    await asyncio.gather(*tasks)

    assert (most, writer.bindings_under_way) == (3, 0)


async def test_a_writer_is_busy_while_bindings_want_more_than_half_of_its_places(clock: VirtualClock) -> None:
    """A few at a time are a steady load, which events can travel beside; many are a burst, which they must not slow."""
    release = asyncio.Event()

    async def slow() -> Response:
        await release.wait()
        return OK

    writer = Writer(ScriptedTransport(lambda call: slow()), clock=clock, draw=no_draw, max_in_flight=8)
    tasks, busy = [], []
    for number in range(10):
        busy.append(writer.is_busy)
        tasks.append(asyncio.create_task(writer.bind("team", f"web-{number}", uid="u", node="n")))
        await clock.run_for(0.0)
    release.set()
    await asyncio.gather(*tasks)

    assert busy == [False] * 5 + [True] * 5
    assert not writer.is_busy


async def test_a_cancelled_binding_leaves_its_place(clock: VirtualClock) -> None:
    async def never() -> Response:
        await asyncio.Event().wait()
        return OK

    writer = Writer(ScriptedTransport(lambda call: never()), clock=clock, draw=no_draw, max_in_flight=1)
    for _ in range(3):
        task = asyncio.create_task(writer.bind("team", "web", uid="u", node="n"))
        await clock.run_for(0.0)
        task.cancel()
        await asyncio.wait([task])

    assert writer.bindings_under_way == 0
