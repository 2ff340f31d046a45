"""Child processes that never outlive the test run, with their logs at hand.

A child writes to a log file, runs in its own session (so that Ctrl-C reaches the launcher first, which then stops
things in order), and is registered with a guard process that kills it should the launcher die without a word. Waiting
is explicit: `wait_until` names what it waits for and shows the end of the log when that does not come.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

_GUARD_SCRIPT = Path(__file__).with_name("guard.py")
_POLL_SECONDS = 0.05
_TAIL_BYTES = 16_384


class StartFailed(Exception):
    """A program ended early or did not become ready in time; the message holds the end of its log."""


class Guard:
    """Kills what is left and removes the folder when this process is gone, however it went."""

    def __init__(self, *, remove: Path | None = None) -> None:
        command = [sys.executable, "-I", "-S", str(_GUARD_SCRIPT)]
        # It may outlive this process, so it must not hold the other end of a pipe that somebody reads to its end.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        if remove is not None:
            self._send(f"remove {remove}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def watch(self, pid: int) -> None:
        self._send(f"watch {pid}")

    def forget(self, pid: int) -> None:
        self._send(f"forget {pid}")

    def close(self) -> None:
        """End the guard; it does its cleaning first."""
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        self._process.wait(timeout=10)

    @property
    def _pipe(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _send(self, line: str) -> None:
        # A guard that somebody killed must not take the tests with it: the orderly way of stopping still works.
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(line + "\n")
            self._pipe.flush()


class ChildProcess:
    """One running program, from start to exit."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log_path: Path,
        guard: Guard,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = Path(command[0]).name
        self.log_path = log_path
        self._guard = guard
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        guard.watch(self.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        return self._process.poll()

    @property
    def is_running(self) -> bool:
        return self.exit_status is None

    def stop(self, *, patience_seconds: float = 10.0) -> None:
        """Ask it to end (SIGTERM), and kill it when it has not after `patience_seconds`. Harmless when it is gone."""
        if self.is_running:
            self._process.terminate()
        try:
            self._process.wait(timeout=patience_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        self._process.kill()
        self._reap()

    def _reap(self) -> None:
        self._process.wait()
        self._guard.forget(self.pid)

    def log_tail(self, lines: int = 25) -> str:
        with self.log_path.open("rb") as log:
            log.seek(max(0, self.log_path.stat().st_size - _TAIL_BYTES))
            text = log.read().decode("utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])


def wait_until(is_ready: Callable[[], bool], *, what: str, child: ChildProcess, timeout_seconds: float) -> None:
    """Poll until `is_ready` says yes; fail with the child's log when it exits or time runs out."""
    deadline = time.monotonic() + timeout_seconds
    while not is_ready():
        if not child.is_running:
            raise _start_failure(f"{child.name} ended with status {child.exit_status} before {what}", child)
        if time.monotonic() > deadline:
            raise _start_failure(f"{child.name}: {what} did not come within {timeout_seconds:g} s", child)
        time.sleep(_POLL_SECONDS)


def _start_failure(summary: str, child: ChildProcess) -> StartFailed:
    return StartFailed(f"{summary}\nlast lines of {child.log_path}:\n{child.log_tail()}")
