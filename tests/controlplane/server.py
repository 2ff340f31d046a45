"""A server that can be stopped, killed and started again on the same address with the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.process import ChildProcess, Guard, StartFailed, wait_until

_START_TIMEOUT_SECONDS = 90.0


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How a server is run and how one sees that it is ready."""

    command: Sequence[str]
    log_path: Path
    is_ready: Callable[[], bool]
    # Both servers would wait longer for watches that never end; what they have committed is safe by then.
    stop_patience_seconds: float = 3.0


class Server:
    """One of the control plane's servers, not running until `start()`. All methods may be repeated harmlessly."""

    def __init__(self, settings: ServerSettings, *, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        self._child: ChildProcess | None = None

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running

    @property
    def pid(self) -> int:
        """The id of the running process, for measurements; it changes with every start."""
        return self._running_child().pid

    @property
    def log_path(self) -> Path:
        return self._settings.log_path

    def start(self) -> None:
        """Start it unless it runs, and return when it is ready."""
        if not self.is_running:
            self._child = ChildProcess(self._settings.command, log_path=self.log_path, guard=self._guard)
        self.wait_ready()

    def wait_ready(self) -> None:
        wait_until(
            self._settings.is_ready,
            what="an answer that it is ready",
            child=self._running_child(),
            timeout_seconds=_START_TIMEOUT_SECONDS,
        )

    def stop(self) -> None:
        """End it in good order (SIGTERM), and by force when clients keep it waiting."""
        if self._child is not None:
            self._child.stop(patience_seconds=self._settings.stop_patience_seconds)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        if self._child is not None:
            self._child.kill()

    def _running_child(self) -> ChildProcess:
        if self._child is None:
            raise StartFailed(f"{Path(self._settings.command[0]).name} was never started")
        return self._child
