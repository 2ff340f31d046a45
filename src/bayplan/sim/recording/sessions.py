"""The sessions of a recording: one for each process that wrote to the file, with the policy that it had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bayplan.app.settings import Settings, SettingsError, resolve_settings
from bayplan.config.errors import ConfigError
from bayplan.config.loading import load_config
from bayplan.framework.errors import PluginError
from bayplan.framework.registry import Registry
from bayplan.plugins.intree import default_registry
from bayplan.sim.recording.entries import NewConfiguration, RecordingHeader
from bayplan.sim.recording.file import PlacedEntry, RecordingError, read_recording

__all__ = ["RecordedSession", "first_header", "recorded_settings", "sessions"]


@dataclass(kw_only=True)
class RecordedSession:
    """A header and what follows it, up to the next header."""

    source: str
    header: RecordingHeader
    entries: Iterator[PlacedEntry]


def sessions(path: Path, *, note: Callable[[str], None] = lambda _: None) -> Iterator[RecordedSession]:
    """The sessions of a file, one after the other: each must be read to its end before the next. Raises
    RecordingError."""
    source = read_recording(path, note=note)
    following: list[RecordingHeader] = []

    def entries() -> Iterator[PlacedEntry]:
        for placed in source:
            if isinstance(placed.entry, RecordingHeader):
                following.append(placed.entry)
                return
            yield placed

    first = next(source)
    assert isinstance(first.entry, RecordingHeader)  # `read_recording` refuses others
    following.append(first.entry)
    while following:
        session = RecordedSession(source=str(path), header=following.pop(), entries=entries())
        yield session
        for _ in session.entries:
            pass


def recorded_settings(header: RecordingHeader | NewConfiguration, *, source: str) -> Settings:
    """The policy of then, with plugins as they are now. Raises SettingsError and RecordingError."""
    registry = default_registry()
    try:
        for spec in header.plugins:
            _load(registry, spec, source)
        return resolve_settings(load_config(header.config, source=source), registry)
    except (ConfigError, PluginError) as error:
        raise SettingsError(str(error).splitlines()) from error


def _load(registry: Registry, spec: str, source: str) -> None:
    try:
        registry.load(spec)
    except PluginError as error:
        problem = f"was recorded with a plugin: {error.subject}: {'; '.join(map(str, error.problems))}"
        hint = "hint: put it back where it was, or install its package; no decision comes out again without it"
        raise RecordingError(f"{problem}\n{hint}", source=source) from error


def first_header(path: Path) -> RecordingHeader:
    """Who began the recording. Raises RecordingError."""
    return next(sessions(path)).header
