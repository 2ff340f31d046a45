"""What a watcher sees: when each pod came, and when it got its node.

The API server ends the watch of a client that reads too slowly, and any watch after a while. A watch that ends goes on
from the last version seen; when that is gone too, the pods are listed, and what was bound meanwhile counts from then.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from types import TracebackType

import msgspec

from bayplan.client.errors import ClientError, Gone
from bench.versus.cluster import BenchCluster

_ALL_PODS = "/api/v1/pods"
_LOOK_SECONDS = 0.5
_BOUND_ONLY = {"fieldSelector": "spec.nodeName!="}


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _Pods(msgspec.Struct):
    metadata: _Meta
    items: list[_Pod]


_EVENT = msgspec.json.Decoder(_Event)
_PODS = msgspec.json.Decoder(_Pods)


class PodWatch:
    """Follows pods whose names start with `prefix` until `expected` of them are bound."""

    def __init__(
        self,
        cluster: BenchCluster,
        expected: int,
        *,
        prefix: str = "pod-",
        with_creation: bool = False,
        on_first: Callable[[], None] = lambda: None,
        on_last: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._expected = expected
        self._prefix = prefix
        # A watch of bound pods only is half the events: the bench must not take the cores from who is measured.
        self._selector = {} if with_creation else _BOUND_ONLY
        self._on_first, self._on_last = on_first, on_last
        self._version = ""
        self._task: asyncio.Task[None] | None = None
        self.bound: dict[str, float] = {}
        self.created: dict[str, float] = {}
        self.all_bound = asyncio.Event()
        self.breaks = 0
        """How often the watch had to be taken up again."""

    async def __aenter__(self) -> PodWatch:
        listed = await self._cluster.transport.request("GET", _ALL_PODS, query={"limit": "1"})
        self._version = _PODS.decode(listed.body).metadata.resource_version
        self._task = asyncio.create_task(self._follow(), name="pod watch")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait(self, seconds: float, *, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Wait until all are bound; False when that takes too long, or when it cannot happen any more."""
        deadline = time.perf_counter() + seconds
        while not self.all_bound.is_set():
            if time.perf_counter() > deadline or not goes_on():
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.all_bound.wait(), _LOOK_SECONDS)
        return True

    async def _follow(self) -> None:
        while not self.all_bound.is_set():
            try:
                await self._watch_once()
            except Gone:
                self._version = ""
            except ClientError:
                await asyncio.sleep(0.2)
            self.breaks += 1
            if not self._version:
                await self._list()

    async def _watch_once(self) -> None:
        options = {"watch": "true", "resourceVersion": self._version, "timeoutSeconds": "3000"}
        async with self._cluster.transport.stream(_ALL_PODS, query=options | self._selector) as chunks:
            rest = b""
            async for chunk in chunks:
                now = time.perf_counter()
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if not self.take(line, now):
                        return

    def take(self, line: bytes, now: float) -> bool:
        """One line of the watch; False when it says that the watch cannot go on from here."""
        event = _EVENT.decode(line)
        if event.type == "ERROR":
            self._version = ""
            return False
        self._version = event.object.metadata.resource_version
        if event.type != "DELETED":
            self._see(event.object, now)
        return True

    def _see(self, pod: _Pod, now: float) -> None:
        name = pod.metadata.name
        if not name.startswith(self._prefix):
            return
        self.created.setdefault(name, now)
        if pod.spec.node_name and name not in self.bound:
            self.bound[name] = now
            if len(self.bound) == 1:
                self._on_first()
            if len(self.bound) == self._expected:
                self._on_last()
                self.all_bound.set()

    async def _list(self) -> None:
        listed = _PODS.decode((await self._cluster.transport.request("GET", _ALL_PODS)).body)
        self._version = listed.metadata.resource_version
        now = time.perf_counter()
        for pod in listed.items:
            self._see(pod, now)
