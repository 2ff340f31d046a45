"""/debug/pprof: time and memory profiles of the process, without additional tools in its container.

    /debug/pprof/profile?seconds=30   stacks of all threads, sampled; folded, a line each, as flame graphs take them
    /debug/pprof/goroutine            what every thread and every asyncio task is at right now
    /debug/pprof/heap                 objects by type; by line of source where the process runs with PYTHONTRACEMALLOC=1

The paths are those of Go programs, so that rules that grant them to people fit here too; the answers are text, not Go's
format. Answers hold names of functions and files, never values. Whether profiling is on is evaluated at every request.
A thread samples a hundred times a second, which costs less than a percent; one profile and one heap at a time, each
ended when its client is gone, and a heap once in ten seconds.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from math import ceil
from types import CodeType, FrameType

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bayplan.server.answers import Refusal
from bayplan.server.connected import CLIENT_CLOSED_REQUEST, ClientGone, while_connected

__all__ = ["PROFILING_PATHS", "profiling_routes"]

PROFILING_PATHS = ("/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/goroutine", "/debug/pprof/heap")
_INDEX = """\
/debug/pprof/profile?seconds=30   folded stacks of all threads; for flamegraph.pl, speedscope and the like
/debug/pprof/goroutine            what every thread and every asyncio task is at
/debug/pprof/heap                 objects by type, or by line of source with PYTHONTRACEMALLOC=1
"""
_USUAL_SECONDS = 30.0
_MOST_SECONDS = 60.0
_BETWEEN_SECONDS = 0.01
_DEEPEST = 128
_MOST_STACKS = 20_000
_MOST_TASKS = 10_000
_MOST_TYPES = 100
_OBJECTS_AT_A_TIME = 10_000
_TASKS_AT_A_TIME = 100
_REST_SECONDS = 0.001
_HEAP_PAUSE_SECONDS = 10.0
"""The interpreter lists all objects in one step, for which everything else waits some ten milliseconds."""
_MOST_LINES = 50
_FOLDERS = ("/site-packages/", "/src/", f"/python{sys.version_info.major}.{sys.version_info.minor}/")

Page = Callable[[Request], Awaitable[Response]]
Stack = tuple[CodeType, ...]


def profiling_routes(is_on: Callable[[], bool]) -> list[BaseRoute]:
    profile, heap = _OneAtATime(_profile), _OneAtATime(_heap, pause_seconds=_HEAP_PAUSE_SECONDS)

    def when_on(page: Page) -> Page:
        async def guarded(request: Request) -> Response:
            if not is_on():
                raise Refusal(404, "profiling is off; `enableProfiling: true` in the configuration switches it on")
            return await page(request)

        return guarded

    return [
        Route("/debug/pprof", when_on(_index)),
        Route("/debug/pprof/", when_on(_index)),
        Route("/debug/pprof/profile", when_on(profile)),
        Route("/debug/pprof/goroutine", when_on(_goroutine)),
        Route("/debug/pprof/heap", when_on(heap)),
    ]


async def _index(request: Request) -> Response:
    return PlainTextResponse(_INDEX)


class _OneAtATime:
    """A page whose work takes a while, in a thread that ends when `stop` is set."""

    def __init__(
        self, work: Callable[[Request], Callable[[threading.Event], str]], *, pause_seconds: float = 0.0
    ) -> None:
        """`pause_seconds`: the least time from the end of one to the next."""
        self._work = work
        self._pause_seconds = pause_seconds
        self._is_busy = False
        self._allowed_at = 0.0

    async def __call__(self, request: Request) -> Response:
        work, stop = self._work(request), threading.Event()
        if self._is_busy:
            raise Refusal(429, "this is being measured already; one at a time", headers={"retry-after": "10"})
        loop = asyncio.get_running_loop()
        if (left := self._allowed_at - loop.time()) > 0:
            message = f"this was measured just now; once in {self._pause_seconds:g} seconds"
            raise Refusal(429, message, headers={"retry-after": str(ceil(left))})
        self._is_busy = True
        try:
            return PlainTextResponse(await while_connected(request, asyncio.to_thread(work, stop)))
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        finally:
            stop.set()
            self._is_busy = False
            self._allowed_at = loop.time() + self._pause_seconds


# Time


def _profile(request: Request) -> Callable[[threading.Event], str]:
    seconds = _seconds(request)

    def work(stop: threading.Event) -> str:
        return "".join(f"{_folded(stack)} {count}\n" for stack, count in _sample(seconds, stop).most_common())

    return work


def _seconds(request: Request) -> float:
    text = request.query_params.get("seconds", str(_USUAL_SECONDS))
    is_number = text.isascii() and len(text) < 10 and text.replace(".", "", 1).isdecimal()
    seconds = float(text) if is_number else 0.0
    if not 0 < seconds <= _MOST_SECONDS:
        raise Refusal(400, f"seconds is a number above 0 and up to {_MOST_SECONDS:g}")
    return seconds


def _sample(seconds: float, stop: threading.Event) -> Counter[Stack]:
    """Runs in its own thread: a thread cannot sample itself."""
    stacks: Counter[Stack] = Counter()
    own = threading.get_ident()
    for _ in range(max(1, round(seconds / _BETWEEN_SECONDS))):
        if stop.wait(_BETWEEN_SECONDS):
            break
        for thread, frame in sys._current_frames().items():
            if thread != own:
                stack = _stack_of(frame)
                if stack in stacks or len(stacks) < _MOST_STACKS:
                    stacks[stack] += 1
    return stacks


def _stack_of(frame: FrameType | None) -> Stack:
    """Outermost first."""
    codes: list[CodeType] = []
    while frame is not None and len(codes) < _DEEPEST:
        codes.append(frame.f_code)
        frame = frame.f_back
    return tuple(reversed(codes))


def _folded(stack: Stack) -> str:
    return ";".join(_name(code) for code in stack)


def _name(code: CodeType) -> str:
    """In one word: the format has a space before the count and semicolons between the names."""
    return f"{_short(code.co_filename)}:{code.co_qualname}".replace(";", ",").replace(" ", "_")


def _short(path: str) -> str:
    """The file below its package folder: enough to find it, and nothing about the machine."""
    for folder in _FOLDERS:
        _, found, rest = path.rpartition(folder)
        if found:
            return rest
    return "/".join(path.split("/")[-2:])


# Threads and tasks


async def _goroutine(request: Request) -> Response:
    tasks = asyncio.all_tasks()
    lines = [f"{threading.active_count()} threads, {len(tasks)} tasks", ""]
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        lines += [f"thread {names.get(ident, ident)}", *_told(_stack_of(frame)), ""]
    for (kind, stack), count in (await _alike(list(tasks)[:_MOST_TASKS])).most_common():
        lines += [f"{count} tasks `{kind}`" if count > 1 else f"task `{kind}`", *_told(stack), ""]
    return PlainTextResponse("\n".join(lines))


async def _alike(tasks: Sequence[asyncio.Task[object]]) -> Counter[tuple[str, Stack]]:
    """Tasks by the first word of their name and by where they are."""
    found: Counter[tuple[str, Stack]] = Counter()
    for number, task in enumerate(tasks, 1):
        if number % _TASKS_AT_A_TIME == 0:
            await asyncio.sleep(_REST_SECONDS)
        codes = tuple(frame.f_code for frame in task.get_stack(limit=_DEEPEST))
        found[task.get_name().split(" ")[0].split("-")[0], codes] += 1
    return found


def _told(stack: Stack) -> list[str]:
    return [f"    {_short(code.co_filename)}:{code.co_firstlineno} {code.co_qualname}" for code in stack]


# Memory


def _heap(request: Request) -> Callable[[threading.Event], str]:
    count = _by_line if tracemalloc.is_tracing() else _by_type
    return lambda stop: "\n".join([*_facts(), "", *count(stop), ""])


def _facts() -> list[str]:
    return [
        f"blocks in use: {sys.getallocatedblocks()}",
        f"objects frozen at the start: {gc.get_freeze_count()}",
        f"collector: {', '.join(f'{each}' for each in gc.get_stats())}",
    ]


def _by_type(stop: threading.Event) -> list[str]:
    counts: Counter[type] = Counter()
    objects = gc.get_objects()
    for start in range(0, len(objects), _OBJECTS_AT_A_TIME):
        counts.update(map(type, objects[start : start + _OBJECTS_AT_A_TIME]))
        # A thread that computes without a rest keeps the interpreter from the event loop for 5 ms at a time.
        if stop.wait(_REST_SECONDS):
            break
    head = f"{len(objects)} objects that the collector follows, by type; PYTHONTRACEMALLOC=1 adds lines of source"
    del objects
    found = counts.most_common(_MOST_TYPES)
    return [head, *(f"{count:>10} {kind.__module__}.{kind.__qualname__}" for kind, count in found)]


def _by_line(stop: threading.Event) -> list[str]:
    statistics = tracemalloc.take_snapshot().statistics("lineno")
    head = f"{sum(each.size for each in statistics)} bytes, by the line of source that asked for them"
    return [head, *map(_line, statistics[:_MOST_LINES])]


def _line(found: tracemalloc.Statistic) -> str:
    frame = found.traceback[0]
    return f"{found.size:>12} bytes {found.count:>10} times {_short(frame.filename)}:{frame.lineno}"
