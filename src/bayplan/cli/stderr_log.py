"""The log of a command: warnings and errors on standard error, each different line once.

A plugin that raises does so for every node and every pod; one line with the position is enough. A running scheduler has
its own log (`bayplan.observe.logs`).
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

from bayplan.cli.output import one_line
from bayplan.observe.failures import described

__all__ = ["log_to_stderr"]

Event = MutableMapping[str, Any]


def log_to_stderr() -> None:
    """Write the log to standard error for the rest of this process."""
    structlog.configure(
        processors=[_once(), _as_line],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _once() -> Callable[[Any, str, Event], Event]:
    seen: set[str] = set()

    def drop_repeated(_: Any, __: str, event: Event) -> Event:
        key = repr(sorted((name, repr(value)) for name, value in event.items()))
        if key in seen:
            raise structlog.DropEvent
        seen.add(key)
        return event

    return drop_repeated


def _as_line(_: Any, level: str, event: Event) -> str:
    """`warning: plugin failed (plugin Broken, point filter): RuntimeError: boom, at broken.py:4`."""
    exception = event.pop("exc_info", None)
    what = event.pop("event", "")
    details = ", ".join(f"{name} {value}" for name, value in event.items())
    line = f"{level}: {what} ({details})" if details else f"{level}: {what}"
    if isinstance(exception, BaseException):
        line += f": {described(exception)}{_place(exception)}"
    return one_line(line)


def _place(exception: BaseException) -> str:
    frames = traceback.extract_tb(exception.__traceback__)
    return f", at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
