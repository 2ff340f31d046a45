"""The transport without sockets: same answers, real streams, faults on order, all on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.server.inprocess import TransportErrors
from bayplan.client.errors import ConnectionFailed, Gone, RequestTimeout, api_error
from bayplan.client.transport import Transport
from bayplan.observe.clock import VirtualClock

MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = {"watch": "true"}


def config_map(name: str) -> Json:
    return {"metadata": {"name": name}}


async def next_event(chunks: AsyncIterator[bytes]) -> Json:
    return decode_object((await anext(chunks)).splitlines()[0])


async def test_it_fulfils_the_port_of_the_client(quiet: EmbeddedCluster) -> None:
    assert isinstance(quiet.in_process_transport(), Transport)


async def test_a_call_is_answered_as_over_a_socket(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    created = await transport.request("POST", MAPS, body=config_map("a"))
    missing = await transport.request("GET", f"{MAPS}/nope")

    assert (created.status, created.json()["metadata"]["name"]) == (201, "a")
    assert (missing.status, missing.json()["reason"]) == (404, "NotFound")
    assert created.headers["content-type"] == "application/json"


async def test_a_watch_streams_events_as_they_happen(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    async with transport.stream(MAPS, query=WATCH) as chunks:
        waiting = asyncio.ensure_future(anext(chunks))
        await asyncio.sleep(0)
        assert not waiting.done()
        await transport.request("POST", MAPS, body=config_map("a"))
        event = decode_object(await waiting)

    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert quiet.api.reader.watches == {}


async def test_the_third_call_can_be_failed(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    transport.faults.fail_call(3, status=503, reason="ServiceUnavailable", method="POST")
    statuses = [(await transport.request("POST", MAPS, body=config_map(f"c{n}"))).status for n in range(4)]

    assert statuses == [201, 201, 503, 201]
    assert quiet.store.get("configmaps", "default", "c2") is None


async def test_an_answer_can_be_lost_after_the_server_acted(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    transport.faults.break_call(1, method="POST", after_write=True)
    with pytest.raises(ConnectionResetError):
        await transport.request("POST", MAPS, body=config_map("a"))

    assert quiet.store.get("configmaps", "default", "a") is not None


async def test_a_call_can_be_lost_before_the_server_sees_it(quiet: EmbeddedCluster) -> None:
    errors = TransportErrors(lost=lambda what, may: ConnectionFailed(what, may_have_been_processed=may))
    transport = quiet.in_process_transport(errors)
    transport.faults.break_call(1, path="configmaps")
    with pytest.raises(ConnectionFailed) as raised:
        await transport.request("POST", MAPS, body=config_map("a"))

    assert raised.value.may_have_been_processed is False
    assert quiet.store.get("configmaps", "default", "a") is None


async def test_a_delay_passes_on_the_clusters_clock(quiet: EmbeddedCluster, clock: VirtualClock) -> None:
    transport = quiet.in_process_transport()
    transport.faults.delay_call(1, seconds=30)
    call = asyncio.ensure_future(transport.request("POST", MAPS, body=config_map("a")))
    await clock.run_for(29)
    assert not call.done()
    await clock.run_for(2)

    assert (await call).status == 201


async def test_a_call_that_takes_too_long_times_out(quiet: EmbeddedCluster, clock: VirtualClock) -> None:
    errors = TransportErrors(late=lambda what, may: RequestTimeout(what, may_have_been_processed=may))
    transport = quiet.in_process_transport(errors)
    transport.faults.delay_call(1, seconds=30)
    call = asyncio.ensure_future(transport.request("GET", MAPS, timeout=5))
    await clock.run_for(6)

    with pytest.raises(RequestTimeout, match="no answer within 5 s"):
        await call


async def test_watches_can_be_cut_in_good_order(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    async with transport.stream(MAPS, query=WATCH) as chunks:
        await transport.request("POST", MAPS, body=config_map("a"))
        await next_event(chunks)
        assert transport.cut_watches("configmaps") == 1
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)


async def test_watches_can_break(quiet: EmbeddedCluster) -> None:
    errors = TransportErrors(lost=lambda what, may: ConnectionFailed(what, may_have_been_processed=may))
    transport = quiet.in_process_transport(errors)
    async with transport.stream(MAPS, query=WATCH) as chunks:
        assert transport.break_watches() == 1
        with pytest.raises(ConnectionFailed):
            await anext(chunks)


async def test_compaction_expires_old_versions(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    version = (await transport.request("GET", MAPS)).json()["metadata"]["resourceVersion"]
    await transport.request("POST", MAPS, body=config_map("a"))
    transport.compact()
    async with transport.stream(MAPS, query={**WATCH, "resourceVersion": version}) as chunks:
        event = await next_event(chunks)

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_refused_stream_raises_what_it_was_told_to(quiet: EmbeddedCluster) -> None:
    with pytest.raises(RequestRefused, match="could not find the requested resource"):
        async with quiet.in_process_transport().stream("/api/v1/nonsense", query=WATCH):
            pass
    transport = quiet.in_process_transport(
        TransportErrors(refused=lambda status, headers, body: api_error(status, body, headers=headers))
    )
    transport.faults.fail_call(1, status=410, reason="Expired")
    with pytest.raises(Gone):
        async with transport.stream(MAPS, query=WATCH):
            pass


async def test_a_closed_transport_answers_nothing_more(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    await transport.close()
    await transport.close()

    with pytest.raises(ConnectionResetError):
        await transport.request("GET", MAPS)


async def test_a_list_can_be_streamed(quiet: EmbeddedCluster) -> None:
    transport = quiet.in_process_transport()
    await transport.request("POST", MAPS, body=config_map("a"))
    async with transport.stream(MAPS) as chunks:
        body = b"".join([chunk async for chunk in chunks])

    assert [one["metadata"]["name"] for one in decode_object(body)["items"]] == ["a"]


async def test_a_watch_asked_for_as_a_request_is_a_mistake(quiet: EmbeddedCluster) -> None:
    with pytest.raises(ValueError, match="open it with `stream`"):
        await quiet.in_process_transport().request("GET", MAPS, query=WATCH)
