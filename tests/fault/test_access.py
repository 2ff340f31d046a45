"""Five hundred pods in flight while the way to the API server changes: tokens and certificates are renewed on disk,
proxies drop what they carry, the server moves to another address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from bayplan.app.live import LiveScheduler
from tests.e2e.api_session import ApiSession
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger
from tests.fault.faulty_proxy import Fault, FaultyProxy
from tests.fault.test_faults import PODS, survive
from tests.unit.client.support import Certificates, make_certificates
from tests.waiting import until

pytestmark = pytest.mark.slow


async def test_a_token_is_renewed_on_disk_and_the_old_one_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """While it is renewed, there is no file for a moment."""
    token, valid = tmp_path / "token", "first"
    token.write_text(valid)

    def only_valid(request: web.Request) -> Fault | None:
        return None if request.headers.get("Authorization") == f"Bearer {valid}" else Fault.UNAUTHORIZED

    async with FaultyProxy(cluster, only_valid) as proxy:

        async def renew(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            nonlocal valid
            assert ledger.bound < PODS
            token.unlink()
            valid = "second"
            proxy.cut_watches()
            await until(lambda: proxy.faults[Fault.UNAUTHORIZED] > 5, what="the old token refused")
            token.write_text(valid)

        await survive(cluster, renew, kubeconfig=proxy.kubeconfig(tmp_path, user={"tokenFile": str(token)}))


def store(certificates: Certificates, folder: Path) -> None:
    """What a client needs, over what is there."""
    (folder / "ca.crt").write_bytes(certificates.authority)
    (folder / "client.crt").write_bytes(certificates.client_certificate)
    (folder / "client.key").write_bytes(certificates.client_key)


async def test_certificates_of_both_sides_are_renewed_on_disk(cluster: Cluster, tmp_path: Path) -> None:
    """By another authority: what was trusted before is not any more."""
    first, second = make_certificates(), make_certificates()
    store(first, tmp_path)
    async with FaultyProxy(cluster, tls=first.server_context(tmp_path, needs_client=True)) as proxy:

        async def renew(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            assert ledger.bound < PODS
            proxy.tls = second.server_context(tmp_path, needs_client=True)
            await proxy.move(lambda: asyncio.sleep(0.5))
            proxy.cut_connections()
            await asyncio.sleep(1)
            store(second, tmp_path)

        user = {"client-certificate": str(tmp_path / "client.crt"), "client-key": str(tmp_path / "client.key")}
        authority = {"certificate-authority": str(tmp_path / "ca.crt")}
        kubeconfig = proxy.kubeconfig(tmp_path, cluster=authority, user=user)
        # All connections shake hands at once, both sides of them in this process.
        await survive(cluster, renew, kubeconfig=kubeconfig, patience=10.0)


async def test_a_proxy_that_forwards_drops_all_connections_and_goes_away(cluster: Cluster, tmp_path: Path) -> None:
    async with FaultyProxy(cluster) as proxy:
        way = {"server": "http://api.example", "proxy-url": f"http://127.0.0.1:{proxy.port}"}

        async def drop(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            assert ledger.bound < PODS
            for _ in range(3):
                proxy.cut_connections()
                await asyncio.sleep(0.3)
            proxy.cut_connections()
            await proxy.move(lambda: asyncio.sleep(2))

        await survive(cluster, drop, kubeconfig=proxy.kubeconfig(tmp_path, cluster=way))


class Tunnels:
    """A proxy that opens tunnels on CONNECT."""

    def __init__(self) -> None:
        self.is_refusing = False
        self.refused = 0
        self.opened = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            self.drop()

    def drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            line, _, _ = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
            method, place, _ = line.decode().split()
            assert method == "CONNECT"
            if self.is_refusing:
                self.refused += 1
                writer.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
                await writer.drain()
            else:
                await self._carry(reader, writer, place)
        writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str) -> None:
        host, _, port = place.rpartition(":")
        back, there = await asyncio.open_connection(host, int(port))
        self._writers |= {writer, there}
        self.opened += 1
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            await asyncio.gather(_pass_on(reader, there), _pass_on(back, writer))
        finally:
            self._writers -= {writer, there}
            there.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.transport.abort()


async def test_a_proxy_drops_its_tunnels_and_opens_none_for_a_while(cluster: Cluster, tmp_path: Path) -> None:
    tunnels = Tunnels()
    async with tunnels.listening() as port:
        document = yaml.safe_load(cluster.kubeconfig.read_text())
        document["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{port}"
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(document))

        async def drop(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            assert ledger.bound < PODS
            for _ in range(3):
                tunnels.drop()
                await asyncio.sleep(0.3)
            tunnels.is_refusing = True
            tunnels.drop()
            await until(lambda: tunnels.refused > 5, what="tunnels refused")
            tunnels.is_refusing = False

        await survive(cluster, drop, kubeconfig=kubeconfig)
    assert tunnels.opened > 20


async def test_the_api_server_moves_to_another_address_behind_its_name(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FaultyProxy(cluster) as proxy:
        loop = asyncio.get_running_loop()
        look_up = loop.getaddrinfo

        async def resolve(host: Any, port: Any, **options: Any) -> Any:
            return await look_up(proxy.host if host == "api.example" else host, port, **options)

        monkeypatch.setattr(loop, "getaddrinfo", resolve)
        kubeconfig = proxy.kubeconfig(tmp_path, cluster={"server": f"http://api.example:{proxy.port}"})

        async def move(live: LiveScheduler, api: ApiSession, ledger: Ledger) -> None:
            assert ledger.bound < PODS

            async def elsewhere() -> None:
                proxy.cut_connections()
                await asyncio.sleep(1)
                proxy.host = "127.0.0.2"

            await proxy.move(elsewhere)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", proxy.port)

        await survive(cluster, move, kubeconfig=kubeconfig)
