"""How plugins reach a cluster: files and zipped packages in the ConfigMap, archives on a volume, the rest in the image.

A file is carried as it is, a package of several modules as a zip, which the scheduler loads like the folder. Both need
no image of one's own. A ConfigMap holds 1 MiB; what does not fit goes onto a volume or into an image.
"""

from __future__ import annotations

import io
import tomllib
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bayplan.app.settings import SettingsError
from bayplan.framework.errors import PluginError
from bayplan.framework.packages import Package, find_package

__all__ = ["CONFIG_MAP_BYTES", "PluginFiles", "collect_plugins", "project_dependencies", "zipped"]

CONFIG_MAP_BYTES = 2**20
"""The API server's limit of all values of a ConfigMap together."""
_THE_BEGINNING = (1980, 1, 1, 0, 0, 0)
_LEFT_OUT = ("__pycache__", "tests")


@dataclass(frozen=True, kw_only=True)
class PluginFiles:
    """What a deployment carries of its plugins."""

    texts: dict[str, str] = field(default_factory=dict)
    """File name to source."""
    archives: dict[str, bytes] = field(default_factory=dict)
    """File name to a zip or wheel."""
    modules: tuple[str, ...] = ()
    """`module:Class`, and names of installed plugins: what must be in the image."""
    missing_dependencies: tuple[str, ...] = ()
    """What the projects of zipped packages depend on besides bayplan; a zip does not hold it."""

    @property
    def names(self) -> list[str]:
        return sorted([*self.texts, *self.archives])

    @property
    def size_bytes(self) -> int:
        """What a ConfigMap counts."""
        return sum(len(text.encode()) for text in self.texts.values()) + sum(map(len, self.archives.values()))


def collect_plugins(specs: Sequence[str]) -> PluginFiles:
    """Read what the plugins of a command line are made of. Raises `SettingsError`."""
    texts: dict[str, str] = {}
    archives: dict[str, bytes] = {}
    modules, dependencies = [], []
    for spec in specs:
        package = _package(spec)
        if package is not None:
            name = package.root.name if package.is_archive else f"{package.name}.zip"
            _refuse_twice(spec, name, [*texts, *archives])
            archives[name] = package.root.read_bytes() if package.is_archive else zipped(package)
            dependencies += [] if package.is_archive else project_dependencies(package)
        elif spec.endswith(".py"):
            _refuse_twice(spec, Path(spec).name, [*texts, *archives])
            texts[Path(spec).name] = Path(spec).read_text(encoding="utf-8")
        else:
            modules.append(spec)
    return PluginFiles(texts=texts, archives=archives, modules=tuple(modules), missing_dependencies=tuple(dependencies))


def _package(spec: str) -> Package | None:
    try:
        return find_package(spec)
    except PluginError as error:
        raise SettingsError([str(error)]) from error


def _refuse_twice(spec: str, name: str, known: Iterable[str]) -> None:
    if name in known:
        raise SettingsError([f"{spec}: another plugin file is called `{name}` too; rename one of them"])


def zipped(package: Package) -> bytes:
    """The package as a zip, the same bytes for the same files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in package.files:
            inside = path.relative_to(package.root)
            if not any(part in _LEFT_OUT for part in inside.parts):
                entry = zipfile.ZipInfo(inside.as_posix(), _THE_BEGINNING)
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return written.getvalue()


def project_dependencies(package: Package) -> list[str]:
    """What the package's pyproject.toml asks for besides bayplan."""
    for folder in (package.root, package.root.parent):
        project = folder / "pyproject.toml"
        if project.is_file():
            try:
                declared = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("dependencies", [])
            except ValueError as error:
                raise SettingsError([f"{project}: cannot be read: {error}"]) from error
            return [each for each in map(str, declared) if not each.lower().startswith("bayplan")]
    return []
