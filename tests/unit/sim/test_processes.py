"""Ctrl-C while runs are computed in other processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
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


def test_an_interrupt_while_a_worker_starts_comes_afterwards_and_is_not_lost() -> None:
    pool = Interrupted()

    with pytest.raises(KeyboardInterrupt):
        RunPool(pool).submit(print)  # type: ignore[arg-type]
    assert pool.went_on


def test_workers_see_no_interrupt() -> None:
    """Not even one that comes while they load."""
    with run_pool(1) as pool:
        blocked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()

    assert signal.SIGINT in blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
