"""Plugin classes out of files, packages, modules and what is installed; failures as one sentence with file and line.

A file is compiled from its text each time, under a module name of its own: a reload gives new classes, no `.pyc` of a
moment ago is reused, and neither `sys.path` nor a module of the same name is touched.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import linecache
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from bayplan.api.suggest import did_you_mean
from bayplan.framework.errors import PluginLoadError
from bayplan.framework.packages import ENTRY_POINT_GROUP, Package
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, extends

__all__ = ["class_at_path", "classes_in_file", "classes_in_package", "installed_plugins", "load_entry_point"]

_numbers = itertools.count(1)


def classes_in_file(path: str | Path) -> list[type[Plugin]]:
    """The plugin classes that a file defines, in order. Classes it only imports do not count.

    A class whose name starts with `_`, and a base without extension points that another class of the file extends,
    are left out: they are there to be inherited from.
    """
    path = Path(path)
    module = _module_from(path)
    classes = _meant([value for value in vars(module).values() if _is_defined_in(value, module)])
    if not classes:
        raise PluginLoadError(str(path), "defines no plugin; write `class MyPlugin(Plugin): ...` in it")
    return classes


def classes_in_package(package: Package) -> list[type[Plugin]]:
    """The plugin classes of a package: those that its entry points name, or all of the module that stands for it."""
    try:
        modules = package.modules()
    except PluginLoadError:
        raise
    except (Exception, SystemExit) as error:
        raise _module_failure(error, str(package.root / package.name)) from error
    classes: list[type[Plugin]] = []
    for module, name in modules:
        classes += [_member(module, name)] if name else _meant(package.plugin_classes(module))
    if not classes:
        hint = "import them in its `__init__.py`, or name one as `module:Class`"
        raise PluginLoadError(str(package.root / package.name), f"has no plugins in sight; {hint}")
    return classes


def _meant(defined: list[type[Plugin]]) -> list[type[Plugin]]:
    """Of plugin classes those that are not there to be inherited from."""
    return [cls for cls in dict.fromkeys(defined) if not cls.__name__.startswith("_") and not _is_base(cls, defined)]


def _is_defined_in(value: Any, module: ModuleType) -> bool:
    return isinstance(value, type) and issubclass(value, Plugin) and value.__module__ == module.__name__


def _is_base(cls: type[Plugin], others: list[Any]) -> bool:
    is_extended = any(other is not cls and issubclass(other, cls) for other in others)
    return is_extended and not any(extends(cls, point) for point in ExtensionPoint)


def _module_from(path: Path) -> ModuleType:
    code = _compiled(path)
    module = ModuleType(f"bayplan_plugin_file_{next(_numbers)}_{path.stem}")
    module.__file__ = str(path)
    module.__spec__ = ModuleSpec(module.__name__, None, origin=str(path))
    sys.modules[module.__name__] = module  # annotations are looked up through it
    linecache.checkcache(str(path))
    try:
        exec(code, vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise PluginLoadError(*_located(error, str(path))) from error
    return module


def _compiled(path: Path) -> Any:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise PluginLoadError(str(path), f"cannot be read: {error.strerror or error}") from None
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        shown = f": `{error.text.strip()}`" if error.text else ""
        raise PluginLoadError(f"{path}:{error.lineno or 1}", f"{error.msg}{shown}") from None
    except ValueError as error:
        raise PluginLoadError(str(path), f"is not Python source: {error}") from None


def _located(error: BaseException, path: str) -> tuple[str, str]:
    """(file:line, what happened): the last line of the file that was running, not the depths it called into."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f"{path}:{lines[-1]}" if lines and lines[-1] else path
    if isinstance(error, SyntaxError):
        where = f"{error.filename or path}:{error.lineno or 1}"
        return where, error.msg
    text = " ".join(str(error).split())[:300]
    hint = _import_hint(error)
    return where, f"{type(error).__name__}: {text}{hint}" if text else type(error).__name__


def _import_hint(error: BaseException) -> str:
    if not isinstance(error, ModuleNotFoundError):
        return ""
    return "; install it, or make the plugin a package and name it as `module:Class`"


def class_at_path(path: str) -> Any:
    """What `module:Class` names. Whether it is a plugin is for the registry to check."""
    module_name, separator, class_name = path.partition(":")
    if not separator or not module_name or not class_name:
        raise PluginLoadError(f"`{path}`", "is not a plugin path; write `module:Class`, as in `my_scores:ByLabel`")
    return _member(_imported(module_name), class_name)


def _member(module: ModuleType, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            hint = did_you_mean(part, _plugin_names(module))
            what = f"module `{module.__name__}` has no `{name}`{hint and '; ' + hint}"
            raise PluginLoadError(f"`{module.__name__}:{name}`", what)
        value = getattr(value, part)
    return value


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise PluginLoadError(
                f"`{name}`", f"there is no module `{error.name}`; is its package installed?"
            ) from None
        raise _module_failure(error, name) from error
    except (Exception, SystemExit) as error:
        raise _module_failure(error, name) from error


def _module_failure(error: BaseException, name: str) -> PluginLoadError:
    """A module that fails while it runs, located at the last line outside the import machinery."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    outside = [frame for frame in frames if frame.filename != __file__]
    return PluginLoadError(*_located(error, outside[0].filename if outside else name))


def _plugin_names(module: ModuleType) -> Iterator[str]:
    return (name for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, Plugin))


def installed_plugins() -> dict[str, list[EntryPoint]]:
    """The entry points of installed packages by plugin name. Nothing is imported."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        known = found.setdefault(point.name, [])
        if all(point.value != other.value for other in known):
            known.append(point)
    return found


def load_entry_point(points: list[EntryPoint]) -> Any:
    if len(points) > 1:
        values = " and ".join(f"`{point.value}`" for point in points)
        raise PluginLoadError(f"plugin `{points[0].name}`", f"is installed twice, as {values}; uninstall one")
    return class_at_path(points[0].value.split("[")[0].strip())
