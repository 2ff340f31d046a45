"""Decides again on one moment of a recording: what the files that `bayplan replay --pytest` writes call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.sim.recording.entries import ObjectTypes
from bayplan.testing.harness import Harness
from bayplan.testing.outcome import Outcome
from bayplan.testing.profile import PluginSource

__all__ = ["recorded_moment"]


def recorded_moment(
    state: str, pod: str, *, config: Mapping[str, Any], plugins: Iterable[PluginSource] = ()
) -> Outcome:
    """The outcome for a pod on a state: lines of `["Kind", object]`, as in recordings. Nothing is changed."""
    sources = list(plugins)
    core = ObjectTypes()
    lines = [msgspec.json.decode(line, type=tuple[str, msgspec.Raw]) for line in state.splitlines() if line]
    items = [_decoded(core, kind, raw) for kind, raw in lines if core.get(kind) is not None]
    harness = Harness(
        nodes=[item for item in items if isinstance(item, Node)],
        pods=[item for item in items if isinstance(item, Pod)],
        objects=[item for item in items if not isinstance(item, Node | Pod)],
        config=config,
        plugins=sources,
        always_score=False,
    )
    names = dict.fromkeys(name for profile in harness.profiles for name in profile.plugin_names)
    custom = ObjectTypes(kind for name in names for kind in harness.registry.get(name).watches)
    known = [(kind, raw) for kind, raw in lines if core.get(kind) is None and custom.get(kind) is not None]
    harness.add(*(_decoded(custom, kind, raw) for kind, raw in known))
    kind, raw = msgspec.json.decode(pod, type=tuple[str, msgspec.Raw])
    wanted = _decoded(core, kind, raw)
    assert isinstance(wanted, Pod)
    return harness.explain(wanted)


def _decoded(types: ObjectTypes, kind: str, raw: msgspec.Raw) -> KubeObject:
    found = types.get(kind)
    assert found is not None
    return msgspec.json.decode(raw, type=found)
