"""The log of a process: both structlog and the standard library write into it.

`-v N` works as in Kubernetes: 0 shows what an operator must know, 2 what was decided for each pod, 4 moves in the
queue, 5 filters, 10 scores. A line says its own verbosity with `v=N`; `debug` without it counts as 4. Plugins write at
their own level: `info` shows, whichever logger they use. Warnings and errors always show, but not more than a few of
one kind in ten seconds (see `RepeatLimit`). Secrets are blanked (see `redaction`).

Writing a log never raises: a full disk or a closed pipe loses lines, nothing else.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TextIO

import structlog

from bayplan.observe.clock import Clock, SystemClock
from bayplan.observe.log_lines import LEVEL_LETTERS, json_line, text_line
from bayplan.observe.redaction import is_secret_name, redact_text, redacted

__all__ = ["DEBUG_VERBOSITY", "FORMATS", "Log", "LogSettings", "RepeatLimit", "configure_logging"]

DEBUG_VERBOSITY = 4
FORMATS = ("text", "json")
_OTHERS_VERBOSITY = 6
_UNLIMITED_VERBOSITY = 8
_OWN_NAMESPACE = "bayplan"
_MAX_KINDS = 1024
_LIMITED_LEVELS = frozenset(("warning", "error"))

Event = MutableMapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """`--logging-format` and `-v`."""

    format: str = "text"
    verbosity: int = 0
    stream: TextIO | None = None
    """Where lines go; standard error if not given."""
    is_own_quiet: bool = False
    """Whether lines of the scheduler itself below warnings are left out, and those of plugins stay."""
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"the logging format is `text` or `json`, not `{self.format}`")
        checked_verbosity(self.verbosity)


def checked_verbosity(verbosity: int) -> int:
    if not 0 <= verbosity <= 10:
        raise ValueError(f"the verbosity is a number from 0 to 10, not {verbosity}")
    return verbosity


def configure_logging(settings: LogSettings | None = None) -> Log:
    """Route structlog and the standard library into one log; another call replaces it."""
    log = Log(settings or LogSettings())
    structlog.configure(
        processors=[log.take],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=log.logger_for,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Bridge)]:
        root.removeHandler(handler)
    root.addHandler(_Bridge(log))
    log.set_verbosity(log.verbosity)
    logging.captureWarnings(True)
    return log


class Log:
    """Collects all lines. `set_verbosity` may be called at any time."""

    def __init__(self, settings: LogSettings) -> None:
        self.verbosity = settings.verbosity
        self._clock = settings.clock
        self._stream = settings.stream
        self._line = json_line if settings.format == "json" else text_line
        self._repeats = RepeatLimit(settings.clock.monotonic)
        self._is_own_quiet = settings.is_own_quiet
        self._plugin_places: tuple[str, ...] = ()
        self.lost_lines = 0
        """Lines that could not be written."""

    def set_verbosity(self, verbosity: int) -> None:
        self.verbosity = checked_verbosity(verbosity)
        # What other libraries write is left out by `admits`: a plugin's logger may have any name.
        logging.getLogger().setLevel(logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO)

    def show_plugins_in(self, places: Iterable[str]) -> None:
        """Files and folders of plugins, whose lines show at their level."""
        self._plugin_places = tuple(places)

    def admits(self, record: logging.LogRecord) -> bool:
        """Whether a record of the standard library is written: warnings, ours, and those of plugins."""
        if record.levelno >= logging.WARNING or self.verbosity >= _OTHERS_VERBOSITY:
            return True
        if _is_own(record.name):
            return not self._is_own_quiet
        return record.pathname.startswith(self._plugin_places) if self._plugin_places else False

    def is_shown(self, verbosity: int) -> bool:
        """Whether a line of this verbosity is written; check before building a costly line."""
        return verbosity <= self.verbosity

    def logger_for(self, *names: str) -> _Sink:
        """The factory of structlog loggers, named after the module that logs."""
        return _Sink(self, names[0] if names else "")

    def take(self, sink: Any, method: str, event: Event) -> tuple[tuple[Event], dict[str, Any]]:
        """The one structlog processor: everything else happens in `write`."""
        verbosity = event.setdefault("v", DEBUG_VERBOSITY if method == "debug" else 0)
        if verbosity > self.verbosity:
            raise structlog.DropEvent
        event["level"] = "warning" if method == "warn" else "error" if method == "exception" else method
        event["logger"] = event.get("logger") or sink.name or _caller()
        if self._is_own_quiet and method in ("info", "debug") and _is_own(event["logger"]):
            raise structlog.DropEvent
        return (event,), {}

    def write(self, event: Event, *, kind: str) -> None:
        """Blank, limit, format, write."""
        left_out = self._left_out(event, kind)
        if left_out is None:
            return
        if left_out:
            event["repeats_left_out"] = left_out
        event["timestamp"] = self._clock.now()
        event["stacktrace"] = _stacktrace(event.pop("exc_info", None))
        line = self._line(_without_secrets(event)) + "\n"
        stream = self._stream or sys.stderr
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError):
            self.lost_lines += 1

    def _left_out(self, event: Event, kind: str) -> int | None:
        if event["level"] not in _LIMITED_LEVELS or self.verbosity >= _UNLIMITED_VERBOSITY:
            return 0
        return self._repeats.admit((event["level"], event["logger"], kind))


class _Sink:
    """A structlog logger: gets what `Log.take` returned."""

    __slots__ = ("_log", "name")

    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self.name = name

    def _take(self, event: Event) -> None:
        self._log.write(event, kind=str(event.get("event", "")))

    debug = info = warning = warn = error = exception = critical = fatal = msg = _take


class _Bridge(logging.Handler):
    """Records of the standard library, ours and others', as events of the log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if not self._log.admits(record):
            return
        level = record.levelname.lower()
        event: Event = {
            "event": _text_of(record),
            "level": level if level in LEVEL_LETTERS else "info",
            "logger": record.name,
            "exc_info": record.exc_info,
        }
        with contextlib.suppress(RecursionError):
            self._log.write(event, kind=str(record.msg))


