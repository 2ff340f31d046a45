"""Stand-ins for ports, a server that misbehaves on purpose, and certificates made on the spot."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bayplan.client.access import ClusterAccess
from bayplan.client.credentials import Credentials, StaticCredentials, bearer
from bayplan.client.errors import NotSent
from bayplan.client.http_transport import HttpTransport
from bayplan.client.pool import PoolSettings
from bayplan.client.tls import TlsSettings
from bayplan.client.transport import JSON, ByteStream, Response, always


class Meta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Thing(msgspec.Struct, gc=False):
    """A small typed object."""

    metadata: Meta
    value: int = 0


def thing(name: str, version: int, *, value: object = 0, uid: str = "", namespace: str = "ns") -> dict[str, object]:
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "value": value}


def page(items: Iterable[Mapping[str, object]], version: int, token: str = "") -> Response:
    return answer(200, {"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(items)})


def event(kind: str, item: Mapping[str, object]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def bookmark(version: int, *, ends_initial_events: bool = False) -> bytes:
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if ends_initial_events:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"metadata": metadata})


def status(code: int, reason: str = "", message: str = "no") -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def refusal(code: int, reason: str = "", message: str = "no", *, headers: Mapping[str, str] | None = None) -> Response:
    return answer(code, status(code, reason, message), headers=headers)


def answer(code: int, body: object, *, headers: Mapping[str, str] | None = None) -> Response:
    return Response(code, headers or {}, json.dumps(body).encode())


@dataclass
class Call:
    method: str
    path: str
    query: Mapping[str, str]
    body: bytes | None = None
    content_type: str = ""

    @property
    def json(self) -> dict[str, object]:
        return dict(json.loads(self.body or b"{}"))


Answers = Callable[[Call], "Response | Exception | Awaitable[Response]"]
Streams = Callable[[Call], AsyncIterator[bytes]]


class ScriptedTransport:
    """A `Transport` that answers as a test says and remembers what it was asked."""

    def __init__(self, answers: Answers | None = None, streams: Streams | None = None) -> None:
        self._answers = answers
        self._streams = streams
        self.calls: list[Call] = []
        self.watches: list[Call] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> Response:
        if not may_send():
            raise NotSent(f"{method} {path}")
        call = Call(method, path, dict(query or {}), body, content_type)
        self.calls.append(call)
        assert self._answers is not None
        given = self._answers(call)
        if isinstance(given, Exception):
            raise given
        return given if isinstance(given, Response) else await given

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        return self._stream(path, query)

    @contextlib.asynccontextmanager
    async def _stream(self, path: str, query: Mapping[str, str] | None) -> AsyncIterator[AsyncIterator[bytes]]:
        call = Call("GET", path, dict(query or {}))
        self.watches.append(call)
        assert self._streams is not None
        chunks = self._streams(call)
        try:
            # A stream refused at once raises before its first chunk, as a real one does on entering.
            yield chunks
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    async def close(self) -> None:
        pass


def in_turn(*given: Response | Exception) -> Answers:
    """Answer the k-th request with the k-th answer, and the last one for ever."""
    left = list(given)
    return lambda call: left.pop(0) if len(left) > 1 else left[0]


def no_draw() -> float:
    return 0.0


@dataclass
class ReceivedRequest:
    line: str
    headers: dict[str, str]
    body: bytes
    rest: asyncio.StreamReader = field(repr=False)
    """What the client sends after this request."""


Handler = Callable[[ReceivedRequest, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class LoopbackServer:
    """HTTP over a real socket, hand-made, so that a test can break it anywhere."""

    handler: Handler
    context: ssl.SSLContext | None = None
    requests: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> LoopbackServer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self.context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while not writer.is_closing():
                request = await _read_request(reader)
                if request is None:
                    break
                self.requests.append(request)
                await self.handler(request, writer)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    line, *lines = head.rstrip("\r\n").split("\r\n")
    headers: dict[str, str] = {}
    for name, _, value in (item.partition(": ") for item in lines):
        headers[name.lower()] = f"{headers[name.lower()]}|{value}" if name.lower() in headers else value
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(line, headers, body, reader)


def http(code: int, body: bytes = b"{}", *, headers: str = "") -> bytes:
    return f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def replying(*answers: bytes) -> Handler:
    """A handler that sends the k-th answer to the k-th request, and the last one from then on."""
    left = list(answers)

    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return handle


def http_transport(
    url: str,
    *,
    credentials: Credentials | None = None,
    tls: TlsSettings | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    proxy_url: str | None = None,
    pool: PoolSettings | None = None,
) -> HttpTransport:
    access = ClusterAccess(
        server=url,
        credentials=credentials or StaticCredentials(bearer("secret-token")),
        tls=tls or TlsSettings(),
        headers=headers,
        proxy_url=proxy_url,
    )
    return HttpTransport(access, draw=no_draw, pool=pool, default_timeout=60.0)


@dataclass(frozen=True)
class Certificates:
    """An authority, a server certificate for loopback, and a client certificate, as PEM."""

    authority: bytes
    server_certificate: bytes
    server_key: bytes
    client_certificate: bytes
    client_key: bytes

    def server_context(self, folder: Path, *, needs_client: bool = False) -> ssl.SSLContext:
        (folder / "server.crt").write_bytes(self.server_certificate)
        (folder / "server.key").write_bytes(self.server_key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        if needs_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.authority.decode())
        return context


def make_certificates() -> Certificates:
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _certificate("test-ca", ca_key, issuer="test-ca", issuer_key=ca_key, is_ca=True)
    server_key = ec.generate_private_key(ec.SECP256R1())
    server = _certificate(
        "kube-apiserver", server_key, issuer="test-ca", issuer_key=ca_key, names=("kubernetes.default",)
    )
    client_key = ec.generate_private_key(ec.SECP256R1())
    client = _certificate("scheduler", client_key, issuer="test-ca", issuer_key=ca_key)
    return Certificates(ca, server, _pem_key(server_key), client, _pem_key(client_key))


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    is_ca: bool = False,
    names: tuple[str, ...] = (),
) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if names:
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
