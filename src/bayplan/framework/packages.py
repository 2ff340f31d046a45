"""Plugin packages of several modules, from a folder, a zip or a wheel, imported anew each time they are loaded.

    --plugin license-fit            a project: pyproject.toml, and the package under src/ or beside it
    --plugin src/license_fit        the package itself; src/license_fit/__init__.py means the same
    --plugin license_fit.zip        a zip of it, or a wheel

The plugins are those that the project's entry points name (group `bayplan.plugins`); without any, the plugin classes
that the package's `__init__.py` defines or imports from its own modules. A package keeps its name, so that absolute and
relative imports of its modules work, and `sys.path` is left alone. What else an archive holds is imported from there if
it is not installed. A version that fails to load leaves the one before in place.
"""

from __future__ import annotations

import ast
import configparser
import contextlib
import importlib
import importlib.util
import inspect
import linecache
import os
import sys
import tomllib
import zipfile
import zipimport
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from bayplan.framework.errors import PluginLoadError
from bayplan.framework.plugin import Plugin

__all__ = ["ARCHIVES", "ENTRY_POINT_GROUP", "Package", "find_package"]

ARCHIVES = (".zip", ".whl")
ENTRY_POINT_GROUP = "bayplan.plugins"
_INIT = "__init__.py"


@dataclass(frozen=True, kw_only=True)
class Package:
    """Where a plugin package is, and which of its classes are plugins."""

    name: str
    root: Path
    """The folder or archive that holds it."""
    entry_points: dict[str, str]
    """Plugin name to `module:Class`, where the project names them."""
    module: str
    """What is imported: the package, or one module of it."""
    vendored: tuple[str, ...] = ()
    """Further packages and modules of an archive."""

    @property
    def is_archive(self) -> bool:
        return self.root.suffix in ARCHIVES

    @property
    def files(self) -> list[Path]:
        """The files that it is made of."""
        if self.is_archive:
            return [self.root]
        folder = self.root / self.name
        found = folder.rglob("*") if folder.is_dir() else [folder.with_suffix(".py")]
        return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)

    def modules(self) -> list[tuple[ModuleType, str]]:
        """(module, name of a class in it, or nothing for all) of every place with plugins, imported anew."""
        places = [value.partition(":") for value in self.entry_points.values()]
        wanted = [(module, name) for module, _, name in places] or [(self.module, "")]
        with _replaced(self):
            return [(importlib.import_module(module), name) for module, name in wanted]

    def plugin_classes(self, module: ModuleType) -> list[type[Plugin]]:
        """The plugin classes that a module defines or takes from its own package."""
        inside = (self.name, f"{self.name}.")
        found = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Plugin)]
        if self.module != self.name:
            return [cls for cls in found if cls.__module__ == self.module]
        return [cls for cls in found if cls.__module__ == inside[0] or cls.__module__.startswith(inside[1])]


def find_package(spec: str) -> Package | None:
    """The package that a folder, an archive or one of its files stands for; None for a file by itself, and for what is
    no path at all. Raises `PluginLoadError`."""
    path = Path(spec).expanduser()
    if path.is_file() and path.suffix in ARCHIVES:
        return _in_archive(path)
    if path.is_dir():
        return _of_folder(path.resolve())
    if path.suffix == ".py" and path.is_file() and (path.name == _INIT or _imports_relatively(path)):
        return _of_module(path.resolve())
    return None


def _imports_relatively(path: Path) -> bool:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return False  # loading the file gives the better message
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(tree))


def _of_folder(folder: Path) -> Package:
    if (folder / _INIT).is_file():
        return _of_module(folder / _INIT)
    for root in (folder / "src", folder):
        names = sorted(path.parent.name for path in root.glob(f"*/{_INIT}") if path.parent.name != "tests")
        points = _project_entry_points(folder / "pyproject.toml")
        named = {value.partition(":")[0].partition(".")[0] for value in points.values()} & set(names)
        choice = sorted(named) or names
        if len(choice) == 1:
            return Package(name=choice[0], root=root, entry_points=points if named else {}, module=choice[0])
        if choice:
            raise PluginLoadError(str(folder), f"holds several packages ({', '.join(choice)}); name the folder of one")
    raise PluginLoadError(str(folder), f"holds no Python package; expected `{_INIT}`, or `src/NAME/{_INIT}`")


def _project_entry_points(path: Path) -> dict[str, str]:
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise PluginLoadError(str(path), f"cannot be read: {error}") from None
    points = project.get("entry-points", {}).get(ENTRY_POINT_GROUP, {})
    return {str(name): str(value) for name, value in points.items()}


