"""Plugin packages of several modules: what stands for one, how it is imported, and what is said when it is not."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.framework.errors import PluginLoadError
from bayplan.framework.packages import find_package
from bayplan.framework.promises import Depends
from bayplan.framework.reading import reading_of
from bayplan.framework.registry import Registry

INIT = """\
from license_fit.plugin import LicenseFit
from .other import Second

__all__ = ["LicenseFit"]
"""
PLUGIN = """\
from bayplan.framework import Plugin
from .pools import points_of


class LicenseFit(Plugin):
    def score(self, state, pod, node):
        return points_of(node)
"""
POOLS = """\
def points_of(node):
    return {answer}
"""
OTHER = """\
from bayplan.framework import Plugin


class Second(Plugin):
    def score(self, state, pod, node):
        return 100 if "disk" in node.labels else 0
"""
PROJECT = """\
[project]
name = "license-fit"
[project.entry-points."bayplan.plugins"]
LicenseFit = "license_fit.plugin:LicenseFit"
"""


@pytest.fixture
def registry() -> Iterator[Registry]:
    before = set(sys.modules)
    yield Registry(use_installed=False)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("license_fit", "vendored_license"):
            del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "license-fit" / "src" / "license_fit"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    (package / "plugin.py").write_text(PLUGIN)
    (package / "pools.py").write_text(POOLS.format(answer=1))
    (package / "other.py").write_text(OTHER)
    return tmp_path / "license-fit"


def names(registry: Registry, spec: Path | str) -> list[str]:
    return [cls.name for cls in registry.load(str(spec), replace=True)]


@pytest.mark.parametrize("place", [".", "src", "src/license_fit", "src/license_fit/__init__.py"])
def test_a_folder_of_the_package_or_around_it_stands_for_the_package(
    registry: Registry, project: Path, place: str
) -> None:
    assert names(registry, project / place) == ["LicenseFit", "Second"]


def test_entry_points_of_the_project_say_which_classes_are_plugins(registry: Registry, project: Path) -> None:
    (project / "pyproject.toml").write_text(PROJECT)

    assert names(registry, project) == ["LicenseFit"]


def test_one_module_of_a_package_may_be_named_as_a_file(registry: Registry, project: Path) -> None:
    assert names(registry, project / "src/license_fit/plugin.py") == ["LicenseFit"]
    assert "license_fit.pools" in sys.modules


def test_a_reload_takes_changed_neighbours_at_once(registry: Registry, project: Path) -> None:
    (first, _) = registry.load(str(project))
    (project / "src/license_fit/pools.py").write_text(POOLS.format(answer=2))
    (second, _) = registry.load(str(project), replace=True)

    assert (first().score(None, None, None), second().score(None, None, None)) == (1, 2)  # type: ignore[arg-type]


def test_a_version_that_fails_leaves_the_one_before_in_place(registry: Registry, project: Path) -> None:
    registry.load(str(project))
    good = sys.modules["license_fit.pools"]
    (project / "src/license_fit/pools.py").write_text("def points_of(:\n")

    with pytest.raises(PluginLoadError, match=r"pools\.py:1"):
        registry.load(str(project), replace=True)

    assert sys.modules["license_fit.pools"] is good


def test_loading_leaves_the_import_path_alone_and_writes_no_bytecode(registry: Registry, project: Path) -> None:
    before = list(sys.path)
    registry.load(str(project))

    assert sys.path == before
    assert not list(project.rglob("*.pyc"))


def zipped(project: Path, name: str, extra: dict[str, str] | None = None) -> Path:
    target = project.parent / name
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted((project / "src").rglob("*.py")):
            archive.write(path, path.relative_to(project / "src"))
        for inside, text in (extra or {}).items():
            archive.writestr(inside, text)
    return target


def test_a_zip_holds_the_package_and_what_it_needs(registry: Registry, project: Path) -> None:
    (project / "src/license_fit/pools.py").write_text("from vendored_license import points_of\n")
    extra = {"vendored_license/__init__.py": POOLS.format(answer=7), "json/__init__.py": "raise SystemExit"}
    archive = zipped(project, "license_fit.zip", extra)

    (fit, _) = registry.load(str(archive))

    assert fit().score(None, None, None) == 7  # type: ignore[arg-type]


def test_a_wheel_names_its_plugins(registry: Registry, project: Path) -> None:
    points = "[console_scripts]\nx = y:z\n[bayplan.plugins]\nLicenseFit = license_fit.plugin:LicenseFit\n"
    wheel = zipped(project, "license_fit-1.0-py3-none-any.whl", {"license_fit-1.0.dist-info/entry_points.txt": points})

    assert names(registry, wheel) == ["LicenseFit"]


def test_what_a_plugin_depends_on_is_derived_from_a_zip_too(registry: Registry, project: Path) -> None:
    (_, second) = registry.load(str(zipped(project, "license_fit.zip")))

    assert reading_of(second, "score").depends is Depends.NODE


def test_an_installed_or_shipped_plugin_is_named_by_its_name() -> None:
    from bayplan.plugins.intree import default_registry

    assert [cls.name for cls in default_registry().load("Coscheduling")] == ["Coscheduling"]


@pytest.mark.parametrize(
    ("files", "spec", "expected"),
    [
        ({"a.txt": ""}, ".", "holds no Python package; expected `__init__.py`"),
        ({"one/__init__.py": "", "two/__init__.py": ""}, ".", "holds several packages (one, two)"),
        ({"one/__init__.py": "import nothing_of_the_kind\n"}, "one", "there is no module|install it"),
        ({"one/__init__.py": "x = 1\n"}, "one", "has no plugins in sight; import them in its `__init__.py`"),
        ({"lonely.py": "from .neighbour import x\n"}, "lonely.py", "make its folder a package"),
        ({"json/__init__.py": ""}, "json", "another module is called `json`"),
        ({"broken.zip": "no zip"}, "broken.zip", "is not a zip"),
        ({"one/__init__.py": "", "pyproject.toml": "= 1"}, ".", "pyproject.toml: cannot be read"),
        ({}, "NoSuchPlugin", "is no file, no folder and no installed plugin; write FILE.py, FOLDER"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    registry: Registry,
    tmp_path: Path,
    files: dict[str, str],
    spec: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    with pytest.raises(PluginLoadError) as caught:
        registry.load(spec)

    assert any(part in str(caught.value) for part in expected.split("|"))
    assert "\n" not in str(caught.value)


def test_the_files_of_a_package_are_known_for_a_reload_on_save(project: Path) -> None:
    package = find_package(str(project))

    assert package is not None
    assert [path.name for path in package.files] == ["__init__.py", "other.py", "plugin.py", "pools.py"]
