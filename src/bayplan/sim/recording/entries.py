"""The lines of a recording: a header, then changes of objects, decisions and the ends of attempts, as they happened.

    {"format":"bayplan-recording","version":1,"by":"scheduler",...}     begins a session; a file may have several
    ["+",1767225600.1,"Pod",{"metadata":{...},...}]                      an object is new or changed
    ["-",1767225600.2,"Pod","default/web-0"]                             an object is gone
    ["r",1767225600.3]                                                   the cluster is read
    ["d",1767225600.4,"default/web-0","<uid>",1,"node-1",...]            an attempt to place a pod was decided
    ["e",1767225600.5,"default/web-0","<uid>",""]                        its binding ended, with an error or without
    ["c",1767225600.6,{...},["plugin.py"],{"plugin.py":"<sha256>"}]      the configuration was replaced

Objects hold the fields that scheduling reads, so no Secret, environment or command is in a recording. Times are seconds
since the epoch. A reader refuses versions that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.api.kinds import KINDS
from bayplan.api.meta import KubeObject
from bayplan.framework.resources import resource_info

__all__ = [
    "FORMAT",
    "RECORDERS",
    "VERSION",
    "AttemptEnded",
    "ClusterRead",
    "Entry",
    "NewConfiguration",
    "ObjectChanged",
    "ObjectGone",
    "ObjectTypes",
    "PodDecided",
    "RecordingHeader",
]

FORMAT = "bayplan-recording"
VERSION = 1
RECORDERS = ("scheduler", "follower")


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who recorded, and by which policy decisions were made."""

    format: str
    version: int
    by: str
    """`scheduler`: decisions are in the recording. `follower`: only their effects were seen."""
    bayplan: str = ""
    """The version that wrote it."""
    time: float = 0.0
    seed: int = 0
    config: dict[str, Any] = {}
    """The effective KubeSchedulerConfiguration."""
    plugins: tuple[str, ...] = ()
    """Plugins that were loaded, as `--plugin` names them."""
    plugin_digests: dict[str, str] = {}
    """SHA-256 of the files of these plugins."""
    kinds: tuple[str, ...] = ()
    """That the API server serves."""


class ObjectChanged(msgspec.Struct, frozen=True, array_like=True, tag="+"):
    time: float
    kind: str
    object: msgspec.Raw


class ObjectGone(msgspec.Struct, frozen=True, array_like=True, tag="-"):
    time: float
    kind: str
    key: str
    """`namespace/name`, or the name alone."""


class ClusterRead(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    time: float


class PodDecided(msgspec.Struct, frozen=True, array_like=True, tag="d"):
    time: float
    pod: str
    uid: str
    attempt: int
    node: str
    """Empty when no node was found."""
    message: str = ""
    nominated: str = ""
    victims: tuple[str, ...] = ()
    feasible: int = 0
    total: int = 0
    ties: int = 0
    best: tuple[tuple[str, int, dict[str, int]], ...] = ()
    """Name, total and points by plugin of the node that was taken and of the runner-up; empty where nothing was
    scored, and in files that were written before this was."""


class AttemptEnded(msgspec.Struct, frozen=True, array_like=True, tag="e"):
    """An attempt that had a node: bound, or given up for `error`."""

    time: float
    pod: str
    uid: str
    error: str = ""


class NewConfiguration(msgspec.Struct, frozen=True, array_like=True, tag="c"):
    time: float
    config: dict[str, Any]
    plugins: tuple[str, ...] = ()
    plugin_digests: dict[str, str] = {}


Entry = ObjectChanged | ObjectGone | ClusterRead | PodDecided | AttemptEnded | NewConfiguration


class ObjectTypes:
    """Names of kinds and the types behind them: the kinds that scheduling reads, and custom resources of plugins."""

    def __init__(self, custom: Iterable[type[Any]] = ()) -> None:
        self._types: dict[str, type[KubeObject]] = {kind.name: kind.type for kind in KINDS}
        self._types |= {resource_info(kind).event_name: kind for kind in custom}
        self._names = {kind: name for name, kind in self._types.items()}

    def name_of(self, kind: type[Any]) -> str:
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = resource_info(kind).event_name
        return name

    def get(self, name: str) -> type[KubeObject] | None:
        """None for a custom resource of a plugin that is not loaded."""
        return self._types.get(name)
