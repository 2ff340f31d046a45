from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bayplan.framework import Plugin
from bayplan.framework.errors import PluginError, PluginLoadError, UnknownPlugin
from bayplan.framework.registry import Registry

GOOD = """\
from bayplan.framework import Plugin, PluginArgs

class ScoreByLabel(Plugin):
    class Args(PluginArgs):
        label_key: str = "score"

    def score(self, state, pod, node):
        return {answer}
"""


class Known(Plugin):
    def filter(self, state: Any, pod: Any, node: Any) -> None: ...


@pytest.fixture
def registry() -> Registry:
    return Registry([Known], use_installed=False)


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_what_is_added_is_found_by_name(registry: Registry) -> None:
    assert registry.get("Known") is Known
    assert "Known" in registry
    assert list(registry) == registry.names() == ["Known"]
    assert len(registry) == 1


def test_add_works_as_a_decorator_and_twice_the_same_is_fine(registry: Registry) -> None:
    assert registry.add(Known) is Known


def test_an_unknown_name_gets_a_suggestion(registry: Registry) -> None:
    with pytest.raises(UnknownPlugin, match="plugin `Knwon`: does not exist; did you mean `Known`"):
        registry.get("Knwon")


def test_two_plugins_of_one_name_are_refused_with_both_places(registry: Registry) -> None:
    other = type("Known", (Plugin,), {"filter": Known.filter})

    with pytest.raises(PluginError, match=r"is registered twice, from .*Known and from here\.py; rename one"):
        registry.add(other, origin="here.py")
    assert registry.add(other, replace=True) is registry.get("Known")


def test_a_wrong_class_does_not_register(registry: Registry) -> None:
    with pytest.raises(PluginError, match="defines no extension point"):
        registry.add(type("Empty", (Plugin,), {}))
    assert registry.names() == ["Known"]


def test_every_plugin_of_a_file_registers(registry: Registry, tmp_path: Path) -> None:
    text = GOOD.format(answer=1) + (
        "\nclass Base(Plugin):\n    pass\n"
        "\nclass _Hidden(Plugin):\n    def score(self, state, pod, node): return 1\n"
        "\nclass Second(Base):\n    name = 'Other'\n    def filter(self, state, pod, node): pass\n"
    )
    classes = registry.from_file(write(tmp_path, text))

    assert [cls.name for cls in classes] == ["ScoreByLabel", "Other"]
    assert registry.names() == ["Known", "Other", "ScoreByLabel"]
    assert registry.origin_of("Other") == str(tmp_path / "mine.py")


def test_a_reload_gives_new_classes_at_once(registry: Registry, tmp_path: Path) -> None:
    first = registry.from_file(write(tmp_path, GOOD.format(answer=1)))[0]
    second = registry.from_file(write(tmp_path, GOOD.format(answer=2)), replace=True)[0]

    assert first is not second
    assert (first().score(0, 0, 0), second().score(0, 0, 0)) == (1, 2)  # type: ignore[attr-defined]
    assert registry.get("ScoreByLabel") is second


def test_loading_a_file_leaves_the_import_path_alone(registry: Registry, tmp_path: Path) -> None:
    before = list(sys.path)
    registry.from_file(write(tmp_path, GOOD.format(answer=1), "json.py"))

    assert sys.path == before
    assert sys.modules["json"].__file__ != str(tmp_path / "json.py")
    assert not (tmp_path / "__pycache__").exists()


def test_a_file_with_one_wrong_class_registers_none(registry: Registry, tmp_path: Path) -> None:
    text = GOOD.format(answer=1) + "\nclass Bad(Plugin):\n    def filter(self, pod): pass\n"

    with pytest.raises(PluginError, match="plugin class `Bad`"):
        registry.from_file(write(tmp_path, text))
    assert registry.names() == ["Known"]


