from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from tests.waiting import until

from bayplan.client.connection import HttpConnection
from bayplan.client.credentials import Identity, TokenFileCredentials, bearer
from bayplan.client.errors import (
    ConnectionFailed,
    Forbidden,
    Gone,
    InvalidResponse,
    NotSent,
    RequestTimeout,
    ServerError,
    Unauthorized,
)
from bayplan.client.tls import ClientCertificate, Pem, TlsSettings
from bayplan.client.transport import Transport
from bayplan.observe.clock import VirtualClock

from .support import Certificates, LoopbackServer, ReceivedRequest, http, http_transport, replying


async def test_it_is_a_transport() -> None:
    assert isinstance(http_transport("http://127.0.0.1:1"), Transport)


async def test_a_request_carries_identity_body_and_query_and_returns_the_answer_as_it_is() -> None:
    async with LoopbackServer(replying(http(404, b'{"kind":"Status"}', headers="X-Thing: 7\r\n"))) as server:
        transport = http_transport(f"{server.url}/k8s/clusters/c-1/", headers=(("Impersonate-User", "jane"),))

        response = await transport.request(
            "POST", "/api/v1/pods", query={"a": "b c", "d": "&"}, body=b"{}", headers={"X-Own": "1"}
        )
        await transport.close()

    assert (response.status, response.body, response.headers["x-thing"]) == (404, b'{"kind":"Status"}', "7")
    sent = server.requests[0]
    assert sent.line == "POST /k8s/clusters/c-1/api/v1/pods?a=b+c&d=%26 HTTP/1.1"
    assert sent.headers["authorization"] == "Bearer secret-token"
    assert sent.headers["impersonate-user"] == "jane"
    assert sent.headers["content-type"] == sent.headers["accept"] == "application/json"
    assert sent.headers["x-own"] == "1"
    assert sent.body == b"{}"


async def test_requests_one_after_another_share_one_connection() -> None:
    async with LoopbackServer(replying(http(200))) as server:
        transport = http_transport(server.url)
        for _ in range(5):
            await transport.request("GET", "/x")
        await transport.close()

    assert server.connections == 1
    assert len(server.requests) == 5


async def test_a_chunked_answer_is_put_together() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    async with LoopbackServer(replying(chunked)) as server:
        transport = http_transport(server.url)
        first = await transport.request("GET", "/x")
        second = await transport.request("GET", "/x")
        await transport.close()

    assert first.body == second.body == b"abcde"
    assert server.connections == 1


async def test_an_answer_that_says_connection_close_is_read_and_the_next_request_gets_a_new_connection() -> None:
    async with LoopbackServer(
        replying(http(200, b"last", headers="Connection: close\r\n"), http(200, b"next"))
    ) as server:
        transport = http_transport(server.url)
        first = await transport.request("GET", "/x")
        second = await transport.request("GET", "/x")
        await transport.close()

    assert (first.body, second.body) == (b"last", b"next")
    assert server.connections == 2


async def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")
        await writer.drain()
        writer.close()

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url)
        response = await transport.request("GET", "/x")
        await transport.close()

    assert response.body == b"all of it"


async def test_a_body_cut_short_is_no_answer() -> None:
    cuts = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Le",
    ]
    for cut in cuts:

        async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter, cut: bytes = cut) -> None:
            writer.write(cut)
            await writer.drain()
            writer.close()

        async with LoopbackServer(handle) as server:
            transport = http_transport(server.url)
            with pytest.raises(ConnectionFailed, match="in the middle of the answer") as caught:
                await transport.request("POST", "/x", body=b"{}")
            await transport.close()

        assert caught.value.may_have_been_processed is True


async def test_a_connection_closed_before_any_byte_is_an_unknown_outcome() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url)
        with pytest.raises(ConnectionFailed, match="before an answer") as caught:
            await transport.request("POST", "/x", body=b"{}")
        await transport.close()

    assert caught.value.may_have_been_processed is True


