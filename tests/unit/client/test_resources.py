from __future__ import annotations

import asyncio

import pytest

from bayplan.client.errors import AlreadyExists, Conflict, ConnectionFailed, Gone, InvalidResponse, NoAnswer, NotFound
from bayplan.client.resources import ResourceClient, ResourceType, segment
from bayplan.client.transport import JSON_PATCH, MERGE_PATCH, Response
from bayplan.client.writer import Writer
from bayplan.observe.clock import VirtualClock

from .support import Call, ScriptedTransport, answer, in_turn, no_draw, page, refusal, thing

WIDGETS = ResourceType("example.com", "v1alpha1", "widgets")
NODES = ResourceType("", "v1", "nodes", is_namespaced=False)
RESET = ConnectionFailed("reset", may_have_been_processed=True)


def _client(clock: VirtualClock, *answers: Response | Exception) -> tuple[ResourceClient, list[Call]]:
    transport = ScriptedTransport(in_turn(*answers))
    writer = Writer(transport, clock=clock, draw=no_draw)
    return writer.resource("example.com", "v1alpha1", "widgets"), transport.calls


def test_paths_are_those_of_the_api() -> None:
    assert WIDGETS.path() == "/apis/example.com/v1alpha1/widgets"
    assert WIDGETS.path("ns") == "/apis/example.com/v1alpha1/namespaces/ns/widgets"
    assert WIDGETS.path("ns", "a", "status") == "/apis/example.com/v1alpha1/namespaces/ns/widgets/a/status"
    assert NODES.path() == "/api/v1/nodes"
    assert NODES.path(name="node-1") == "/api/v1/nodes/node-1"


def test_a_name_cannot_lead_to_another_object() -> None:
    assert segment("system:node") == "system%3Anode"
    assert segment("../secrets/x") == "..%2Fsecrets%2Fx"
    assert segment("ä?b") == "%C3%A4%3Fb"
    for name in ("", ".", ".."):
        with pytest.raises(ValueError, match="cannot be the name"):
            segment(name)
    with pytest.raises(ValueError, match="are not namespaced"):
        NODES.path("ns", "a")
    with pytest.raises(ValueError, match="namespace of widgets `a` is missing"):
        WIDGETS.path(name="a")


async def test_get_create_update_patch_and_delete(clock: VirtualClock) -> None:
    client, calls = _client(clock, answer(200, {"metadata": {"name": "a"}}))

    assert (await client.get("a", namespace="ns"))["metadata"] == {"name": "a"}
    await client.create({"x": 1}, namespace="ns")
    await client.update("a", {"x": 2}, namespace="ns", subresource="status")
    await client.patch("a", {"x": 3}, namespace="ns")
    await client.patch("a", [{"op": "remove", "path": "/x"}], namespace="ns", content_type=JSON_PATCH)
    await client.delete("a", namespace="ns", uid="u-1", grace_seconds=0)

    root = "/apis/example.com/v1alpha1/namespaces/ns/widgets"
    assert [(call.method, call.path) for call in calls] == [
        ("GET", f"{root}/a"),
        ("POST", root),
        ("PUT", f"{root}/a/status"),
        ("PATCH", f"{root}/a"),
        ("PATCH", f"{root}/a"),
        ("DELETE", f"{root}/a"),
    ]
    assert [call.content_type for call in calls[3:5]] == [MERGE_PATCH, JSON_PATCH]
    assert calls[5].json["preconditions"] == {"uid": "u-1"}
    assert calls[5].json["gracePeriodSeconds"] == 0
    assert client.resource == WIDGETS


async def test_a_list_walks_through_its_pages(clock: VirtualClock) -> None:
    client, calls = _client(clock, page([thing("a", 1)], 5, "more"), page([thing("b", 2)], 5))

    found = [item async for item in client.list(label_selector="app=x", page_size=1)]

    assert [item["metadata"]["name"] for item in found] == ["a", "b"]
    assert calls[0].query == {"labelSelector": "app=x", "limit": "1"}
    assert calls[1].query == {"labelSelector": "app=x", "limit": "1", "continue": "more"}


async def test_a_list_that_expires_says_so(clock: VirtualClock) -> None:
    client, _ = _client(clock, page([], 5, "more"), refusal(410, "Expired"))

    with pytest.raises(Gone):
        _ = [item async for item in client.list()]


async def test_create_is_not_repeated_when_its_outcome_is_unknown_but_ensure_is(clock: VirtualClock) -> None:
    client, calls = _client(clock, RESET, refusal(409, "AlreadyExists"))
    with pytest.raises(ConnectionFailed):
        await client.create({}, namespace="ns")
    assert len(calls) == 1

    client, calls = _client(clock, RESET, refusal(409, "AlreadyExists"))
    task = asyncio.create_task(client.ensure({}, namespace="ns"))
    await clock.run_for(1.0)
    assert await task is None
    assert len(calls) == 2

    client, _ = _client(clock, refusal(409, "AlreadyExists"))
    with pytest.raises(AlreadyExists):
        await client.create({}, namespace="ns")


async def test_a_delete_that_was_repeated_may_find_nothing_left(clock: VirtualClock) -> None:
    client, _ = _client(clock, RESET, refusal(404, "NotFound"))
    task = asyncio.create_task(client.delete("a", namespace="ns"))
    await clock.run_for(1.0)
    assert await task is None

    client, _ = _client(clock, refusal(404, "NotFound"))
    with pytest.raises(NotFound):
        await client.delete("a", namespace="ns")


async def test_refusals_are_raised(clock: VirtualClock) -> None:
    client, _ = _client(clock, refusal(409, "Conflict"))

    with pytest.raises(Conflict):
        await client.update("a", {}, namespace="ns")


async def test_an_answer_that_is_not_json_is_refused(clock: VirtualClock) -> None:
    client, _ = _client(clock, Response(200, {}, b"{<html>"))

    with pytest.raises(InvalidResponse):
        await client.get("a", namespace="ns")


@pytest.mark.parametrize("body", [{}, {"metadata": {"name": "b"}}, {"metadata": 7}])
async def test_an_answer_about_another_object_is_none(clock: VirtualClock, body: dict[str, object]) -> None:
    client, _ = _client(clock, answer(200, body))

    with pytest.raises(NoAnswer, match="is not about this object"):
        await client.get("a", namespace="ns")
