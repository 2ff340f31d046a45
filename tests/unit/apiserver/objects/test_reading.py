"""Lists and watches over time: expired pages, bookmarks, inconsistent continuation."""

from __future__ import annotations

import asyncio

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.encoding import decode_object
from bayplan.observe.clock import VirtualClock

MAPS = "/api/v1/namespaces/default/configmaps"


async def fill(cluster: EmbeddedCluster, count: int) -> None:
    for number in range(count):
        body = {"metadata": {"name": f"c{number}"}}
        await cluster.in_process_transport().request("POST", MAPS, body=body)


async def test_an_expired_page_offers_an_inconsistent_way_on(quiet: EmbeddedCluster) -> None:
    await fill(quiet, 5)
    transport = quiet.in_process_transport()
    first = (await transport.request("GET", MAPS, query={"limit": "2"})).json()
    await transport.request("DELETE", f"{MAPS}/c3")
    transport.compact()
    token = first["metadata"]["continue"]
    expired = await transport.request("GET", MAPS, query={"limit": "2", "continue": token})

    assert (expired.status, expired.json()["reason"]) == (410, "Expired")
    offered = expired.json()["metadata"]["continue"]
    rest = (await transport.request("GET", MAPS, query={"continue": offered})).json()
    assert [one["metadata"]["name"] for one in rest["items"]] == ["c2", "c4"]


async def test_bookmarks_come_every_minute_when_asked_for(quiet: EmbeddedCluster, clock: VirtualClock) -> None:
    transport = quiet.in_process_transport()
    version = str(quiet.store.revision)
    query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
    async with transport.stream(MAPS, query=query) as chunks:
        await transport.request("POST", "/api/v1/nodes", body={"metadata": {"name": "elsewhere"}})
        waiting = asyncio.ensure_future(anext(chunks))
        await clock.run_for(61)
        event = decode_object(await waiting)

    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == str(quiet.store.revision)
    assert event["object"]["kind"] == "ConfigMap"


async def test_a_watch_ends_on_the_clusters_clock(quiet: EmbeddedCluster, clock: VirtualClock) -> None:
    transport = quiet.in_process_transport()
    query = {"watch": "true", "timeoutSeconds": "30", "resourceVersion": str(quiet.store.revision)}
    async with transport.stream(MAPS, query=query) as chunks:
        reading = asyncio.ensure_future(anext(chunks, None))
        await clock.run_for(29)
        assert not reading.done()
        await clock.run_for(2)
        assert await reading is None

    assert clock.sleeping == 0


async def test_table_watches_show_rows(quiet: EmbeddedCluster) -> None:
    await fill(quiet, 1)
    transport = quiet.in_process_transport()
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    listed = (await transport.request("GET", MAPS, headers=accept, query={"includeObject": "None"})).json()

    assert listed["kind"] == "Table"
    assert listed["rows"][0]["cells"][0] == "c0"
    assert "object" not in listed["rows"][0]
