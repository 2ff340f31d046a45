"""The HTTP transport: keep-alive, pipelining, chunks, limits and rough treatment."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.waiting import until

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.server import http

HALF = [b"", b"GET /api", b"GET /api HTTP/1.1\r\nHost: x\r\n", b"POST /api HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"]
HEADERS = b"Host: x\r\nAuthorization: Bearer secret\r\n"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(token="secret", tls=False, simulate=False)
    await cluster.start()
    yield cluster
    await cluster.stop()


class Wire:
    """A bare connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")
        headers = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines[1:] if line}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(lines[0].split()[1]), headers, json.loads(body) if body.startswith(b"{") else body

    async def chunk(self) -> bytes:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]


@contextlib.asynccontextmanager
async def connected(server: EmbeddedCluster) -> AsyncIterator[Wire]:
    host, _, port = server.url.removeprefix("http://").partition(":")
    wire = Wire(*await asyncio.open_connection(host, int(port)))
    try:
        yield wire
    finally:
        wire.writer.close()
        with contextlib.suppress(ConnectionError):
            await wire.writer.wait_closed()


def get(path: str) -> bytes:
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (path.encode(), HEADERS)


def post(path: str, body: bytes) -> bytes:
    head = b"POST %b HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (path.encode(), HEADERS, len(body)) + body


