"""A BayplanConfiguration from its text or file, or one error with every problem.

It is read by the rules of the KubeSchedulerConfiguration: unknown fields are errors with a suggestion, problems carry
path and line, and `null` means the default. Relative paths are relative to the folder of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from bayplan.api.documents import Table
from bayplan.api.quantity import QuantityError, value
from bayplan.config.durations import format_duration
from bayplan.config.errors import ConfigError, Problem, Problems
from bayplan.config.loading import only_document, read_config_text
from bayplan.config.own import OWN_API_VERSION, OWN_KIND, BayplanConfig
from bayplan.config.reading import Reader, shown
from bayplan.config.validation import Checker

__all__ = ["load_own_config", "load_own_config_file"]

_LEAST_SIZE = "1Mi"


def load_own_config_file(path: str | Path) -> BayplanConfig:
    """Raises `ConfigError`."""
    config = load_own_config(read_config_text(path), source=str(path))
    return _placed(config, Path(path).parent)


def load_own_config(given: str | Mapping[str, Any], *, source: str = "configuration") -> BayplanConfig:
    """A configuration from its text, YAML or JSON, or from data. Raises `ConfigError` with every problem."""
    problems = Problems()
    try:
        document = only_document(given, source, example=f"apiVersion: {OWN_API_VERSION}")
        _check_header(document, problems)
        problems.raise_if_any(source)
        reader = Reader(problems)
        read = reader.read(document, BayplanConfig)
    except RecursionError:
        raise ConfigError([Problem("", "is nested too deeply")], source=source) from None
    if read is not None:
        _validate(read, Checker(problems, reader.lines))
    problems.raise_if_any(source)
    if read is None:
        raise ConfigError([Problem("", "cannot be read")], source=source)
    return read


def _check_header(document: Table, problems: Problems) -> None:
    wanted = {"apiVersion": OWN_API_VERSION, "kind": OWN_KIND}
    for field, expected in wanted.items():
        found = document.get(field)
        if found == expected:
            continue
        what = "is missing" if found is None else f"expected `{expected}`, found {shown(found)}"
        hint = f"write `{field}: {expected}`"
        if found == "KubeSchedulerConfiguration":
            hint = "give it with --config"
        problems.add(field, what, hint=hint, line=document.lines.get(field, 0))


def _validate(config: BayplanConfig, check: Checker) -> None:
    sizes = {
        "decisions.memory": config.decisions.memory,
        "decisions.fileSize": config.decisions.file_size,
        "recording.size": config.recording.size,
    }
    for name, text in sizes.items():
        try:
            is_enough = value(text) >= value(_LEAST_SIZE)
        except QuantityError:
            check.refuse(name, f"expected a size such as `64Mi`, found {shown(text)}")
            continue
        check.require(is_enough, name, text, f"must be at least {_LEAST_SIZE}")
    watchdog = config.watchdog
    for name, duration, least in (
        ("noticeAfter", watchdog.notice_after, timedelta(milliseconds=100)),
        ("endAfter", watchdog.end_after, timedelta(0)),
        ("stopWithin", watchdog.stop_within, timedelta(seconds=1)),
    ):
        rule = f"must be at least {format_duration(least)}"
        check.require(duration >= least, f"watchdog.{name}", format_duration(duration), rule)
    ends, notices = watchdog.end_after, watchdog.notice_after
    rule = f"must not be shorter than noticeAfter ({format_duration(notices)})"
    check.require(not ends or ends >= notices, "watchdog.endAfter", format_duration(ends), rule)
    serving = config.serving
    check.require(
        serving.connections_per_address <= serving.connections,
        "serving.connectionsPerAddress",
        serving.connections_per_address,
        f"must not be more than connections ({serving.connections})",
    )
    slow = config.logging.slow_call
    check.require(slow > timedelta(0), "logging.slowCall", format_duration(slow), "must be longer than 0s")
    for index, spec in enumerate(config.plugins):
        check.require(bool(spec.strip()), f"plugins[{index}]", spec, "must name a plugin")


def _placed(config: BayplanConfig, folder: Path) -> BayplanConfig:
    """With paths that hold in any working directory."""
    decisions = config.decisions
    if decisions.file:
        decisions = msgspec.structs.replace(decisions, file=str(folder / decisions.file))
    recording = config.recording
    if recording.file:
        recording = msgspec.structs.replace(recording, file=str(folder / recording.file))
    plugins = tuple(str(folder / spec) if _is_path(spec) else spec for spec in config.plugins)
    return msgspec.structs.replace(config, plugins=plugins, decisions=decisions, recording=recording)


def _is_path(spec: str) -> bool:
    return "/" in spec or spec.endswith((".py", ".zip", ".whl")) or spec == "."
