"""The embedded cluster: an API server with simulated kubelets and controllers, started and stopped as one.

Listens on loopback with TLS and a token by default, and refuses any other address without TLS. What runs the
scheduler, the command line and the dashboard is not here.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterable, Sequence
from pathlib import Path

from bayplan.apiserver.bootstrap import bootstrap, publish_address
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.server.api import Api, ApiSettings
from bayplan.apiserver.server.credentials import cluster_secrets
from bayplan.apiserver.server.http import HttpServer
from bayplan.apiserver.server.inprocess import InProcessTransport, TransportErrors
from bayplan.apiserver.server.own_objects import bring_in
from bayplan.apiserver.server.tls import load_certificate
from bayplan.apiserver.simulation.controllers.group import Controllers
from bayplan.apiserver.simulation.devices import DeviceModel
from bayplan.apiserver.simulation.kubelets.kubelets import Kubelets, KubeletSettings
from bayplan.apiserver.simulation.kubelets.nodes import make_nodes
from bayplan.apiserver.storage.persistence import Journal, UnusableDataDir
from bayplan.apiserver.storage.store import Store
from bayplan.observe.clock import Clock, SystemClock


class UnsafeAddress(ValueError):
    """The server would be reachable from outside without TLS."""


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class EmbeddedCluster:
    """A cluster in this process."""

    def __init__(
        self,
        *,
        nodes: int | Iterable[Json] = 0,
        objects: Iterable[Json] = (),
        data_dir: Path | str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        clock: Clock | None = None,
        tls: bool = True,
        tls_certificate: Path | None = None,
        tls_key: Path | None = None,
        client_authority: Path | None = None,
        authorization: str = "always-allow",
        seed: int | None = None,
        listen: bool = True,
        kubelets: KubeletSettings | None = None,
        simulate: bool = True,
        devices: Sequence[DeviceModel] = (),
    ) -> None:
        if listen and not is_loopback(host) and not tls:
            raise UnsafeAddress(
                f"refusing to listen on {host} without TLS: anybody on the network could read the token\n"
                "hint: keep TLS on (the default), or listen on 127.0.0.1"
            )
        self.clock = clock or SystemClock()
        self._host, self._port, self._listen, self._simulate = host, port, listen, simulate
        folder = Path(data_dir) if data_dir is not None else None
        kept = cluster_secrets(folder, host=host, token=token, tls=tls and listen and tls_certificate is None)
        self.token = kept.token
        self._certificate = kept.certificate
        if listen and tls_certificate is not None and tls_key is not None:
            self._certificate = load_certificate(tls_certificate, tls_key)
        self._client_authority = client_authority.read_bytes() if client_authority is not None else b""
        settings = ApiSettings(token=kept.token, authorization=authorization, seed=seed, signing_key=kept.signing_key)
        settings.authority = self._certificate.authority.decode() if self._certificate is not None else ""
        self.api = Api(clock=self.clock, settings=settings)
        self._journal = Journal(folder) if folder is not None else None
        if self._journal is not None:
            self._restore(self._journal)
        self._initial = [*(make_nodes(nodes) if isinstance(nodes, int) else nodes), *objects]
        self._http = HttpServer(self.api.handle, self.api.handle_with_reviews)
        self.controllers = Controllers(self.api, devices)
        self.kubelets = Kubelets(self.api, kubelets)

    def _restore(self, journal: Journal) -> None:
        try:
            self.api.restore(journal.rows(), revision=journal.revision())
        except Exception as problem:
            # Whatever a file holds that this program did not write.
            journal.abandon()
            raise UnusableDataDir(
                f"an object in {journal.path} cannot be read: {type(problem).__name__}: {problem}\n"
                "hint: move the file away or choose another directory"
            ) from problem

    @property
    def store(self) -> Store:
        return self.api.store

    @property
    def url(self) -> str:
        scheme = "https" if self._certificate is not None else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self._http.port}"

    def in_process_transport(self, errors: TransportErrors | None = None) -> InProcessTransport:
        """A transport without sockets, authenticated as the administrator; `inprocess` describes its faults."""
        return InProcessTransport(self.api, token=self.token, errors=errors)

    def kubeconfig(self) -> Json:
        """A kubeconfig that reaches this cluster as its administrator."""
        cluster: Json = {"server": self.url}
        if self._certificate is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self._certificate.authority).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bayplan", "cluster": cluster}],
            "users": [{"name": "bayplan", "user": {"token": self.token}}],
            "contexts": [{"name": "bayplan", "context": {"cluster": "bayplan", "user": "bayplan"}}],
            "current-context": "bayplan",
        }

    async def start(self) -> None:
        """Start all parts; objects that a data directory already holds are left unchanged."""
        if self._journal is not None:
            self._journal.follow(self.store)
        bootstrap(self.api, client_authority=self._client_authority.decode())
        for document in self._initial:
            bring_in(self.api, document)
        if self._simulate:
            self.controllers.start()
            self.kubelets.start()
        if self._listen:
            certificate, authority = self._certificate, self._client_authority
            tls = certificate.context(client_authority=authority) if certificate is not None else None
            await self._http.start(self._host, self._port, tls=tls)
            publish_address(self.api, self._host, self._http.port)

    async def stop(self) -> None:
        await self._http.stop()
        await self.kubelets.stop()
        await self.controllers.stop()
        self.api.reader.cut_watches()
        if self._journal is not None:
            await self._journal.close()
            self._journal = None