async def test_a_connection_serves_many_requests(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        for _ in range(3):
            wire.send(get("/version"))
            status, headers, body = await wire.answer()
            assert (status, headers["content-type"], body["minor"]) == (200, "application/json", "36")


async def test_pipelined_requests_are_answered_in_order(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(b"".join(post(MAPS, b'{"metadata":{"name":"c%d"}}' % n) for n in range(5)) + get(f"{MAPS}/c3"))
        answers = [await wire.answer() for _ in range(6)]

    assert [answer[0] for answer in answers] == [201] * 5 + [200]
    assert [answer[2]["metadata"]["name"] for answer in answers] == ["c0", "c1", "c2", "c3", "c4", "c3"]


async def test_a_chunked_body_is_understood(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(b"POST %b HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n" % (MAPS.encode(), HEADERS))
        wire.send(b'c\r\n{"metadata":\r\n11\r\n{"name":"chunk"}}\r\n0\r\n\r\n')
        status, _, body = await wire.answer()

    assert (status, body["metadata"]["name"]) == (201, "chunk")


async def test_head_has_no_body(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(get("/version").replace(b"GET", b"HEAD"))
        head = await wire.reader.readuntil(b"\r\n\r\n")
        wire.send(get("/healthz"))
        status, _, body = await wire.answer()

    assert head.startswith(b"HTTP/1.1 200 OK")
    assert (status, body) == (200, b"ok")


async def test_a_watch_is_sent_in_chunks_and_the_connection_lives_on(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(get(f"{MAPS}?watch=true&fieldSelector=metadata.name%3Dseen"))
        head = await wire.reader.readuntil(b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in head
        await server.in_process_transport().request("POST", MAPS, body={"metadata": {"name": "seen"}})
        event = json.loads(await wire.chunk())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "seen")
        server.api.reader.cut_watches()
        assert await wire.chunk() == b""
        wire.send(get("/healthz"))
        assert (await wire.answer())[0] == 200


async def test_a_watcher_that_goes_away_is_forgotten(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(get(f"{MAPS}?watch=true"))
        await wire.reader.readuntil(b"\r\n\r\n")
        assert len(server.api.reader.watches) == 1

    await until(lambda: server.api.reader.watches == {})


@pytest.mark.parametrize(
    "data",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /version HTTP/1.1\r\nHost: x\r\nContent-Length: nope\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 90_000 + b"\r\n\r\n",
        b"GET /%ff%fe?\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_malformed_requests_get_a_status_and_the_door(server: EmbeddedCluster, data: bytes) -> None:
    async with connected(server) as wire:
        wire.send(data)
        status, _, body = await wire.answer()
        assert 400 <= status < 500
        assert body["kind"] == "Status"
    async with connected(server) as wire:
        wire.send(get("/healthz"))
        assert (await wire.answer())[0] == 200


async def test_a_body_over_the_limit_is_refused_without_keeping_it(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(post(MAPS, b"x" * (3 * 1024 * 1024 + 1)))
        status, _, body = await wire.answer()

    assert (status, body["reason"]) == (413, "RequestEntityTooLarge")


async def test_an_upgrade_is_refused(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(b"GET /x HTTP/1.1\r\n%bConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n" % HEADERS)
        status, _, _ = await wire.answer()

    assert 400 <= status < 500


async def test_without_a_token_only_health_and_version_answer(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n")
        status, _, body = await wire.answer()
        assert (status, body["reason"]) == (401, "Unauthorized")
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await wire.answer())[0] == 200


async def test_connection_close_is_honoured(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\n%bConnection: close\r\n\r\n" % HEADERS)
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert await wire.reader.read() == b""


async def test_stopping_ends_open_watches_and_connections() -> None:
    cluster = EmbeddedCluster(token="secret", tls=False, simulate=False)
    await cluster.start()
    async with connected(cluster) as wire:
        wire.send(get(f"{MAPS}?watch=true"))
        await wire.reader.readuntil(b"\r\n\r\n")
        await cluster.stop()
        with contextlib.suppress(ConnectionError):
            assert await wire.reader.read() == b""

    assert cluster.api.reader.watches == {}


@pytest.mark.parametrize("endless", [b"X: ", b"X", b"GET /"])
async def test_a_head_without_end_is_refused_while_it_arrives(server: EmbeddedCluster, endless: bytes) -> None:
    start = endless if endless.startswith(b"GET") else b"GET /api HTTP/1.1\r\n" + endless
    async with connected(server) as wire:
        wire.send(start)
        sent = await _flood(server, wire, b"a" * 10_000)

    assert sent < 4_000_000


async def _flood(server: EmbeddedCluster, wire: Wire, piece: bytes) -> int:
    """Send until the server closes the connection; how many bytes that took."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        for _ in range(400):
            wire.send(piece)
            await wire.writer.drain()
            sent += len(piece)
            await asyncio.sleep(0)
            if wire.reader.at_eof() or server._http.connections == set():
                break
    await until(lambda: not server._http.connections)
    return sent


@pytest.mark.parametrize("half", HALF)
async def test_a_request_that_does_not_arrive_is_given_up(
    server: EmbeddedCluster, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(server) as wire, connected(server) as idle:
        idle.send(b"GET /version HTTP/1.1\r\n" + HEADERS + b"\r\n")
        assert (await idle.answer())[0] == 200
        wire.send(half)
        await until(lambda: len(server._http.connections) == 2)
        monkeypatch.setattr(http, "_HEAD_SECONDS", 0.0)
        monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.0)
        server._http._sweep(asyncio.get_running_loop())
        with contextlib.suppress(ConnectionError):
            assert await wire.reader.read() == b""
        await until(lambda: len(server._http.connections) == 1)
        idle.send(b"GET /version HTTP/1.1\r\n" + HEADERS + b"\r\n")

        assert (await idle.answer())[0] == 200


@pytest.mark.parametrize("endless", [b"0\r\nX: ", b"0\r\nX", b"1;", b"00"])
async def test_what_follows_or_divides_a_body_is_refused_when_it_has_no_end(
    server: EmbeddedCluster, endless: bytes
) -> None:
    """Trailers, chunk sizes and their extensions are gathered by the parser as headers are."""
    async with connected(server) as wire:
        wire.send(b"PUT %b HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n%b" % (MAPS.encode(), HEADERS, endless))
        filler = endless[-1:] if endless.startswith(b"00") else b"a"
        sent = await _flood(server, wire, filler * 10_000)

    assert sent < 4_000_000


async def test_trailers_change_no_header(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.send(
            b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"0\r\nAuthorization: Bearer secret\r\n\r\n"
        )

        assert (await wire.answer())[0] == 401


async def test_answers_that_nobody_reads_are_not_gathered(server: EmbeddedCluster) -> None:
    async with connected(server) as wire, connected(server) as other:
        other.send(get("/openapi/v2"))
        size = int((await other.answer())[1]["content-length"])
        wire.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a client that reads nothing
        for _ in range(100):
            wire.send(get("/openapi/v2"))
            await asyncio.sleep(0)
        await until(lambda: any(not each._can_write.is_set() for each in server._http.connections))
        other.send(get("/version"))
        assert (await other.answer())[0] == 200
        kept = max(each._transport.get_write_buffer_size() for each in server._http.connections if each._transport)

    assert kept <= 2 * size


async def test_a_client_that_takes_nothing_of_its_answers_is_dropped(
    server: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(server) as wire:
        wire.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a client that reads nothing
        wire.send(get("/openapi/v2") * 20)
        await until(lambda: any(not each._can_write.is_set() for each in server._http.connections))
        monkeypatch.setattr(http, "_STALLED_SECONDS", 0.0)
        server._http._sweep(asyncio.get_running_loop())

        await until(lambda: not server._http.connections)


async def test_a_client_that_reads_late_gets_all_its_answers_in_order(server: EmbeddedCluster) -> None:
    async with connected(server) as wire:
        wire.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a client that reads nothing
        for _ in range(20):
            wire.send(get("/openapi/v2") + get("/version"))
        await until(lambda: any(not each._can_write.is_set() for each in server._http.connections))
        wire.reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(20):
            assert "definitions" in (await wire.answer())[2]
            assert "gitVersion" in (await wire.answer())[2]
