"""Ctrl-C while runs are computed in other processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from bayplan.sim.processes import RunPool, run_pool


class Interrupted:
    """A pool that is interrupted while it starts a worker."""

    def __init__(self) -> None:
        self.went_on = False

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        os.kill(os.getpid(), signal.SIGINT)
        self.went_on = True
        return Future()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises as in a command; runners of tests may end at it or ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("others", [0, 3], ids=["one thread", "threads that block nothing"])
def test_an_interrupt_while_a_worker_starts_comes_afterwards_and_is_not_lost(others: int) -> None:
    pool, ends = Interrupted(), threading.Event()
    threads = [threading.Thread(target=ends.wait) for _ in range(others)]
    for thread in threads:
        thread.start()

    with pytest.raises(KeyboardInterrupt):
        RunPool(pool).submit(print)  # type: ignore[arg-type]
    ends.set()
    assert pool.went_on
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_workers_see_no_interrupt() -> None:
    """Not even one that comes while they load."""
    with run_pool(1) as pool:
        blocked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()

    assert signal.SIGINT in blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