def _of_module(path: Path) -> Package:
    """The package around a file, up to the first folder that is no package."""
    root, names = path.parent, [] if path.name == _INIT else [path.stem]
    while (root / _INIT).is_file():
        names.insert(0, root.name)
        root = root.parent
    if len(names) < 2 and path.name != _INIT:
        raise PluginLoadError(
            str(path), f"imports its neighbours with a dot; make its folder a package with an `{_INIT}`"
        )
    return Package(name=names[0], root=root, entry_points={}, module=".".join(names))


def _in_archive(path: Path) -> Package:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            points = [
                _archived_entry_points(archive.read(name).decode(errors="replace"))
                for name in names
                if name.endswith(".dist-info/entry_points.txt")
            ]
    except (OSError, zipfile.BadZipFile) as error:
        raise PluginLoadError(str(path), f"is not a zip: {error}") from None
    tops = sorted({name.split("/")[0] for name in names if name.endswith(f"/{_INIT}") and name.count("/") == 1})
    tops += sorted(name[:-3] for name in names if "/" not in name and name.endswith(".py"))
    named = {key: value for found in points for key, value in found.items()}
    first = sorted({value.partition(":")[0].partition(".")[0] for value in named.values()})
    choice = first or ([path.stem] if path.stem in tops else tops)
    if len(choice) != 1:
        what = f"holds several packages ({', '.join(choice)})" if choice else "holds no Python package"
        raise PluginLoadError(str(path), f"{what}; name the zip after the one with the plugins, or use a wheel")
    others = tuple(top for top in tops if top != choice[0])
    return Package(name=choice[0], root=path.resolve(), entry_points=named, module=choice[0], vendored=others)


def _archived_entry_points(text: str) -> dict[str, str]:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return dict(parser[ENTRY_POINT_GROUP]) if parser.has_section(ENTRY_POINT_GROUP) else {}


@contextlib.contextmanager
def _replaced(package: Package) -> Iterator[None]:
    """Take a package out of `sys.modules` for a fresh import, and put it back if that fails."""
    _refuse_foreign(package)
    before = {name: module for name, module in sys.modules.items() if _is_of(package.name, name)}
    for name in before:
        del sys.modules[name]
    linecache.checkcache()
    _finder.serve(package)
    try:
        yield
    except BaseException:
        for name in [name for name in sys.modules if _is_of(package.name, name)]:
            del sys.modules[name]
        sys.modules.update(before)
        raise


def _is_of(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _refuse_foreign(package: Package) -> None:
    """A package must not take the place of another one, of the standard library or installed, that is in use."""
    known = sys.modules.get(package.name)
    if known is None and package.name not in sys.stdlib_module_names:
        return
    place = str(getattr(known, "__file__", "") or "") if known is not None else "the standard library"
    if known is None or not place or not Path(place).resolve().is_relative_to(package.root.resolve()):
        if known is not None and _finder.has_served(package.name):
            return  # the same package from another place, as after a move
        raise PluginLoadError(
            str(package.root / package.name), f"another module is called `{package.name}` ({place}); rename this one"
        )


class _FreshLoader(SourceFileLoader):
    """Compiles from the text, so that no `.pyc` of a moment ago is reused and none is written."""

    def path_stats(self, path: str) -> Any:
        raise OSError("not cached")


class _PackageFinder:
    """Finds the modules of packages that were loaded from paths, and nothing else."""

    def __init__(self) -> None:
        self._roots: dict[str, Path] = {}

    def has_served(self, name: str) -> bool:
        return name in self._roots

    def serve(self, package: Package) -> None:
        missing = [name for name in package.vendored if name not in self._roots and not _is_importable(name)]
        for name in (package.name, *missing):
            self._roots[name] = package.root
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        importlib.invalidate_caches()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root = self._roots.get(name.partition(".")[0])
        if root is None:
            return None
        places = list(path) if path is not None else [str(root)]
        return next((spec for place in places for spec in _specs(name, place)), None)

    def invalidate_caches(self) -> None:
        """Nothing is kept."""


def _is_importable(name: str) -> bool:
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _specs(name: str, place: str) -> Iterator[ModuleSpec]:
    if os.path.isdir(place):
        finder = FileFinder(place, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FreshLoader, [".py"]))
        found = finder.find_spec(name)
    else:
        importer = zipimport.zipimporter(place)
        importer.invalidate_caches()
        found = importer.find_spec(name)
    if found is not None:
        yield found


_finder = _PackageFinder()
