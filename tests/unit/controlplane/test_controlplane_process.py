"""Child processes: started, stopped, killed, their logs shown, and none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.controlplane.process import ChildProcess, Guard, StartFailed, wait_until

_ROOT = Path(__file__).parents[3]
_DEAF = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.close()


def child(tmp_path: Path, guard: Guard, script: str) -> ChildProcess:
    return ChildProcess(["/bin/sh", "-c", script], log_path=tmp_path / "child.log", guard=guard)


def wait_for_line(process: ChildProcess, line: str) -> None:
    wait_until(lambda: line in process.log_tail(), what=f"`{line}` in the log", child=process, timeout_seconds=60)


def is_alive(pid: int) -> bool:
    """A process that only waits to be collected by its parent counts as gone."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip() not in ("",) and not state.stdout.strip().startswith("Z")


def test_stop_ends_a_child_and_may_be_repeated(tmp_path: Path, guard: Guard) -> None:
    process = child(tmp_path, guard, "exec sleep 60")

    process.stop()
    process.stop()

    assert process.exit_status == -signal.SIGTERM


def test_stop_kills_a_child_that_does_not_listen(tmp_path: Path, guard: Guard) -> None:
    process = child(tmp_path, guard, _DEAF)
    wait_for_line(process, "ready")

    process.stop(patience_seconds=0.1)

    assert process.exit_status == -signal.SIGKILL


def test_a_child_that_ends_early_fails_with_its_log(tmp_path: Path, guard: Guard) -> None:
    process = child(tmp_path, guard, "echo 'bad flag --colour' >&2; exit 7")

    with pytest.raises(StartFailed, match="ended with status 7 before an answer") as raised:
        wait_until(lambda: False, what="an answer", child=process, timeout_seconds=60)
    assert "bad flag --colour" in str(raised.value)
    process.stop()


def test_a_child_that_is_never_ready_fails_with_its_log(tmp_path: Path, guard: Guard) -> None:
    process = child(tmp_path, guard, "echo thinking; exec sleep 60")
    wait_for_line(process, "thinking")

    with pytest.raises(StartFailed, match=r"an answer did not come within 0.1 s[\s\S]*thinking"):
        wait_until(lambda: False, what="an answer", child=process, timeout_seconds=0.1)
    process.kill()


def test_the_log_tail_is_the_end_of_a_long_log(tmp_path: Path, guard: Guard) -> None:
    process = child(tmp_path, guard, "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i + 1)); done")
    process.stop(patience_seconds=60)
    (tmp_path / "child.log").write_text("".join(f"line {number}\n" for number in range(9000)))

    assert process.log_tail(lines=2) == "line 8998\nline 8999"


def test_nothing_is_left_when_the_starter_is_killed(tmp_path: Path) -> None:
    """SIGKILL runs no handler and no `finally`: only somebody else can clean up."""
    folder = tmp_path / "data"
    folder.mkdir()
    script = f"""
import os, signal
from pathlib import Path
from tests.controlplane.process import ChildProcess, Guard
guard = Guard(remove=Path({str(folder)!r}))
child = ChildProcess(["/bin/sh", "-c", {_DEAF!r}], log_path=Path({str(tmp_path / "log")!r}), guard=guard)
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    starter = subprocess.run([sys.executable, "-c", script], cwd=_ROOT, capture_output=True, text=True, check=False)
    pid = int(starter.stdout)

    deadline = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)


def test_a_closed_guard_removes_its_folder_and_spares_what_it_was_told_to_forget(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    guard = Guard(remove=folder)
    spared = subprocess.Popen(["sleep", "60"])
    guard.watch(spared.pid)
    guard.forget(spared.pid)

    guard.close()

    assert not folder.exists()
    assert spared.poll() is None
    spared.kill()
    spared.wait()


def test_a_dead_guard_does_not_stop_the_tests(tmp_path: Path) -> None:
    guard = Guard()
    os.kill(guard.pid, signal.SIGKILL)
    while is_alive(guard.pid):
        time.sleep(0.01)

    process = child(tmp_path, guard, "exec sleep 60")
    process.stop()
    guard.close()

    assert process.exit_status == -signal.SIGTERM
