"""A stand-in for the API server that costs the scheduler what the real one costs it, and next to nothing itself.

It speaks HTTP/1.1 over TLS, lists nodes and pods, answers bindings after some milliseconds and tells the pod watch of
them. Nothing is checked or stored: whatever is measured against it is the scheduler's own work.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

__all__ = ["StandIn"]

Json = dict[str, Any]
_LENGTH = re.compile(rb"content-length: (\d+)", re.I)
_RESOURCES = {
    "api/v1": "pods nodes namespaces services replicationcontrollers persistentvolumes persistentvolumeclaims",
    "apis/apps/v1": "replicasets statefulsets",
    "apis/policy/v1": "poddisruptionbudgets",
    "apis/scheduling.k8s.io/v1": "priorityclasses",
    "apis/storage.k8s.io/v1": "storageclasses csinodes csidrivers csistoragecapacities volumeattachments",
}
_HEADERS = (
    b"Audit-Id: 00000000-0000-0000-0000-000000000000\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
)
_WATCH = b"HTTP/1.1 200 OK\r\n" + _HEADERS + b"Transfer-Encoding: chunked\r\n\r\n"
_DONE = msgspec.json.encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
_BINDING_SECONDS = 0.02
"""How long the real one takes for a binding when it is busy."""


class StandIn:
    """One cluster: `nodes` and waiting `pods` by name. `bound` is told of every binding, before it is answered."""

    def __init__(self, nodes: Iterable[Json], pods: Iterable[Json], *, bound: Callable[[str], None]) -> None:
        self._pods = {pod["metadata"]["name"]: pod for pod in pods}
        self._lists = {"nodes": _list(nodes), "pods": _list(self._pods.values())}
        self._version = 1_000_000
        self.bound = bound
        self.events = 0
        self.pod_watch: asyncio.Transport | None = None

    async def serve(self, context: ssl.SSLContext) -> asyncio.Server:
        """Listen on a free port of the loopback."""
        return await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", 0, ssl=context)

    def get(self, path: str, query: str) -> bytes:
        """The answer to a GET that is not a watch."""
        if path in _RESOURCES:
            return _answer(200, _discovery(path))
        if path.count("/") == 2 and path.startswith("apis/") and not query:
            return _answer(404, b"{}")
        return _answer(200, self._lists.get(path.rsplit("/", 1)[-1], _list([])))

    def bind(self, name: str, node: str) -> bytes:
        """The line that tells the watch."""
        self._version += 1
        pod = self._pods[name]
        metadata = pod["metadata"] | {"resourceVersion": str(self._version)}
        # The real one adds the node's zone to the labels of every pod that is bound.
        metadata["labels"] = metadata.get("labels", {}) | {"topology.kubernetes.io/zone": f"zone-{int(node[-5:]) % 3}"}
        changed = pod | {"metadata": metadata, "spec": pod["spec"] | {"nodeName": node}}
        return msgspec.json.encode({"type": "MODIFIED", "object": changed}) + b"\n"


class _Connection(asyncio.Protocol):
    def __init__(self, server: StandIn) -> None:
        self._server = server
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # a stream protocol gets a stream

    def data_received(self, data: bytes) -> None:
        self._held += data
        while True:
            head, end, rest = self._held.partition(b"\r\n\r\n")
            found = _LENGTH.search(head)
            length = int(found[1]) if found else 0
            if not end or len(rest) < length:
                return
            body, self._held = rest[:length], rest[length:]
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            path, _, query = target.partition("?")
            self._take(method, path.strip("/"), query, body)

    def _take(self, method: str, path: str, query: str, body: bytes) -> None:
        if method == "GET" and "watch=" in query:
            if path.endswith("/pods"):
                self._server.pod_watch = self._transport
            self._transport.write(_WATCH)
        elif method == "GET":
            self._transport.write(self._server.get(path, query))
        elif path.endswith("/binding"):
            name, node = path.rsplit("/", 2)[1], msgspec.json.decode(body)["target"]["name"]
            asyncio.get_running_loop().call_later(_BINDING_SECONDS, self._bind, name, node)
        else:
            self._server.events += "/events" in path
            self._transport.write(_answer(201, body))

    def _bind(self, name: str, node: str) -> None:
        self._server.bound(name)
        line = self._server.bind(name, node)
        if self._server.pod_watch is not None:
            self._server.pod_watch.write(b"%x\r\n%s\r\n" % (len(line), line))
        self._transport.write(_answer(201, _DONE))


def _answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d -\r\n%sContent-Length: %d\r\n\r\n%s" % (status, _HEADERS, len(body), body)


def _list(items: Iterable[Json]) -> bytes:
    return msgspec.json.encode({"kind": "List", "metadata": {"resourceVersion": "1000000"}, "items": list(items)})


def _discovery(path: str) -> bytes:
    resources = [{"name": name, "verbs": ["get", "list", "watch"]} for name in _RESOURCES[path].split()]
    group = path.partition("/")[2]
    return msgspec.json.encode({"kind": "APIResourceList", "groupVersion": group, "resources": resources})
