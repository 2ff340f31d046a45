"""Formats a log event as one line: text in klog's format, or JSON. Values cannot inject a second line.

    I1115 20:04:05.123456 4242 bayplan.loop.scheduler] pod bound pod="default/web" node="n1"

The letter is the level (D, I, W, E, F), then month and day, time, process id and logger. In text, control characters in
messages and values are escaped and a traceback is indented. In JSON the keys are those of Kubernetes' JSON logs
(`ts` in milliseconds, `msg`, `v`, `logger`), and `level` says it in words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

__all__ = ["LEVEL_LETTERS", "json_line", "text_line"]

LEVEL_LETTERS = {"debug": "D", "info": "I", "warning": "W", "error": "E", "critical": "F"}
_LONGEST_VALUE = 4096
_HINT = "\nhint: "
_OWN_KEYS = frozenset(("event", "level", "logger", "timestamp", "stacktrace", "v"))


def text_line(event: Mapping[str, Any]) -> str:
    letter = LEVEL_LETTERS.get(event["level"], "I")
    moment = datetime.fromtimestamp(event["timestamp"])
    message, hint = _message(event)
    parts = [f"{letter}{moment:%m%d %H:%M:%S.%f} {os.getpid()} {event['logger']}] {_printable(message)}"]
    parts.extend(f"{_printable(name)}={_quoted(value)}" for name, value in _fields(event).items())
    if hint:
        parts.append(f"hint={_quoted(hint)}")
    line = " ".join(parts)
    if event.get("stacktrace"):
        line += "\n" + "\n".join("    " + _printable(row) for row in str(event["stacktrace"]).splitlines())
    return line


def json_line(event: Mapping[str, Any]) -> str:
    message, hint = _message(event)
    record: dict[str, Any] = {
        "ts": round(event["timestamp"] * 1000, 3),
        "level": event["level"],
        "v": event.get("v", 0),
        "logger": event["logger"],
        "msg": message,
        **{name: _plain(value) for name, value in _fields(event).items()},
    }
    if hint:
        record["hint"] = hint
    if event.get("stacktrace"):
        record["stacktrace"] = str(event["stacktrace"])
    return json.dumps(record, ensure_ascii=False, default=str)


def _message(event: Mapping[str, Any]) -> tuple[str, str]:
    """The message, and the hint that follows it on a line of its own."""
    message, _, hint = str(event["event"]).partition(_HINT)
    return message, hint


def _fields(event: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in event.items() if name not in _OWN_KEYS}


def _quoted(value: Any) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    text = value if isinstance(value, str) else str(_plain(value))
    return json.dumps(_cut(text), ensure_ascii=not text.isprintable())


def _plain(value: Any) -> Any:
    """A JSON value; other objects as their text."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1].replace('\\"', '"')
