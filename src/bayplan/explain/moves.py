"""What would move a placed pod: where it would go if it were scheduled now, and what would make it go elsewhere."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.cluster_copy import ClusterCopy
from bayplan.explain.turns import Work
from bayplan.loop.decide import decide

__all__ = ["Move", "Moves", "find_moves"]

_HEAVIER = 10


class Move(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    sentence: str
    node: str
    """Where the pod would go then; empty when nowhere."""


class Moves(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    pod: str
    now: str = ""
    """Where it would go if it were scheduled now; empty when nowhere."""
    moves: list[Move] = []
    note: str = ""
    """What the answer leaves out."""


def find_moves(copy: ClusterCopy, info: PodInfo) -> Work[Moves]:
    """For a pod on a node of the copy, which is left as it was."""
    home = info.node_name
    copy.cache.remove_pod(info.uid)
    try:
        moves = yield from _found(copy, info, home)
    finally:
        copy.cache.assume(info, home)
    return moves


def _found(copy: ClusterCopy, info: PodInfo, home: str) -> Work[Moves]:
    free = info.placed("")
    free.nominated_node_name = ""
    now = decide(copy.trial_decider(info.scheduler_name), free).node_name
    moves = Moves(pod=info.key, now=now)
    profile = next(p for p in copy.profiles if p.scheduler_name == info.scheduler_name)
    for plugin, weight in profile.weights.items():
        for factor, words in ((0, "had no weight"), (_HEAVIER, f"weighed {_HEAVIER} times as much")):
            changed = replace(profile, weights={**profile.weights, plugin: weight * factor})
            decider = copy.deciders_with([changed])[profile.scheduler_name]
            node = decide(decider, free).node_name
            if node != now:
                moves.moves.append(Move(sentence=f"It would go to {node} if {plugin} {words}.", node=node))
            yield
    moves.moves += _without_home(copy, free, home)
    return moves


def _without_home(copy: ClusterCopy, free: PodInfo, home: str) -> list[Move]:
    info = copy.cache.cluster.node(home)
    if info is None:
        return []
    spec = msgspec.structs.replace(info.node.spec, unschedulable=True)
    original = info.node
    copy.cache.add_node(msgspec.structs.replace(original, spec=spec))
    node = decide(copy.trial_decider(free.scheduler_name), free).node_name
    copy.cache.add_node(original)
    where = f"It would go to {node}" if node else "It would find no other node"
    return [Move(sentence=f"{where} if {home} were drained.", node=node)]
