"""The plugins that configurations may name: added in code, read from a file or package, found by path, or installed.

    registry = default_registry()
    registry.from_file("score_by_label.py")
    registry.get("ScoreByLabel")

Every class is checked when it registers. Installed packages (entry-point group `bayplan.plugins`) are looked up by name
and imported only when a configuration names them. The registry builds no plugin; the runtime does, with arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TypeVar

from bayplan.api.suggest import did_you_mean
from bayplan.framework.checks import check_plugin
from bayplan.framework.errors import PluginError, PluginLoadError, UnknownPlugin
from bayplan.framework.loading import (
    class_at_path,
    classes_in_file,
    classes_in_package,
    installed_plugins,
    load_entry_point,
)
from bayplan.framework.packages import find_package
from bayplan.framework.plugin import Plugin

__all__ = ["Registry"]

P = TypeVar("P", bound=type[Plugin])


class Registry:
    """Plugin classes by name. What was added wins over what is installed."""

    def __init__(
        self,
        classes: Iterable[type[Plugin]] = (),
        *,
        use_installed: bool = True,
        shipped: Iterable[EntryPoint] = (),
    ) -> None:
        """`shipped` are looked up by name like installed plugins, which win over them."""
        self._classes: dict[str, type[Plugin]] = {}
        self._origins: dict[str, str] = {}
        self._defaults: dict[str, int] = {}
        self._use_installed = use_installed
        self._shipped = tuple(shipped)
        self._installed: dict[str, list[EntryPoint]] | None = None
        for cls in classes:
            self.add(cls)

    def add(self, cls: P, *, origin: str = "", replace: bool = False) -> P:
        """Register one class and return it, so that it works as a decorator. Raises `PluginError`.

        `replace` lets it take the place of a plugin of the same name, as a reload does.
        """
        check_plugin(cls)
        origin = origin or f"{cls.__module__}:{cls.__qualname__}"
        known = self._classes.get(cls.name)
        if known is not None and known is not cls and not replace:
            raise PluginError(
                f"plugin `{cls.name}`",
                (f"is registered twice, from {self._origins[cls.name]} and from {origin}; rename one (`name = ...`)",),
            )
        self._classes[cls.name] = cls
        self._origins[cls.name] = origin
        weight = vars(cls).get("default_weight")  # not inherited: a subclass under another name is another plugin
        if weight is not None:
            self._defaults.setdefault(cls.name, weight)
        return cls

    def from_file(self, path: str | Path, *, replace: bool = False) -> list[type[Plugin]]:
        """Register every plugin class that a Python file defines. All of them, or none if one is wrong."""
        return self._add_all(classes_in_file(path), str(path), replace=replace)

    def _add_all(self, classes: list[type[Plugin]], origin: str, *, replace: bool) -> list[type[Plugin]]:
        staged = self.copy()
        names: set[str] = set()
        for cls in classes:
            staged.add(cls, origin=origin, replace=replace and cls.name not in names)
            names.add(cls.name)
        self._take(staged)
        return classes

    def from_path(self, path: str, *, replace: bool = False) -> type[Plugin]:
        """Register the class that `module:Class` names."""
        return self.add(check_plugin(class_at_path(path)), origin=path, replace=replace)

    def load(self, spec: str, *, replace: bool = False) -> list[type[Plugin]]:
        """What a command line names: a file, a folder, a zip or wheel, `module:Class`, or an installed plugin."""
        package = find_package(spec)
        if package is not None:
            return self._add_all(classes_in_package(package), spec, replace=replace)
        if spec.endswith(".py") or (Path(spec).is_file() and ":" not in spec):
            return self.from_file(spec, replace=replace)
        if ":" not in spec:
            return [self._named(spec)]
        return [self.from_path(spec, replace=replace)]

    def _named(self, name: str) -> type[Plugin]:
        try:
            return self.get(name)
        except UnknownPlugin as error:
            hint = error.hint if error.hint.startswith("did") else "write FILE.py, FOLDER or `module:Class`"
            raise PluginLoadError(f"`{name}`", f"is no file, no folder and no installed plugin; {hint}") from None

    def get(self, name: str) -> type[Plugin]:
        """The class of that name. Raises `UnknownPlugin` with the name that was probably meant."""
        found = self._classes.get(name)
        if found is not None:
            return found
        points = self._points().get(name)
        if points is None:
            raise UnknownPlugin(name, did_you_mean(name, self.names()))
        return self._add_installed(name, points)

    def _add_installed(self, name: str, points: list[EntryPoint]) -> type[Plugin]:
        cls = check_plugin(load_entry_point(points))
        if cls.name != name:
            raise PluginError(
                f"plugin `{name}`",
                (
                    f"is installed under that name, but the class `{points[0].value}` calls itself `{cls.name}`; "
                    "make the entry point's name the plugin's name",
                ),
            )
        return self.add(cls, origin=points[0].value)

    def names(self) -> list[str]:
        """Every name that `get` answers, sorted."""
        return sorted({*self._classes, *self._points()})

    @property
    def defaults(self) -> tuple[tuple[str, int], ...]:
        """Name and weight of each plugin of the default profile, in the order of registration.

        A plugin that replaces one of them keeps its place and weight.
        """
        return tuple(self._defaults.items())

    def origin_of(self, name: str) -> str:
        """Where a registered plugin came from; empty for names that were not registered."""
        return self._origins.get(name, "")

    def copy(self) -> Registry:
        """A registry to change on the side, as a reload does before it swaps."""
        twin = Registry(use_installed=self._use_installed, shipped=self._shipped)
        twin._take(self)
        twin._installed = self._installed
        return twin

    def _take(self, other: Registry) -> None:
        self._classes, self._origins = dict(other._classes), dict(other._origins)
        self._defaults = dict(other._defaults)

    def _points(self) -> dict[str, list[EntryPoint]]:
        if self._installed is None:
            shipped = {point.name: [point] for point in self._shipped}
            self._installed = shipped | (installed_plugins() if self._use_installed else {})
        return self._installed

    def __contains__(self, name: object) -> bool:
        return name in self._classes or name in self._points()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} plugins>"
