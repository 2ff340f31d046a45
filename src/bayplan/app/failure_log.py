"""Failures of plugins in the log: each with its traceback once, and then how often it came back.

A plugin that fails does so for every node of every attempt. Thousands of equal tracebacks would hide the first.
"""

from __future__ import annotations

import structlog

from bayplan.observe.failures import described

__all__ = ["FailureLog"]

_log = structlog.get_logger()
_MOST_KINDS = 256


class FailureLog:
    def __init__(self) -> None:
        self._times: dict[tuple[str, str, str], int] = {}

    def write(self, plugin: str, point: str, exception: BaseException) -> None:
        error = described(exception)
        key = (plugin, point, error)
        times = self._times[key] = self._times.get(key, 0) + 1
        if times == 1:
            _log.error("plugin failed", plugin=plugin, point=point, error=error, exc_info=exception)
        elif str(times).strip("0") == "1":
            _log.error("plugin failed again", plugin=plugin, point=point, error=error, times=times)
        if len(self._times) > _MOST_KINDS:
            self._times.clear()

    def forget(self) -> None:
        """After a reload: what still fails is worth its traceback again."""
        self._times.clear()
