"""A stand-in for the API server that costs the scheduler what the real one costs it, and next to nothing itself.

It speaks HTTP/1.1 over TLS, lists nodes, pods and other objects, answers bindings, deletions of pods and changes of
their status after some milliseconds, and tells the pod watch of them. Nothing is checked: whatever is measured against
it is the scheduler's own work.
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
_PLURALS = {"PodDisruptionBudget": "poddisruptionbudgets", "PriorityClass": "priorityclasses"}
_DONE = msgspec.json.encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
_GONE = msgspec.json.encode(
    {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "NotFound",
        "code": 404,
        "message": "not found",
    }
)
_WRITE_SECONDS = 0.02
"""How long the real one takes for a binding when it is busy."""


class StandIn:
    """One cluster: `nodes`, `pods` and other objects. `bound` is called for every binding, before it is answered, and
    `announced` for every event that says so."""

    def __init__(
        self,
        nodes: Iterable[Json],
        pods: Iterable[Json],
        *,
        others: Iterable[Json] = (),
        bound: Callable[[str], None],
        announced: Callable[[], None],
    ) -> None:
        self._pods = {pod["metadata"]["name"]: pod for pod in pods}
        self._lists = {"nodes": _list(nodes), "pods": _list(self._pods.values())}
        for kind, plural in _PLURALS.items():
            self._lists[plural] = _list([each for each in others if each["kind"] == kind])
        self._version = 1_000_000
        self.bound = bound
        self.announced = announced
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
        pod = self._pods[name]
        # The real one adds the node's zone to the labels of every pod that is bound.
        labels = pod["metadata"].get("labels", {}) | {"topology.kubernetes.io/zone": f"zone-{int(node[-5:]) % 3}"}
        metadata = pod["metadata"] | {"labels": labels}
        return self._change(name, pod | {"metadata": metadata, "spec": pod["spec"] | {"nodeName": node}})

    def patch_status(self, name: str, status: Json) -> bytes:
        pod = self._pods.get(name)
        if pod is None:
            return b""
        conditions = {each["type"]: each for each in pod["status"].get("conditions", ())}
        conditions |= {each["type"]: each for each in status.get("conditions", ())}
        return self._change(name, pod | {"status": pod["status"] | status | {"conditions": [*conditions.values()]}})

    def delete(self, name: str) -> bytes:
        pod = self._pods.pop(name, None)
        return b"" if pod is None else self._event("DELETED", pod)

    def _change(self, name: str, pod: Json) -> bytes:
        self._pods[name] = pod
        return self._event("MODIFIED", pod)

    def _event(self, what: str, pod: Json) -> bytes:
        self._version += 1
        metadata = pod["metadata"] | {"resourceVersion": str(self._version)}
        return msgspec.json.encode({"type": what, "object": pod | {"metadata": metadata}}) + b"\n"


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
            self._later(self._bind, path.rsplit("/", 2)[1], msgspec.json.decode(body)["target"]["name"])
        elif path.endswith("/status") and "/pods/" in path:
            self._later(self._patch_status, path.rsplit("/", 2)[1], msgspec.json.decode(body)["status"])
        elif method == "DELETE" and "/pods/" in path:
            self._later(self._delete, path.rsplit("/", 1)[1])
        else:
            self._transport.write(_answer(201, body))
            if path.endswith("/events") and b'"reason":"Scheduled"' in body:
                self._server.announced()

    def _later(self, write: Callable[..., None], *arguments: Any) -> None:
        asyncio.get_running_loop().call_later(_WRITE_SECONDS, write, *arguments)

    def _bind(self, name: str, node: str) -> None:
        self._server.bound(name)
        self._tell(self._server.bind(name, node), 201)

    def _patch_status(self, name: str, status: Json) -> None:
        self._tell(self._server.patch_status(name, status), 200)

    def _delete(self, name: str) -> None:
        self._tell(self._server.delete(name), 200)

    def _tell(self, line: bytes, code: int) -> None:
        """Tell the watch and then the one who asked; an empty line says that the pod is gone."""
        if line and self._server.pod_watch is not None:
            self._server.pod_watch.write(b"%x\r\n%s\r\n" % (len(line), line))
        self._transport.write(_answer(code, _DONE) if line else _answer(404, _GONE))


def _answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d -\r\n%sContent-Length: %d\r\n\r\n%s" % (status, _HEADERS, len(body), body)


def _list(items: Iterable[Json]) -> bytes:
    return msgspec.json.encode({"kind": "List", "metadata": {"resourceVersion": "1000000"}, "items": list(items)})


def _discovery(path: str) -> bytes:
    resources = [{"name": name, "verbs": ["get", "list", "watch"]} for name in _RESOURCES[path].split()]
    group = path.partition("/")[2]
    return msgspec.json.encode({"kind": "APIResourceList", "groupVersion": group, "resources": resources})
