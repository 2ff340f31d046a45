"""Whatever a server does between two quiet moments, the copy ends up equal to it and the telling adds up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.client.backoff import BackoffSettings
from bayplan.client.errors import ConnectionFailed, RequestTimeout
from bayplan.client.reflector import Reflector, ReflectorSettings
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock

from .support import Call, ScriptedTransport, Thing, bookmark, event, no_draw, page, refusal, status, thing


class ModelServer:
    """A collection with history, watchers that can be cut, and compaction."""

    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, dict[str, object]] = {}
        self.history: list[tuple[int, bytes]] = []
        self.compacted = 0
        self.failures = 0
        self._incarnation = 0
        self._changed = asyncio.Event()
        self._cut = asyncio.Event()

    def write(self, name: str) -> None:
        self.version += 1
        known = self.objects.get(name)
        if known is None:
            self._incarnation += 1
        uid = known["metadata"]["uid"] if known else f"uid-{self._incarnation}"  # type: ignore[index]
        self.objects[name] = thing(name, self.version, value=self.version, uid=uid)
        self._note("MODIFIED" if known else "ADDED", self.objects[name])

    def delete(self, name: str) -> None:
        known = self.objects.pop(name, None)
        if known is not None:
            self.version += 1
            metadata = {**known["metadata"], "resourceVersion": str(self.version)}  # type: ignore[dict-item]
            self._note("DELETED", {**known, "metadata": metadata})

    def bookmark(self) -> None:
        self.history.append((self.version, bookmark(self.version)))
        self._wake()

    def compact(self) -> None:
        self.compacted = self.version
        self.history = []

    def cut(self) -> None:
        cut, self._cut = self._cut, asyncio.Event()
        cut.set()

    def _note(self, kind: str, item: dict[str, object]) -> None:
        self.history.append((self.version, event(kind, item)))
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def answer(self, call: Call) -> Response | Exception:
        if self.failures:
            self.failures -= 1
            return RequestTimeout("slow", may_have_been_processed=True) if self.failures % 2 else refusal(500)
        items = sorted(self.objects.items())
        start = int(call.query.get("continue", "0").partition("@")[0])
        snapshot = int(call.query.get("continue", f"0@{self.version}").partition("@")[2])
        if snapshot < self.compacted or snapshot != self.version:
            return refusal(410, "Expired")
        limit = int(call.query.get("limit", "1000"))
        token = f"{start + limit}@{self.version}" if start + limit < len(items) else ""
        return page([item for _, item in items[start : start + limit]], self.version, token)

    async def stream(self, call: Call) -> AsyncIterator[bytes]:
        cut = self._cut
        seen = int(call.query.get("resourceVersion", "-1"))
        if self.failures:
            self.failures -= 1
            raise ConnectionFailed("refused", may_have_been_processed=False)
        if "sendInitialEvents" in call.query:
            for item in list(self.objects.values()):
                yield event("ADDED", item)
            yield bookmark(self.version, ends_initial_events=True)
            seen = self.version
        while not cut.is_set():
            if seen < self.compacted:
                yield event("ERROR", status(410, "Expired"))
                return
            fresh = [(version, line) for version, line in self.history if version > seen]
            if fresh:
                seen = fresh[-1][0]
                yield b"".join(line for _, line in fresh)
                continue
            waits = [asyncio.ensure_future(self._changed.wait()), asyncio.ensure_future(cut.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        raise ConnectionFailed("cut", may_have_been_processed=True)


NAMES = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES),
        st.tuples(st.just("write"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("delete and compact"), NAMES),
        st.tuples(st.sampled_from(["cut", "compact", "bookmark", "fail", "turn", "wait"]), st.just("")),
    ),
    min_size=10,
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(STEPS, st.booleans())
def test_the_copy_equals_the_server_and_the_changes_add_up(steps: list[tuple[str, str]], is_streaming: bool) -> None:
    asyncio.run(_check(steps, is_streaming))


async def _check(steps: list[tuple[str, str]], is_streaming: bool) -> None:
    clock = VirtualClock()
    server = ModelServer()
    told: dict[str, Thing] = {}

    def on_change(old: Thing | None, new: Thing | None) -> None:
        known = new or old
        assert known is not None
        assert told.get(known.metadata.name) == old
        assert old is None or new is None or old.metadata.uid == new.metadata.uid
        if new is None:
            del told[known.metadata.name]
        else:
            told[known.metadata.name] = new

    reflector = Reflector(
        ScriptedTransport(server.answer, server.stream),
        "/things",
        Thing,
        on_change,
        clock=clock,
        draw=no_draw,
        settings=ReflectorSettings(
            page_size=2, is_streaming=is_streaming, backoff=BackoffSettings(ceiling_seconds=1.0)
        ),
    )
    task = asyncio.create_task(reflector.run())
    for step, name in steps:
        await _take(step, name, server, clock)
    server.failures = 0
    await clock.run_for(10.0)
    task.cancel()
    await asyncio.wait([task])

    assert reflector.replica.callback_errors == 0
    assert {name: item.value for name, item in told.items()} == {
        name: item["value"] for name, item in server.objects.items()
    }
    assert set(reflector.objects) == {f"ns/{name}" for name in server.objects}


async def _take(step: str, name: str, server: ModelServer, clock: VirtualClock) -> None:
    if step == "write":
        server.write(name)
    elif step == "delete":
        server.delete(name)
    elif step == "delete and compact":
        server.delete(name)
        server.compact()
    elif step == "cut":
        server.cut()
    elif step == "compact":
        server.compact()
    elif step == "bookmark":
        server.bookmark()
    elif step == "fail":
        server.failures += 2
    elif step == "turn":
        await asyncio.sleep(0)
    else:
        await clock.run_for(0.5)
