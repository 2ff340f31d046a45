"""Ways to a server: direct, through HTTP and HTTPS proxies, with credentials; over real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from pathlib import Path

import pytest

from bayplan.client import connector
from bayplan.client.errors import ConnectionFailed, RequestTimeout
from bayplan.client.http_transport import HttpTransport
from bayplan.client.tls import Pem, TlsSettings

from .support import Certificates, LoopbackServer, ReceivedRequest, http, http_transport, replying

NO_HOST = "http://cluster.example:6443"


class TunnelProxy:
    """A proxy that opens the tunnel to `port` on loopback, whatever address CONNECT names."""

    def __init__(
        self, port: int, *, answer: bytes = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 p\r\n\r\n"
    ) -> None:
        self._port = port
        self._answer = answer

    async def handle(self, request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(self._answer)
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        down = asyncio.create_task(_pipe(from_server, writer))
        try:
            await _pipe(request.rest, to_server)
        finally:
            down.cancel()
            to_server.close()
            writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


def trusting(url: str, certificates: Certificates, proxy_url: str) -> HttpTransport:
    return http_transport(url, tls=TlsSettings(authority=Pem(data=certificates.authority)), proxy_url=proxy_url)


@pytest.mark.parametrize("is_proxy_https", [False, True], ids=["http-proxy", "https-proxy"])
async def test_https_goes_through_a_tunnel_that_is_kept_for_the_next_request(
    certificates: Certificates, tmp_path: Path, is_proxy_https: bool
) -> None:
    context = certificates.server_context(tmp_path)
    async with LoopbackServer(replying(http(201, b"x" * 100_000)), context) as server:
        proxying = TunnelProxy(server.port).handle
        async with LoopbackServer(proxying, context if is_proxy_https else None) as proxy:
            way = proxy.url.replace("//", "//me:p%40ss@")
            transport = trusting(server.url, certificates, way)
            responses = [await transport.request("POST", "/api", body=b"{}") for _ in range(3)]
            async with transport.stream("/watch") as pieces:
                streamed = b"".join([piece async for piece in pieces])
            await transport.close()

    assert {(response.status, len(response.body)) for response in responses} == {(201, 100_000)}
    assert len(streamed) == 100_000
    assert [request.line for request in server.requests] == ["POST /api HTTP/1.1"] * 3 + ["GET /watch HTTP/1.1"]
    assert server.requests[0].headers["authorization"] == "Bearer secret-token"
    assert "proxy-authorization" not in server.requests[0].headers
    # One tunnel for the three requests, one for the stream; the proxy sees its own credentials and nothing else.
    assert [request.line for request in proxy.requests] == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"] * 2
    expected = base64.b64encode(b"me:p@ss").decode()
    assert {request.headers["proxy-authorization"] for request in proxy.requests} == {f"Basic {expected}"}
    assert all("authorization" not in request.headers for request in proxy.requests)


@pytest.mark.parametrize("is_proxy_https", [False, True], ids=["http-proxy", "https-proxy"])
async def test_plain_http_is_forwarded_by_its_whole_url(
    certificates: Certificates, tmp_path: Path, is_proxy_https: bool
) -> None:
    context = certificates.server_context(tmp_path) if is_proxy_https else None
    async with LoopbackServer(replying(http(201, b"by proxy", headers="X-A: b\r\n")), context) as proxy:
        transport = trusting(f"{NO_HOST}/base", certificates, proxy.url.replace("//", "//me:secret@"))
        response = await transport.request("POST", "/api", body=b"{}", query={"a": "b"}, content_type="text/x")
        async with transport.stream("/watch") as chunks:
            streamed = [chunk async for chunk in chunks]
        await transport.close()

    assert (response.status, response.body, response.headers["x-a"]) == (201, b"by proxy", "b")
    assert streamed == [b"by proxy"]
    sent = proxy.requests[0]
    assert sent.line == "POST http://cluster.example:6443/base/api?a=b HTTP/1.1"
    assert (sent.headers["host"], sent.headers["content-type"]) == ("cluster.example:6443", "text/x")
    assert sent.headers["authorization"] == "Bearer secret-token"
    assert sent.headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"
    assert sent.body == b"{}"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication Required.*check the user"),
        (b"HTTP/1.0 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno", "opened no tunnel: 502 Bad Gateway"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nearly", "before the server could"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "has no end"),
        (b"", "closed the connection"),
    ],
    ids=["credentials", "refused", "not-http", "early-data", "endless", "closed"],
)
async def test_a_proxy_that_opens_no_tunnel_is_reported_with_its_answer(
    certificates: Certificates, answer: bytes, reason: str
) -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async with LoopbackServer(handle) as proxy:
        way = proxy.url.replace("//", "//me:secret@")
        transport = trusting("https://cluster.example:6443", certificates, way)
        with pytest.raises(ConnectionFailed, match=reason) as caught:
            await transport.request("GET", "/")
        await transport.close()

    assert not caught.value.may_have_been_processed
    assert "secret" not in str(caught.value)


async def test_the_server_behind_a_proxy_is_verified(certificates: Certificates, tmp_path: Path) -> None:
    async with LoopbackServer(replying(http(200)), certificates.server_context(tmp_path)) as server:
        proxying = TunnelProxy(server.port).handle
        async with LoopbackServer(proxying) as proxy:
            transport = trusting("https://cluster.example:6443", certificates, proxy.url)
            with pytest.raises(ConnectionFailed, match="its certificate is not accepted"):
                await transport.request("GET", "/")
            await transport.close()

    assert server.requests == []


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_says_nothing_or_is_gone_fails_as_such_a_server_does(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(connector, "CONNECT_TIMEOUT_SECONDS", 0.05)

    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with LoopbackServer(handle) as proxy:
        url = proxy.url
        transport = trusting(f"{scheme}://cluster.example:6443", certificates, url)
        with pytest.raises((RequestTimeout, ConnectionFailed), match=r"within 0\.05 s"):
            await transport.request("GET", "/", timeout=0.05 if scheme == "http" else None)
        await transport.close()
    transport = trusting(f"{scheme}://cluster.example:6443", certificates, url)
    with pytest.raises(ConnectionFailed, match=r"refused|within"):
        await transport.request("GET", "/")
    await transport.close()
