"""Ctrl-C while runs are computed: it ends a run at once, and all processes that compute some, without output.

A terminal sends Ctrl-C to every process of a command. It is blocked in workers from their first instruction on, so that
none of them writes a traceback; the process that started them ends them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, resource_tracker
from typing import Any

__all__ = ["CONTEXT", "RunPool", "raising_interrupts", "run_pool"]

CONTEXT = get_context("spawn")


class RunPool:
    """Submits work; a worker is started for each of the first submissions."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with _interrupts_blocked():
            return self._pool.submit(work, *arguments)


@contextmanager
def run_pool(workers: int, *, initializer: Any = None, initargs: tuple[Any, ...] = ()) -> Iterator[RunPool]:
    """Leaving the block waits for what was submitted, unless an exception leaves it: then the workers are ended."""
    before = set(active_children())
    pool = ProcessPoolExecutor(workers, mp_context=CONTEXT, initializer=initializer, initargs=initargs)
    try:
        yield RunPool(pool)
    except BaseException:
        for process in set(active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """Ctrl-C raises where it comes; asyncio would cancel the task, which may not wait for anything for minutes."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: signal.default_int_handler(number, frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Ctrl-C waits for the end of the block, and processes that are started in it never see one: they inherit that."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    # Its start would end the block: it lets signals through again.
    resource_tracker.ensure_running()
    came = threading.Event()
    # The kernel gives the signal to another thread while this one blocks it, and Python handles it here all the same.
    signal.signal(signal.SIGINT, lambda number, frame: came.set())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if came.is_set():
            signal.raise_signal(signal.SIGINT)