async def test_a_refused_connection_was_certainly_not_processed() -> None:
    async with LoopbackServer(replying(http(200))) as server:
        url = server.url
    transport = http_transport(url)

    with pytest.raises(ConnectionFailed, match="nothing listens there") as caught:
        await transport.request("GET", "/x")
    with pytest.raises(ConnectionFailed, match="nothing listens there"):
        async with transport.stream("/x"):
            pass
    await transport.close()

    assert caught.value.may_have_been_processed is False


async def test_an_answer_that_does_not_come_in_time_is_given_up_and_its_connection_too() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if "slow" in request.line:
            await asyncio.sleep(10)
        writer.write(http(200, b"quick"))

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url)
        with pytest.raises(RequestTimeout, match=r"no answer within 0\.05 s"):
            await transport.request("GET", "/slow", timeout=0.05)
        response = await transport.request("GET", "/quick")
        await transport.close()

    assert response.body == b"quick"
    assert server.connections == 2


async def test_a_cancelled_request_does_not_leave_its_answer_to_the_next_one() -> None:
    release = asyncio.Event()

    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if "first" in request.line:
            await release.wait()
        writer.write(http(200, request.line.encode()))

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url)
        first = asyncio.create_task(transport.request("GET", "/first"))
        await until(lambda: server.requests)
        first.cancel()
        await asyncio.wait([first])
        release.set()
        response = await transport.request("GET", "/second")
        await transport.close()

    assert b"/second" in response.body


async def test_what_is_not_http_is_refused() -> None:
    async with LoopbackServer(replying(b"SSH-2.0-OpenSSH_9.2\r\n")) as server:
        transport = http_transport(server.url)
        with pytest.raises(InvalidResponse, match="not usable HTTP"):
            await transport.request("GET", "/x")
        await transport.close()


async def test_bytes_after_an_answer_never_become_the_next_answer() -> None:
    async with LoopbackServer(replying(http(200, b"mine") + http(200, b"smuggled"), http(200, b"honest"))) as server:
        transport = http_transport(server.url)
        first = await transport.request("GET", "/x")
        await until(lambda: transport.open_connections == 0)
        second = await transport.request("GET", "/x")
        await transport.close()

    assert (first.body, second.body) == (b"mine", b"honest")


async def test_an_interim_answer_is_passed_over() -> None:
    async with LoopbackServer(replying(b"HTTP/1.1 100 Continue\r\n\r\n" + http(201, b"real"))) as server:
        transport = http_transport(server.url)
        response = await transport.request("POST", "/x", body=b"{}")
        await transport.close()

    assert (response.status, response.body) == (201, b"real")


@pytest.mark.parametrize("path", ["no-slash", "/a b", "/a\r\nX: y", "/ä", "/a?b"])
async def test_a_path_that_could_change_the_request_is_refused(path: str) -> None:
    transport = http_transport("http://127.0.0.1:1")

    with pytest.raises(ValueError, match="not an encoded path"):
        await transport.request("GET", path)
    with pytest.raises(ValueError, match="characters that a header cannot"):
        await transport.request("GET", "/", headers={"A": "b\r\nC: d"})


async def _accept_new_token(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
    is_new = request.headers["authorization"] == "Bearer new"
    writer.write(http(200, b'{"ok":true}\n') if is_new else http(401))


async def test_a_401_makes_a_rotated_token_be_read_again_once(tmp_path: Path, clock: VirtualClock) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("old")

    async with LoopbackServer(_accept_new_token) as server:
        transport = http_transport(server.url, credentials=TokenFileCredentials(token_file, clock=clock))
        before = await transport.request("GET", "/x")
        token_file.write_text("new")
        after = await transport.request("GET", "/x")
        async with transport.stream("/y") as chunks:
            streamed = b"".join([chunk async for chunk in chunks])
        await transport.close()

    assert (before.status, after.status, streamed) == (401, 200, b'{"ok":true}\n')
    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer old",
        "Bearer old",
        "Bearer new",
        "Bearer new",
    ]