def test_two_classes_of_one_name_in_a_file_are_refused_even_on_reload(registry: Registry, tmp_path: Path) -> None:
    text = GOOD.format(answer=1) + "\nclass B(ScoreByLabel):\n    name = 'ScoreByLabel'\n"

    with pytest.raises(PluginError, match="is registered twice"):
        registry.from_file(write(tmp_path, text), replace=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\ndef f(:\n  pass\n", r"mine\.py:2: invalid syntax: `def f\(:`"),
        ("x = 1\n\ny = nope\n", r"mine\.py:3: NameError: name 'nope' is not defined"),
        ("import no_such_thing\n", r"mine\.py:1: ModuleNotFoundError: .*; install it"),
        ("def f():\n  return int('x')\nf()\n", r"mine\.py:2: ValueError"),
        ("import sys\nsys.exit(3)\n", r"mine\.py:2: SystemExit: 3"),
        ("x = 1\n", r"mine\.py: defines no plugin"),
        ("from bayplan.framework import Plugin\n", r"mine\.py: defines no plugin"),
        ("\0", r"mine\.py"),
    ],
)
def test_a_file_that_does_not_load_is_one_line_with_its_place(
    registry: Registry, tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(PluginLoadError, match=expected) as caught:
        registry.from_file(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(PluginLoadError, match="cannot be read: No such file"):
        registry.from_file(tmp_path / "none.py")


def test_a_path_names_a_class_in_a_module(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, GOOD.format(answer=1), "bayplan_test_scores.py")
    monkeypatch.syspath_prepend(tmp_path)

    assert registry.from_path("bayplan_test_scores:ScoreByLabel") is registry.get("ScoreByLabel")
    with pytest.raises(PluginLoadError, match="has no `ScoreByLable`; did you mean `ScoreByLabel`"):
        registry.from_path("bayplan_test_scores:ScoreByLable")
    with pytest.raises(PluginError, match="is of type"):
        registry.from_path("bayplan_test_scores:__name__")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("plain", "is not a plugin path; write `module:Class`"),
        (":A", "is not a plugin path"),
        ("no_such_module.inner:A", "there is no module `no_such_module`"),
    ],
)
def test_a_wrong_path_says_what_to_write(registry: Registry, path: str, expected: str) -> None:
    with pytest.raises(PluginLoadError, match=expected):
        registry.from_path(path)


def test_a_module_that_fails_is_located(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "x = 1\nraise RuntimeError('no licence')\n", "bayplan_test_broken.py")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginLoadError, match=r"bayplan_test_broken\.py:2: RuntimeError: no licence"):
        registry.from_path("bayplan_test_broken:A")


def test_load_takes_what_a_command_line_names(registry: Registry, tmp_path: Path) -> None:
    (cls,) = registry.load(str(write(tmp_path, GOOD.format(answer=1))))

    assert cls.name == "ScoreByLabel"
    with pytest.raises(PluginLoadError, match="there is no module"):
        registry.load("no_such_module:A")


def install(folder: Path, package: str, *, points: str, text: str) -> None:
    """A package as pip leaves it: a module, and metadata with entry points."""
    write(folder, text, f"{package}.py")
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[bayplan.plugins]\n{points}\n")


def test_installed_plugins_are_imported_when_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path,
        "bayplan_test_installed",
        points="ScoreByLabel = bayplan_test_installed:ScoreByLabel",
        text=GOOD.format(answer=1),
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry()

    assert "ScoreByLabel" in registry.names()
    assert "bayplan_test_installed" not in sys.modules
    assert registry.get("ScoreByLabel").name == "ScoreByLabel"
    assert registry.copy().get("ScoreByLabel") is registry.get("ScoreByLabel")


def test_an_entry_point_must_bear_the_name_of_its_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path, "bayplan_test_renamed", points="Other = bayplan_test_renamed:ScoreByLabel", text=GOOD.format(answer=1)
    )
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginError, match="calls itself `ScoreByLabel`"):
        Registry().get("Other")


def test_a_plugin_that_two_packages_install_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("bayplan_test_one", "bayplan_test_two"):
        install(tmp_path, package, points=f"ScoreByLabel = {package}:ScoreByLabel", text=GOOD.format(answer=1))
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginLoadError, match="is installed twice"):
        Registry().get("ScoreByLabel")


def test_a_copy_changes_on_its_own(registry: Registry, tmp_path: Path) -> None:
    twin = registry.copy()
    twin.from_file(write(tmp_path, GOOD.format(answer=1)))

    assert "ScoreByLabel" in twin
    assert "ScoreByLabel" not in registry
