"""The arguments of plugins: `pluginConfig` entries decoded into each plugin's own `Args` class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bayplan.config.errors import Problems
from bayplan.config.reading import Reader, inside, shown
from bayplan.config.versions import GROUP, VERSIONS
from bayplan.framework.args import PluginArgs
from bayplan.framework.plugin import Plugin

__all__ = ["decode_args"]

_SENTENCE = re.compile(r"^(?P<path>[A-Za-z_][\w.\-/]*(?:\[[^\]]*\][\w.\-/]*)*): (?P<rest>.+)$", re.DOTALL)


def decode_args(plugin: type[Plugin], given: Any, *, path: str, problems: Problems, line: int = 0) -> PluginArgs | None:
    """The plugin's arguments, None with problems added when they are wrong. `given` None stands for no arguments."""
    before = len(problems)
    if given is not None and not isinstance(given, dict):
        problems.add(path, f"expected a mapping, found {shown(given)}", line=line)
        return None
    table: dict[str, Any] = given if given is not None else {}
    fields = _without_header(plugin, table, path, problems, line)
    reader = Reader(problems, unknown_hint=lambda _path, _key: _no_args_hint(plugin))
    args = reader.read(fields, plugin.Args, path=path, line=line)
    if args is None:
        return None
    for sentence in _validated(args):
        place, message = _placed(sentence, path)
        problems.add(place, message, line=_line(reader.lines, place, line))
    return args if len(problems) == before else None


def _no_args_hint(plugin: type[Plugin]) -> str:
    return "" if plugin.Args.__struct_fields__ else f"{plugin.name} takes no arguments"


def _without_header(
    plugin: type[Plugin], table: dict[str, Any], path: str, problems: Problems, line: int
) -> dict[str, Any]:
    """The arguments without `apiVersion` and `kind`, which may be left out but must be right when given."""
    lines: Mapping[str, int] = getattr(table, "lines", {})
    kind, api_version = table.get("kind"), table.get("apiVersion")
    expected = f"{plugin.name}Args"
    if kind is not None and kind != expected:
        message = f"expected `{expected}`, found {shown(kind)}"
        problems.add(inside(path, "kind"), message, hint="or leave it out", line=lines.get("kind", line))
    group, _, version = api_version.partition("/") if isinstance(api_version, str) else ("", "", "")
    is_odd = api_version is not None and (not group or (group == GROUP and version not in VERSIONS))
    if is_odd:
        message = f"expected `{GROUP}/v1`, found {shown(api_version)}"
        place = inside(path, "apiVersion")
        problems.add(place, message, hint="or leave it out", line=lines.get("apiVersion", line))
    if "kind" not in table and "apiVersion" not in table:
        return table
    copy = _copy(table)
    for name in ("kind", "apiVersion"):
        copy.pop(name, None)
    return copy


def _copy(table: dict[str, Any]) -> dict[str, Any]:
    """A copy that keeps the line numbers of a table read from text."""
    twin = type(table)()
    twin.update(table)
    for attribute in ("line", "lines", "repeated"):
        if hasattr(table, attribute):
            setattr(twin, attribute, getattr(table, attribute))
    return twin


def _validated(args: PluginArgs) -> list[str]:
    """The sentences of the author's own `validate`; an exception in it is a problem too, never a crash."""
    try:
        sentences: Any = args.validate()
        return [str(sentence) for sentence in sentences or ()]
    except ValueError as error:
        return [str(error) or "is refused by the plugin"]
    except Exception as error:
        return [f"`validate` of the plugin failed with {type(error).__name__}: {error}"]


def _placed(sentence: str, path: str) -> tuple[str, str]:
    match = _SENTENCE.match(sentence)
    return (inside(path, match["path"]), match["rest"]) if match else (path, sentence)


def _line(lines: Mapping[str, int], path: str, otherwise: int) -> int:
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path, otherwise)