def _is_own(logger: str) -> bool:
    return logger == _OWN_NAMESPACE or logger.startswith(f"{_OWN_NAMESPACE}.")


def _text_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A message and its arguments that do not fit are a bug of the caller, and still worth reading.
        return f"{record.msg} {record.args!r}"


def _caller() -> str:
    """The module that logs: the first frame outside structlog and this file."""
    frame = sys._getframe(1)
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        if not name.startswith("structlog") and name != __name__:
            return name
        if frame.f_back is None:
            break
        frame = frame.f_back
    return _OWN_NAMESPACE


def _stacktrace(exc_info: Any) -> str:
    if exc_info is True:
        exc_info = sys.exc_info()
    if isinstance(exc_info, BaseException):
        exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
    if not isinstance(exc_info, tuple) or exc_info[0] is None:
        return ""
    return "".join(traceback.format_exception(*exc_info)).rstrip()


def _without_secrets(event: Event) -> dict[str, Any]:
    return {
        name: "[redacted]" if isinstance(value, str | bytes) and is_secret_name(name) else _redacted_value(value)
        for name, value in event.items()
    }


def _redacted_value(value: Any) -> Any:
    if isinstance(value, BaseException):
        return redact_text(f"{type(value).__name__}: {value}")
    return redacted(value)


class RepeatLimit:
    """Limits repeated lines: `burst` lines of a kind per `window_seconds`; those above are counted.

    Ten thousand pods that cannot be bound must not make the log a bottleneck or hide other lines. A kind is a level and
    a message without its values; the caller decides.
    """

    def __init__(self, monotonic: Callable[[], float], *, burst: int = 20, window_seconds: float = 10.0) -> None:
        self._monotonic = monotonic
        self._burst = burst
        self._window_seconds = window_seconds
        self._kinds: OrderedDict[Hashable, _SeenKind] = OrderedDict()

    def admit(self, kind: Hashable) -> int | None:
        """None when the line must not be written, otherwise how many of its kind were left out before it."""
        now = self._monotonic()
        seen = self._kinds.get(kind)
        if seen is None:
            self._remember(kind, now)
            return 0
        if now - seen.since >= self._window_seconds:
            left_out, seen.left_out, seen.written, seen.since = seen.left_out, 0, 1, now
            self._kinds.move_to_end(kind)
            return left_out
        if seen.written < self._burst:
            seen.written += 1
            return 0
        seen.left_out += 1
        return None

    def left_out(self) -> int:
        """Lines that were counted and not yet reported."""
        return sum(kind.left_out for kind in self._kinds.values())

    def _remember(self, kind: Hashable, now: float) -> None:
        self._kinds[kind] = _SeenKind(now)
        if len(self._kinds) > _MAX_KINDS:
            self._kinds.popitem(last=False)


class _SeenKind:
    __slots__ = ("left_out", "since", "written")

    def __init__(self, since: float) -> None:
        self.since = since
        self.written = 1
        self.left_out = 0
