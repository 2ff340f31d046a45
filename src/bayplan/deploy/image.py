"""A Dockerfile that adds plugin projects to an image with bayplan, for packages that depend on others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bayplan import __version__
from bayplan.app.settings import SettingsError
from bayplan.framework.errors import PluginError
from bayplan.framework.packages import find_package

__all__ = ["dockerfile"]

_HEAD = """\
# An image with these plugins, on the one with bayplan. In this folder:
#   docker build -t {name}:0.1.0 .
#   bayplan render manifests --image {name}:0.1.0 --config scheduler.yaml | kubectl apply -f -
FROM {base}
USER root
"""
_PROJECT = """\
COPY {source} /source/{name}
RUN /opt/bayplan/bin/pip install --no-cache-dir --disable-pip-version-check bayplan=={version} /source/{name} \\
    && rm -rf /source/{name}
"""
_TAIL = """\
USER 65532:65532
"""


def dockerfile(specs: Sequence[str], *, base: str, context: Path) -> str:
    """The Dockerfile, for a build in the folder `context`. Raises `SettingsError`."""
    if not specs:
        raise SettingsError(["--plugin: name the folder of a plugin project"])
    projects = [_project(spec) for spec in specs]
    parts = [_HEAD.format(base=base, name=projects[0].name)]
    for project in projects:
        source = os.path.relpath(project, context)
        if source.startswith(".."):
            raise SettingsError([f"{project}: is outside of {context}, where the image is built; run this above it"])
        parts.append(_PROJECT.format(source=source, name=project.name, version=__version__))
    return "".join([*parts, _TAIL])


def _project(spec: str) -> Path:
    """The folder with the pyproject.toml of a package, or a wheel."""
    try:
        package = find_package(spec)
    except PluginError as error:
        raise SettingsError([str(error)]) from error
    if package is None:
        hint = "a file needs no image of its own, `bayplan render manifests` carries it"
        raise SettingsError([f"`{spec}`: is no folder of a plugin project; {hint}"])
    if package.is_archive:
        return package.root
    for folder in (package.root, package.root.parent):
        if (folder / "pyproject.toml").is_file():
            return folder
    raise SettingsError([f"{package.root}: has no pyproject.toml; `bayplan new` writes one"])