async def test_a_stream_that_meets_a_rotated_token_is_opened_again_once(tmp_path: Path, clock: VirtualClock) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("old")

    async with LoopbackServer(_accept_new_token) as server:
        transport = http_transport(server.url, credentials=TokenFileCredentials(token_file, clock=clock))
        with pytest.raises(Unauthorized):
            await _open(transport)
        token_file.write_text("new")
        async with transport.stream("/y") as chunks:
            streamed = b"".join([chunk async for chunk in chunks])
        await transport.close()

    assert streamed == b'{"ok":true}\n'
    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer old",
        "Bearer old",
        "Bearer new",
    ]
    assert server.connections == 3


async def test_a_static_token_that_is_refused_is_not_tried_twice() -> None:
    async with LoopbackServer(replying(http(401))) as server:
        transport = http_transport(server.url)
        response = await transport.request("GET", "/x")
        await transport.close()

    assert response.status == 401
    assert len(server.requests) == 1


async def test_tls_is_verified_against_the_given_authority(certificates: Certificates, tmp_path: Path) -> None:
    async with LoopbackServer(replying(http(200)), certificates.server_context(tmp_path)) as server:
        trusting = http_transport(server.url, tls=TlsSettings(authority=Pem(data=certificates.authority)))
        assert (await trusting.request("GET", "/x")).status == 200
        async with trusting.stream("/x") as chunks:
            assert [chunk async for chunk in chunks] == [b"{}"]
        await trusting.close()

        wary = http_transport(server.url)
        for attempt in (wary.request("GET", "/x"), _open(wary)):
            with pytest.raises(ConnectionFailed, match=r"certificate is not accepted.*certificate-authority"):
                await attempt
        await wary.close()

        careless = http_transport(server.url, tls=TlsSettings(insecure=True))
        assert (await careless.request("GET", "/x")).status == 200
        await careless.close()


async def test_tls_server_name_replaces_the_address_in_verification(certificates: Certificates, tmp_path: Path) -> None:
    authority = Pem(data=certificates.authority)
    async with LoopbackServer(replying(http(200)), certificates.server_context(tmp_path)) as server:
        named = http_transport(server.url, tls=TlsSettings(authority=authority, server_name="kubernetes.default"))
        assert (await named.request("GET", "/x")).status == 200
        await _open(named)
        await named.close()

        misnamed = http_transport(server.url, tls=TlsSettings(authority=authority, server_name="elsewhere"))
        for attempt in (misnamed.request("GET", "/x"), _open(misnamed)):
            with pytest.raises(ConnectionFailed, match="certificate is not accepted"):
                await attempt
        await misnamed.close()


async def test_a_client_certificate_is_shown(certificates: Certificates, tmp_path: Path) -> None:
    shown = ClientCertificate(Pem(data=certificates.client_certificate), Pem(data=certificates.client_key))
    authority = Pem(data=certificates.authority)
    context = certificates.server_context(tmp_path, needs_client=True)
    async with LoopbackServer(replying(http(200)), context) as server:
        known = http_transport(server.url, tls=TlsSettings(authority=authority, certificate=shown))
        assert (await known.request("GET", "/x")).status == 200
        await _open(known)
        await known.close()

        unknown = http_transport(server.url, tls=TlsSettings(authority=authority))
        with pytest.raises(ConnectionFailed):
            await unknown.request("GET", "/x")
        await unknown.close()


