"""From a path to what it is about. Paths that lead nowhere are a 404 Status."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from urllib.parse import unquote

from bayplan.apiserver.kinds.kind import Kinds, ServedKind
from bayplan.apiserver.protocol import errors

_MAX_SEGMENTS = 12
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 1024, 512


@dataclass(frozen=True, slots=True)
class Route:
    """A resource, an object, or a subresource of one."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False
    """The deprecated /watch/ prefix."""


class RouteTable:
    """The routes of paths; those asked for lately are remembered for as long as no kind is added or removed."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._route = functools.lru_cache(maxsize=_MOST_REMEMBERED)(self._found)

    def route(self, path: str) -> Route | None:
        """The route of a path below /api/v1 or /apis/GROUP/VERSION; None for another path."""
        if len(path) > _LONGEST_REMEMBERED:
            return self._found(path)
        return self._route(path, self._kinds.generation)

    def _found(self, path: str, generation: int = 0) -> Route | None:
        parts = segments_of(path)
        if parts[0] in ("api", "apis") and len(parts) > (2 if parts[0] == "api" else 3):
            return resolve(self._kinds, parts)
        return None


def segments_of(path: str) -> list[str]:
    """The decoded parts of a path. Tricks with dots, empty parts and encoded slashes are a 404."""
    parts = path.strip("/").split("/")
    if len(parts) > _MAX_SEGMENTS:
        raise errors.unknown_path()
    if "%" in path:
        parts = [unquote(part) for part in parts]
    if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts) and parts != [""]:
        raise errors.unknown_path()
    return parts


def resolve(kinds: Kinds, parts: list[str]) -> Route:
    """The route of a path below /api/v1 or /apis/GROUP/VERSION."""
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
    is_watch = bool(rest) and rest[0] == "watch"
    if is_watch:
        rest = rest[1:]
    if not rest:
        raise errors.unknown_path()
    if rest[0] == "namespaces" and len(rest) >= 3 and not _is_namespace_subresource(group, rest):
        return _namespaced(kinds, group, version, rest, is_watch)
    kind = kinds.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (kind.namespaced and len(rest) > 1):
        raise errors.unknown_path()
    return Route(kind, "", rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else "", is_watch)


def _is_namespace_subresource(group: str, rest: list[str]) -> bool:
    return group == "" and len(rest) == 3 and rest[2] in ("status", "finalize")


def _namespaced(kinds: Kinds, group: str, version: str, rest: list[str], is_watch: bool) -> Route:
    kind = kinds.find(group, version, rest[2])
    if kind is None or not kind.namespaced or len(rest) > 5:
        raise errors.unknown_path()
    name = rest[3] if len(rest) > 3 else ""
    subresource = rest[4] if len(rest) > 4 else ""
    return Route(kind, rest[1], name, subresource, is_watch)
