"""Configurations and plugins that a command line names."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cli.settings import load_settings
from bayplan.config import ConfigError, resolve_profiles
from bayplan.framework.errors import PluginError
from bayplan.framework.points import ExtensionPoint

PLUGIN = """\
from bayplan.framework import Plugin

class ByName(Plugin):
    def score(self, state, pod, node):
        return len(node.name)
"""
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_without_anything_the_default_profile_runs() -> None:
    settings = load_settings(None, ())

    assert [profile.scheduler_name for profile in settings.config.profiles] == ["default-scheduler"]


def test_a_plugin_without_a_configuration_is_enabled(folder: Path) -> None:
    Path("by_name.py").write_text(PLUGIN)
    settings = load_settings(None, ["by_name.py"])
    profile = resolve_profiles(settings.config, settings.registry)[0]

    assert "ByName" in profile.points[ExtensionPoint.SCORE]
    assert "NodeResourcesFit" in profile.points[ExtensionPoint.SCORE]


def test_a_plugin_that_the_configuration_leaves_idle_is_mentioned(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("by_name.py").write_text(PLUGIN)
    Path("c.yaml").write_text(CONFIG)
    load_settings("c.yaml", ["by_name.py"])

    assert "plugin `ByName` is loaded, but no profile in c.yaml enables it" in capsys.readouterr().err


def test_an_enabled_plugin_is_not_mentioned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("by_name.py").write_text(PLUGIN)
    Path("c.yaml").write_text(CONFIG + "profiles: [{plugins: {score: {enabled: [{name: ByName}]}}}]\n")
    load_settings("c.yaml", ["by_name.py"])

    assert capsys.readouterr().err == ""


def test_warnings_of_a_configuration_are_notes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.yaml").write_text(CONFIG.replace("/v1", "/v1beta3", 1))
    load_settings("c.yaml", ())

    assert "note: c.yaml: " in capsys.readouterr().err


def test_bad_settings_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError):
        load_settings("missing.yaml", ())
    with pytest.raises(PluginError):
        load_settings(None, ["missing.py"])
