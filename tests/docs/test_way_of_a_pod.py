"""The way of a pod, as ARCHITECTURE.md draws it, is the way that a pod takes: one is scheduled under a tracer."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from types import FrameType
from typing import Any

import msgspec

from bayplan.api.pod import Pod
from bayplan.client.transport import Response
from tests.docs.markdown import ROOT, blocks
from tests.unit.loop.kit import Loop, RecordingTransport, node, pod, running

MOST_STEPS = 25
SOURCES = str(ROOT / "src" / "bayplan") + "/"
EMPTY_LIST = Response(200, {}, b'{"metadata": {"resourceVersion": "1"}, "items": []}')
_STEP = re.compile(r"^ *(\d+)  (\S+)  ", re.MULTILINE)


def drawn_steps() -> list[str]:
    (drawing,) = [block.text for block in blocks(ROOT / "ARCHITECTURE.md") if block.language == "way"]
    steps = _STEP.findall(drawing)
    assert [int(number) for number, _ in steps] == list(range(1, len(drawing.splitlines()) + 1))
    return [name for _, name in steps]


class WatchedTransport(RecordingTransport):
    """Serves an empty list, and then whatever lines are put into `lines`."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = lambda call: EMPTY_LIST if call.method == "GET" else None
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()

    @contextlib.asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield await self.lines.get()


@contextlib.contextmanager
def traced() -> Iterator[list[str]]:
    """Every call of a function of ours, as `module.qualified_name` below `bayplan`."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCES):
            module = code.co_filename.removeprefix(SOURCES).removesuffix(".py").replace("/", ".")
            calls.append(f"{module}.{code.co_qualname}")

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


async def calls_of_one_pod() -> list[str]:
    transport = WatchedTransport()
    loop = Loop([node("a"), node("b")], transport=transport)
    reflector = asyncio.create_task(loop.live.watching.reflectors[Pod].run())
    async with running(loop):
        await loop.settle()
        event = {"type": "ADDED", "object": {"kind": "Pod", **msgspec.to_builtins(pod("p"))}}
        with traced() as calls:
            transport.lines.put_nowait(msgspec.json.encode(event) + b"\n")
            await loop.settle()
        reflector.cancel()
        await asyncio.gather(reflector, return_exceptions=True)
    assert list(transport.bindings) == ["p"]
    return calls


def test_the_way_is_short() -> None:
    assert 0 < len(drawn_steps()) <= MOST_STEPS


async def test_a_pod_takes_the_way_that_is_drawn() -> None:
    steps = drawn_steps()
    calls = dict.fromkeys(await calls_of_one_pod())

    assert [call for call in calls if call in steps] == steps
