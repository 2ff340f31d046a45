"""A process that outlives its starter by a moment, to clean up after it.

Run as a script with a pipe as standard input. Each line is `watch PID`, `forget PID` or `remove PATH`. When the pipe
closes, which the kernel does however the starter ended (SIGKILL too), every process still watched is killed and the
folders are removed. It imports nothing of the project so that it starts in a few milliseconds, and it never acts while
the pipe is open.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time


def main() -> None:
    watched: set[int] = set()
    folders: list[str] = []
    for line in sys.stdin:
        verb, _, argument = line.rstrip("\n").partition(" ")
        if verb == "watch":
            watched.add(int(argument))
        elif verb == "forget":
            watched.discard(int(argument))
        elif verb == "remove":
            folders.append(argument)
    for pid in watched:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    _wait_until_gone(watched)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_gone(pids: set[int], patience_seconds: float = 5.0) -> None:
    """A folder removed while its writer still lives would be filled again."""
    deadline = time.monotonic() + patience_seconds
    while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
