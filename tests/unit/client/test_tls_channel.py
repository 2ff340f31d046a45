from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from bayplan.client.tls import Pem, TlsSettings, make_context
from bayplan.client.tls_channel import TlsChannel

from .support import Certificates


class Inside:
    """Takes what arrives."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(1000))
        self.transport: asyncio.BaseTransport | None = None
        self.received = b""
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += bytes(self._buffer[:nbytes])

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class Socket(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def abort(self) -> None:
        self.is_aborted = True


class Peers:
    """A channel and the server at the other end of its socket, which a test lets exchange bytes."""

    def __init__(self, server: ssl.SSLContext, authority: bytes) -> None:
        client = make_context(TlsSettings(authority=Pem(data=authority)), None)
        self.inside, self.socket = Inside(), Socket()
        self._buffer = memoryview(bytearray(4096))
        self.channel = TlsChannel(self.inside, context=client, server_hostname="127.0.0.1", buffer=self._buffer)
        self._to_server, self._from_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(self._to_server, self._from_server, server_side=True)
        self.channel.connection_made(self.socket)

    def shake_hands(self, *, piece: int = 4096) -> None:
        """Until both are content, or one of them is not."""
        is_content = False
        while not is_content and not self.socket.is_aborted:
            self.hear()
            try:
                self.server.do_handshake()
                is_content = True
            except ssl.SSLWantReadError:
                pass
            self.tell(piece=piece)

    def hear(self) -> None:
        """Let the server have what the channel sent."""
        self._to_server.write(self.socket.sent)
        self.socket.sent = b""

    def tell(self, data: bytes = b"", *, piece: int = 4096) -> None:
        """Let the channel have what the server sent, or other bytes."""
        data = data or self._from_server.read()
        for at in range(0, len(data), piece):
            some = data[at : at + piece]
            self.channel.get_buffer(-1)[: len(some)] = some
            self.channel.buffer_updated(len(some))

    def server_reads(self) -> bytes:
        self.hear()
        found = b""
        while True:
            try:
                found += self.server.read(65536)
            except ssl.SSLWantReadError:
                return found


@pytest.fixture
async def peers(certificates: Certificates, tmp_path: Path) -> Peers:
    return Peers(certificates.server_context(tmp_path), certificates.authority)


@pytest.mark.parametrize("piece", [1, 100, 4096])
async def test_bytes_pass_both_ways_in_whatever_pieces_they_come(peers: Peers, piece: int) -> None:
    peers.shake_hands(piece=piece)
    await peers.channel.established
    question, answer = b"q" * 100_000, b"a" * 50_000
    peers.channel.write(question)
    asked = peers.server_reads()
    peers.server.write(answer)
    peers.tell(piece=piece)

    assert peers.inside.transport is peers.channel
    assert asked == question
    assert peers.inside.received == answer


async def test_what_comes_together_with_the_end_of_the_handshake_is_not_lost(
    certificates: Certificates, tmp_path: Path
) -> None:
    context = certificates.server_context(tmp_path)
    # There the server has the last word in a handshake.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    peers = Peers(context, certificates.authority)
    peers.hear()
    with pytest.raises(ssl.SSLWantReadError):
        peers.server.do_handshake()
    peers.tell()
    peers.hear()
    peers.server.do_handshake()
    peers.server.write(b"at once")
    assert not peers.channel.established.done()
    peers.tell()

    assert peers.channel.established.done()
    assert peers.inside.received == b"at once"


async def test_a_server_that_nobody_vouches_for_is_refused_and_told_so(
    certificates: Certificates, tmp_path: Path
) -> None:
    peers = Peers(certificates.server_context(tmp_path), certificates.client_certificate)
    peers.shake_hands()
    with pytest.raises(ssl.SSLCertVerificationError):
        await peers.channel.established
    peers.hear()
    with pytest.raises(ssl.SSLError, match="ALERT"):
        peers.server.do_handshake()

    assert peers.socket.is_aborted
    assert peers.inside.transport is None


async def test_the_end_of_a_connection_is_no_error(peers: Peers) -> None:
    peers.shake_hands()
    with pytest.raises(ssl.SSLWantReadError):
        peers.server.unwrap()
    peers.tell()
    assert peers.socket.is_aborted
    peers.channel.connection_lost(None)

    assert peers.inside.lost == [None]


async def test_a_connection_that_is_cut_off_is_an_error(peers: Peers) -> None:
    peers.shake_hands()
    assert not peers.channel.eof_received()
    peers.channel.connection_lost(None)

    assert [str(error) for error in peers.inside.lost] == ["it was cut off"]


async def test_bytes_that_are_not_of_the_server_end_the_connection(peers: Peers) -> None:
    peers.shake_hands()
    peers.tell(b"\x17\x03\x03\x00\x20" + b"x" * 32)
    peers.channel.connection_lost(None)

    assert peers.socket.is_aborted
    assert peers.inside.received == b""
    assert isinstance(peers.inside.lost[0], ssl.SSLError)


async def test_a_server_that_hangs_up_during_the_handshake_is_an_error(peers: Peers) -> None:
    peers.channel.eof_received()
    peers.channel.connection_lost(None)

    with pytest.raises(ConnectionResetError, match="cut off"):
        await peers.channel.established


async def test_what_is_no_tls_at_all_is_an_error(peers: Peers) -> None:
    peers.tell(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with pytest.raises(ssl.SSLError):
        await peers.channel.established
    assert peers.socket.is_aborted


async def test_nothing_is_written_to_a_socket_that_is_gone(peers: Peers) -> None:
    peers.shake_hands()
    peers.channel.connection_lost(None)
    sent = peers.socket.sent
    peers.channel.write(b"late")
    peers.channel.abort()

    assert peers.socket.sent == sent
