"""The profiles that a harness runs: a configuration, plus plugins, arguments and weights given in code.

Everything goes through the configuration that a live scheduler would load, so that what runs in a test can be written
down as YAML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from bayplan.config.loading import default_config, load_config
from bayplan.config.model import API_VERSION, PluginConfig, PluginRef, Plugins, ProfileConfig
from bayplan.config.profiles import ResolvedProfile, resolve_profile, resolve_profiles
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, extends
from bayplan.framework.registry import Registry
from bayplan.plugins.intree import default_registry

__all__ = ["Config", "PluginSource", "harness_profiles", "register_plugins"]

Config = str | Path | Mapping[str, Any]
"""A KubeSchedulerConfiguration as text, as the path of a file, or as data."""

PluginSource = type[Plugin] | str | Path
"""A class, a `module:Class` path, or a Python file."""

_DEFAULT_SORT = "PrioritySort"
_NEEDED = (_DEFAULT_SORT, "DefaultBinder")
"""What every profile must have, whatever else is left out."""


def register_plugins(registry: Registry, sources: Iterable[PluginSource]) -> list[str]:
    """Add plugins to the registry; their names. One with the name of a plugin that is there takes its place."""
    names: list[str] = []
    for source in sources:
        if isinstance(source, type):
            names.append(registry.add(source, replace=True).name)
        else:
            names += [cls.name for cls in registry.load(str(source), replace=True)]
    return names


def harness_profiles(
    registry: Registry,
    config: Config | None,
    *,
    added: Iterable[str],
    args: Mapping[str, Mapping[str, Any]],
    weights: Mapping[str, int],
    default_plugins: bool,
) -> list[ResolvedProfile]:
    """The profiles of a configuration (the default one without), each with the added plugins. Raises `ConfigError`."""
    given = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"} if config is None else config
    added = list(added)
    if config is None and not added and not args and not weights and default_plugins:
        return list(_default_profiles())
    return [
        resolve_profile(
            _with_args(
                _with_plugins(
                    profile,
                    added,
                    weights,
                    default_plugins=default_plugins,
                    sorts=any(_sorts(registry.get(name)) for name in added),
                ),
                args,
            ),
            registry,
        )
        for profile in load_config(given).profiles
    ]


def _sorts(plugin: type[Plugin]) -> bool:
    """Whether the plugin orders the queue, which one alone may do."""
    return plugin.name != _DEFAULT_SORT and extends(plugin, ExtensionPoint.QUEUE_SORT)


@lru_cache(maxsize=1)
def _default_profiles() -> tuple[ResolvedProfile, ...]:
    """What most harnesses run, worked out once."""
    return resolve_profiles(default_config(), default_registry())


def _with_plugins(
    profile: ProfileConfig, added: list[str], weights: Mapping[str, int], *, default_plugins: bool, sorts: bool
) -> ProfileConfig:
    mentioned = {ref.name for plugin_set in profile.plugins.sets().values() for ref in plugin_set.enabled}
    needed = [name for name in _NEEDED if not (sorts and name == _DEFAULT_SORT)]
    wanted = [*([] if default_plugins else needed), *added, *weights]
    new = [name for name in dict.fromkeys(wanted) if name not in mentioned]
    shared = profile.plugins.multi_point
    kept = tuple(_weighted(ref, weights) for ref in shared.enabled)
    enabled = kept + tuple(_weighted(PluginRef(name=name), weights) for name in new)
    disabled = shared.disabled if default_plugins else (PluginRef(name="*"),)
    if sorts and default_plugins and not {"*", _DEFAULT_SORT} & {ref.name for ref in disabled}:
        disabled = (*disabled, PluginRef(name=_DEFAULT_SORT))
    shared = msgspec.structs.replace(shared, enabled=enabled, disabled=disabled)
    plugins: Plugins = msgspec.structs.replace(profile.plugins, multi_point=shared)
    return msgspec.structs.replace(profile, plugins=plugins)


def _weighted(ref: PluginRef, weights: Mapping[str, int]) -> PluginRef:
    return msgspec.structs.replace(ref, weight=weights[ref.name]) if ref.name in weights else ref


def _with_args(profile: ProfileConfig, args: Mapping[str, Mapping[str, Any]]) -> ProfileConfig:
    others = tuple(each for each in profile.plugin_config if each.name not in args)
    given = tuple(PluginConfig(name=name, args=dict(values)) for name, values in args.items())
    return msgspec.structs.replace(profile, plugin_config=others + given)
