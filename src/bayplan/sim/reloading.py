"""Reload on save: watch the files of a configuration and its plugins, and apply a new version that loads.

A version that does not load is reported once; the last good one stays in use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bayplan.app.settings import Settings, SettingsError, load_settings
from bayplan.framework.errors import PluginLoadError
from bayplan.framework.packages import Package, find_package
from bayplan.observe.clock import Clock

__all__ = ["ReloadReport", "Reloader"]

ReloadReport = Callable[[str, Sequence[str]], None]
"""Called with what happened and the problems, which are empty when the new version is in use."""

_LOOK_EVERY_SECONDS = 0.2


class Reloader:
    def __init__(
        self,
        config_path: Path | None,
        plugins: Sequence[str],
        *,
        put_to_work: Callable[[Settings], None],
        report: ReloadReport,
        clock: Clock,
        enable: bool = True,
    ) -> None:
        self._config_path = config_path
        self._plugins = plugins
        self._put_to_work = put_to_work
        self._report = report
        self._clock = clock
        self._enable = enable
        self._sources = [_source(spec) for spec in plugins]
        self._seen = self._stamps()

    async def run(self) -> None:
        """Poll the files until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_EVERY_SECONDS)
            stamps = self._stamps()
            if stamps != self._seen:
                self._seen = stamps
                self.reload()

    def reload(self) -> bool:
        """Load everything again; True when the new version is in use."""
        self._sources = [_source(spec) for spec in self._plugins]
        given = [Path(each) for each in (*self._plugins, self._config_path) if each]
        names = ", ".join(each.name or each.absolute().name for each in given)
        try:
            self._put_to_work(load_settings(self._config_path, self._plugins, enable=self._enable))
        except SettingsError as error:
            self._report(f"{names} did not load; the last good version stays in use", error.problems)
            return False
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            self._report(f"{names} could not be applied; the last good version stays in use", [problem])
            return False
        self._report(f"reloaded {names}", ())
        return True

    def _stamps(self) -> list[tuple[str, int, int]]:
        """Of all files, those of packages looked up anew: they may gain and lose modules."""
        files = [file for source in self._sources for file in (source.files if isinstance(source, Package) else source)]
        return [(str(file), *_stamp(file)) for file in (*files, self._config_path) if file]


def _source(spec: str) -> Package | list[Path]:
    """The package that a plugin stands for, or the file; nothing for `module:Class`."""
    try:
        found = find_package(spec)
    except PluginLoadError:
        return [Path(spec)]
    return found if found is not None else [Path(spec)] if spec.endswith(".py") else []


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
