"""From files and flags to a configuration with its plugins: what `run`, `up` and a reload share.

All problems are collected and raised together as `SettingsError`, a line each, before anything is started or replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bayplan.config.errors import ConfigError
from bayplan.config.loading import default_config, load_config_file
from bayplan.config.model import PluginRef, SchedulerConfig
from bayplan.config.profiles import ResolvedProfile, resolve_profiles
from bayplan.framework.cautions import Caution, state_cautions, unused_points
from bayplan.framework.errors import PluginError
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import defines
from bayplan.framework.registry import Registry
from bayplan.plugins.intree import default_registry

__all__ = ["Settings", "SettingsError", "load_settings", "resolve_settings"]

_SHIPPED = "bayplan.plugins."


class SettingsError(ValueError):
    """Why the configuration or a plugin cannot be used; `problems` has a sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, kw_only=True)
class Settings:
    config: SchedulerConfig
    profiles: tuple[ResolvedProfile, ...]
    registry: Registry
    cautions: tuple[Caution, ...] = ()
    """What looks like a mistake in a plugin of the user's own, or in its place in the configuration."""

    @property
    def plugins(self) -> list[type[Plugin]]:
        """Every plugin class that some profile runs."""
        names = dict.fromkeys(name for profile in self.profiles for name in profile.plugin_names)
        return [self.registry.get(name) for name in names]

    @property
    def watches(self) -> list[type[Any]]:
        """The custom resource types of those plugins."""
        return list(dict.fromkeys(kind for plugin in self.plugins for kind in plugin.watches))

    @property
    def watched(self) -> list[type[Any]]:
        """The custom resources that enabled plugins watch."""
        names = dict.fromkeys(name for profile in self.profiles for name in profile.plugin_names)
        return list(dict.fromkeys(kind for name in names for kind in self.registry.get(name).watches))

    @property
    def plugin_places(self) -> list[str]:
        """Files and folders with the code of the plugins that do not come with bayplan."""
        modules = {plugin.__module__.partition(".")[0] for plugin in self.plugins}
        files = {getattr(sys.modules.get(module), "__file__", None) for module in modules - {"bayplan"}}
        return sorted(file.removesuffix("__init__.py") for file in files if file)


def load_settings(config_path: Path | None, plugins: Sequence[str], *, enable: bool = False) -> Settings:
    """Read the configuration and the plugins it names.

    `enable` also switches plugins from `plugins` on in every profile that does not mention them: what a person means
    who tries a file without writing a configuration.
    """
    try:
        registry = default_registry()
        added = [cls.name for spec in plugins for cls in registry.load(spec)]
        config = default_config() if config_path is None else load_config_file(config_path)
    except (ConfigError, PluginError) as error:
        raise SettingsError(str(error).splitlines()) from error
    return resolve_settings(config, registry, enable=added if enable else ())


def resolve_settings(config: SchedulerConfig, registry: Registry, *, enable: Sequence[str] = ()) -> Settings:
    """A configuration with its plugins; those in `enable` are switched on where no profile mentions them."""
    try:
        config = _with_enabled(config, enable)
        profiles = resolve_profiles(config, registry)
        cautions = tuple(dict.fromkeys(_cautions(config, profiles, registry)))
        return Settings(config=config, profiles=profiles, registry=registry, cautions=cautions)
    except (ConfigError, PluginError) as error:
        raise SettingsError(str(error).splitlines()) from error


def _with_enabled(config: SchedulerConfig, names: Sequence[str]) -> SchedulerConfig:
    profiles = []
    for profile in config.profiles:
        sets = profile.plugins.sets().values()
        mentioned = {ref.name for plugin_set in sets for ref in (*plugin_set.enabled, *plugin_set.disabled)}
        fresh = tuple(PluginRef(name=name) for name in names if name not in mentioned)
        multi_point = profile.plugins.multi_point
        multi_point = msgspec.structs.replace(multi_point, enabled=(*multi_point.enabled, *fresh))
        plugins = msgspec.structs.replace(profile.plugins, multi_point=multi_point)
        profiles.append(msgspec.structs.replace(profile, plugins=plugins))
    return msgspec.structs.replace(config, profiles=tuple(profiles))


def _cautions(config: SchedulerConfig, profiles: Sequence[ResolvedProfile], registry: Registry) -> Iterator[Caution]:
    for written, profile in zip(config.profiles, profiles, strict=True):
        for name in profile.plugin_names:
            if registry.origin_of(name).startswith(_SHIPPED):
                continue
            cls = registry.get(name)
            yield from (Caution(name, text) for text in state_cautions(cls))
            sets = written.plugins.sets()
            switched_off = [
                point for point, each in sets.items() if any(ref.name in (name, "*") for ref in each.disabled)
            ]
            for point in unused_points(cls, profile.points, switched_off):
                methods = " and ".join(f"`{method}`" for method in point.methods if defines(cls, method))
                yield Caution(
                    name,
                    f"profile `{profile.scheduler_name}` never calls {methods}: it enables the plugin at other "
                    f"extension points; enable it at `{point.config_name}` too, or at `multiPoint` for all",
                )