class _RotatingCertificate:
    """Credentials whose certificate can be exchanged."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity

    def cached(self) -> Identity:
        return self.identity

    async def obtain(self) -> Identity:
        return self.identity

    def reject(self, identity: Identity) -> bool:
        return False


async def test_another_client_certificate_means_another_connection(certificates: Certificates, tmp_path: Path) -> None:
    def identity() -> Identity:
        pair = ClientCertificate(Pem(data=certificates.client_certificate), Pem(data=certificates.client_key))
        return Identity("Bearer x", pair)

    credentials = _RotatingCertificate(identity())
    context = certificates.server_context(tmp_path, needs_client=True)
    async with LoopbackServer(replying(http(200)), context) as server:
        settings = TlsSettings(authority=Pem(data=certificates.authority))
        transport = http_transport(server.url, tls=settings, credentials=credentials)
        await transport.request("GET", "/x")
        await transport.request("GET", "/x")
        assert server.connections == 1
        credentials.identity = identity()
        await transport.request("GET", "/x")
        await transport.close()

    assert server.connections == 2


async def test_a_stream_hands_over_chunks_as_they_come_and_ends_with_the_server() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"one\n", b"two\n"):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.write(b"0\r\n\r\n")

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url)
        async with transport.stream("/watch", query={"watch": "1"}) as chunks:
            received = [chunk async for chunk in chunks]
        await transport.close()

    assert b"".join(received) == b"one\ntwo\n"
    assert len(received) == 2
    assert server.requests[0].line == "GET /watch?watch=1 HTTP/1.1"
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_a_stream_that_breaks_says_so() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        await writer.drain()
        writer.close()

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url)
        received: list[bytes] = []
        with pytest.raises(ConnectionFailed, match="the stream broke"):
            async with transport.stream("/watch") as chunks:
                while True:
                    received.append(await anext(chunks))
        await transport.close()

    assert received == [b"one\n"]


@pytest.mark.parametrize(("code", "kind"), [(403, Forbidden), (410, Gone), (503, ServerError), (302, Exception)])
async def test_a_stream_that_is_refused_raises_the_matching_error(code: int, kind: type[Exception]) -> None:
    async with LoopbackServer(replying(http(code, b"no", headers="Location: http://elsewhere/\r\n"))) as server:
        transport = http_transport(server.url)
        with pytest.raises(kind):
            await _open(transport)
        await transport.close()

    assert len(server.requests) == 1


async def test_after_close_nothing_is_sent_and_closing_again_is_allowed() -> None:
    transport = http_transport("http://127.0.0.1:1")
    await transport.close()
    await transport.close()

    with pytest.raises(ConnectionFailed, match="closed"):
        await transport.request("GET", "/x")
    with pytest.raises(ConnectionFailed, match="closed"):
        await _open(transport)


async def test_a_stream_that_was_being_opened_when_the_client_closed_is_given_up() -> None:
    async with LoopbackServer(replying(http(200, b"late"))) as server:
        transport = http_transport(server.url)
        opening = asyncio.create_task(_open(transport))
        await asyncio.sleep(0)
        await transport.close()

        with pytest.raises(ConnectionFailed, match="closed"):
            await opening

    assert server.requests == []


async def test_no_secret_shows_in_a_representation_an_error_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    transport = http_transport("http://127.0.0.1:1", proxy_url="http://user:secret-password@127.0.0.1:1")
    with pytest.raises(ConnectionFailed) as caught:
        await transport.request("GET", "/x")
    await transport.close()

    shown = f"{transport!r} {caught.value!r} {caught.value} {bearer('secret-token')!r} {caplog.text}"
    assert "secret" not in shown


async def _open(transport: Transport) -> None:
    async with transport.stream("/x"):
        pass


async def test_whether_a_write_may_leave_is_decided_after_the_wait_for_a_connection() -> None:
    """A process may be stopped while it waits; the connection opens when it goes on."""
    may_send = True
    async with LoopbackServer(replying(http(200))) as server:
        transport = http_transport(server.url)
        opened = transport._connector.open

        async def opened_late(*arguments: object) -> HttpConnection:
            nonlocal may_send
            may_send = False
            return await opened(*arguments)  # type: ignore[arg-type]  # passed on as they came

        transport._connector.open = opened_late  # type: ignore[method-assign]  # what happens during the wait
        with pytest.raises(NotSent):
            await transport.request("POST", "/x", body=b"{}", may_send=lambda: may_send)
        may_send = True
        await transport.request("POST", "/y", body=b"{}", may_send=lambda: may_send)
        await transport.close()

    assert [request.line for request in server.requests] == ["POST /y HTTP/1.1"]
    assert server.connections == 1
