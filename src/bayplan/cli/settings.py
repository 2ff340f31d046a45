"""The configuration and the plugins that a command line names (`--config`, `--plugin`), loaded together.

Without a configuration, plugins that were named are enabled wherever they have something to say, as `multiPoint` does;
with one, the configuration alone decides, and a plugin that it leaves idle is mentioned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.cli.output import note
from bayplan.config import SchedulerConfig, load_config, load_config_file
from bayplan.config.model import API_VERSION
from bayplan.framework.registry import Registry
from bayplan.plugins.intree import default_registry

__all__ = ["Settings", "load_settings"]


class Settings(NamedTuple):
    config: SchedulerConfig
    registry: Registry


def load_settings(config: str | None, plugins: Sequence[str]) -> Settings:
    """Raises `ConfigError` or `PluginError`."""
    registry = default_registry()
    names = [cls.name for spec in plugins for cls in registry.load(spec)]
    if config is None:
        return Settings(_default_with(names), registry)
    loaded = load_config_file(config)
    for problem in loaded.warnings:
        note(f"{config}: {problem}")
    _mention_idle(loaded, names, config)
    return Settings(loaded, registry)


def _default_with(names: Sequence[str]) -> SchedulerConfig:
    enabled = [{"name": name} for name in names]
    return load_config(
        {
            "apiVersion": API_VERSION,
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
        },
        source="default configuration",
    )


def _mention_idle(config: SchedulerConfig, names: Sequence[str], source: str) -> None:
    enabled = {
        plugin.name
        for profile in config.profiles
        for plugin_set in profile.plugins.sets().values()
        for plugin in plugin_set.enabled
    }
    for name in names:
        if name not in enabled:
            note(f"plugin `{name}` is loaded, but no profile in {source} enables it")
