"""The configuration as it takes effect, value by value, each with the file and line that states it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from bayplan.app.settings import Settings
from bayplan.config.effective import effective_dict
from bayplan.config.model import ProfileConfig
from bayplan.explain.claims.base import JsonObject

__all__ = ["ConfigPage", "ConfigValue", "config_page"]

_IN_PLUGIN_CONFIG = re.compile(r"^profiles\[(\d+)\]\.pluginConfig\[(\d+)\](.*)$")
_IN_MULTI_POINT = re.compile(r"^profiles\[(\d+)\]\.plugins\.multiPoint\.enabled\[(\d+)\](.*)$")


class ConfigValue(msgspec.Struct, kw_only=True, rename="camel"):
    path: str
    value: Any
    source: str
    """`file:line`, or `default`"""


class ConfigPage(msgspec.Struct, kw_only=True, rename="camel"):
    config: JsonObject
    values: list[ConfigValue]


def config_page(settings: Settings) -> ConfigPage:
    config = effective_dict(settings.config, settings.profiles)
    values = [
        ConfigValue(path=path, value=value, source=_source(settings, config, path)) for path, value in _leaves(config)
    ]
    return ConfigPage(config=config, values=values)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{place}]")
    else:
        yield path, value


def _source(settings: Settings, config: JsonObject, path: str) -> str:
    written = _written_path(settings, config, path)
    return "default" if written is None else str(settings.config.source_of(written))


def _written_path(settings: Settings, config: JsonObject, path: str) -> str | None:
    """Merging with the defaults moves entries of two lists; entries are found again by their names."""
    if (match := _IN_PLUGIN_CONFIG.match(path)) is not None:
        profile, place = int(match[1]), int(match[2])
        name = config["profiles"][profile]["pluginConfig"][place]["name"]
        names = [entry.name for entry in settings.config.profiles[profile].plugin_config]
        return _moved(f"profiles[{profile}].pluginConfig", names, name, match[3])
    if (match := _IN_MULTI_POINT.match(path)) is not None:
        profile, place = int(match[1]), int(match[2])
        name = config["profiles"][profile]["plugins"]["multiPoint"]["enabled"][place]["name"]
        written: ProfileConfig = settings.config.profiles[profile]
        names = [entry.name for entry in written.plugins.multi_point.enabled]
        return _moved(f"profiles[{profile}].plugins.multiPoint.enabled", names, name, match[3])
    return path


def _moved(prefix: str, names: list[str], name: str, rest: str) -> str | None:
    return f"{prefix}[{names.index(name)}]{rest}" if name in names else None
