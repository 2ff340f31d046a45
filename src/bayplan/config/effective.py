"""The configuration as it takes effect, for /configz and --write-config-to: profiles merged, arguments complete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from bayplan.config.durations import format_duration
from bayplan.config.model import API_VERSION, SchedulerConfig
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework.args import PluginArgs

__all__ = ["effective_dict"]


def effective_dict(
    config: SchedulerConfig, resolved: Sequence[ResolvedProfile], *, redact: bool = True
) -> dict[str, Any]:
    """v1 form. Reading it back gives profiles that run the same plugins in the same order with the same arguments."""
    form = config.to_dict(redact=redact)
    for profile, outcome in zip(form["profiles"], resolved, strict=True):
        plugins = profile.setdefault("plugins", {})
        plugins.setdefault("multiPoint", {})["enabled"] = [
            {"name": plugin.name, **({"weight": plugin.weight} if plugin.weight else {})}
            for plugin in outcome.multi_point.enabled
        ]
        profile["pluginConfig"] = [
            {"name": name, "args": _args_form(name, args)}
            for name, args in outcome.args.items()
            if args.__struct_fields__
        ]
    return form


def _args_form(name: str, args: PluginArgs) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(args, builtin_types=(timedelta,))
    return {"apiVersion": API_VERSION, "kind": f"{name}Args", **_form(fields)}


def _form(value: Any) -> Any:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, dict):
        return {key: _form(inner) for key, inner in value.items() if inner is not None}
    return [_form(inner) for inner in value] if isinstance(value, list) else value
