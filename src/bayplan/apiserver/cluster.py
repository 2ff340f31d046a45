"""The embedded cluster: an API server with simulated kubelets and controllers, started and stopped as one.

Listens on loopback with TLS and a token by default, and refuses any other address without TLS. What runs the
scheduler, the command line and the dashboard is not here.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterable
from pathlib import Path

from bayplan.apiserver.api import Api, ApiSettings
from bayplan.apiserver.bootstrap import bootstrap, create_if_absent
from bayplan.apiserver.controllers.group import Controllers
from bayplan.apiserver.encoding import Json
from bayplan.apiserver.http import HttpServer
from bayplan.apiserver.inprocess import InProcessTransport
from bayplan.apiserver.kubelets import Kubelets, KubeletSettings
from bayplan.apiserver.node_objects import make_nodes
from bayplan.apiserver.store import Store
from bayplan.apiserver.tls import ServingCertificate, load_certificate, make_certificate
from bayplan.apiserver.tokens import new_admin_token
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
        authorization: str = "always-allow",
        seed: int | None = None,
        listen: bool = True,
        kubelets: KubeletSettings | None = None,
    ) -> None:
        if listen and not is_loopback(host) and not tls:
            raise UnsafeAddress(
                f"refusing to listen on {host} without TLS: anybody on the network could read the token\n"
                "hint: keep TLS on (the default), or listen on 127.0.0.1"
            )
        self.clock = clock or SystemClock()
        self.token = token or new_admin_token()
        self._host, self._port, self._listen = host, port, listen
        self._certificate = self._serving_certificate(tls, tls_certificate, tls_key)
        settings = ApiSettings(token=self.token, authorization=authorization, seed=seed)
        self.api = Api(clock=self.clock, settings=settings)
        self._initial = [*(make_nodes(nodes) if isinstance(nodes, int) else nodes), *objects]
        self._http = HttpServer(self.api.handle)
        self.controllers = Controllers(self.api)
        self.kubelets = Kubelets(self.api, kubelets)

    def _serving_certificate(self, tls: bool, certificate: Path | None, key: Path | None) -> ServingCertificate | None:
        if not tls or not self._listen:
            return None
        if certificate is not None and key is not None:
            return load_certificate(certificate, key)
        return make_certificate(self._host)

    @property
    def store(self) -> Store:
        return self.api.store

    @property
    def url(self) -> str:
        scheme = "https" if self._certificate is not None else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self._http.port}"

    def in_process_transport(self) -> InProcessTransport:
        return InProcessTransport(self.api, token=self.token)

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
        bootstrap(self.api)
        for document in self._initial:
            create_if_absent(self.api, document)
        self.controllers.start()
        self.kubelets.start()
        if self._listen:
            tls = self._certificate.context() if self._certificate is not None else None
            await self._http.start(self._host, self._port, tls=tls)

    async def stop(self) -> None:
        await self._http.stop()
        await self.kubelets.stop()
        await self.controllers.stop()
        self.api.reader.cut_watches()
