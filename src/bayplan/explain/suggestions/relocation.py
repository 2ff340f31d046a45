"""Moves: where a pod that has a node would go with other weights, or if its node were cordoned; each tried on a copy.

The pod is moved alone. What becomes of all pods of a drained node, one after the other, is for a what-if to say.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from bayplan.api.pod import Pod
from bayplan.api.tolerations import with_cordon
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.claims.pods import WouldMove
from bayplan.explain.model import Changes
from bayplan.explain.suggestions.search import profile_of, suggestion_of
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.placing import Placed, Placing
from bayplan.loop.decide import Decider
from bayplan.observe.time_slices import Work

__all__ = ["find_moves"]

_HEAVIER = 10


def find_moves(copy: ClusterCopy, info: PodInfo) -> Work[Changes]:
    """What would move a pod that is on a node of the copy, which is left as it was."""
    home = info.node_name
    known = copy.cache.remove_pod(info.uid)
    reserve_again = copy.release_claims(info.pod)
    free = msgspec.structs.replace(info.pod, spec=msgspec.structs.replace(info.pod.spec, node_name=""))
    copy.cache.note_pod(None, free)
    try:
        moves = yield from _moves(copy, free, home)
    finally:
        reserve_again()
        if known is not None:
            copy.cache.assume(known, home)
    return Changes(pod=info.key, is_placed=True, suggestions=[suggestion_of(move) for move in moves])


def _moves(copy: ClusterCopy, pod: Pod, home: str) -> Work[list[WouldMove]]:
    profile = profile_of(copy, pod.spec.scheduler_name)
    found: list[WouldMove] = []
    now = yield from _moved(copy, pod)
    for plugin, weight in profile.weights.items():
        for factor, words in ((0, "had no weight"), (_HEAVIER, f"weighed {_HEAVIER} times as much")):
            changed = replace(profile, weights={**profile.weights, plugin: weight * factor})
            deciders = copy.deciders_with([changed])
            moved = yield from _moved(copy, pod, deciders)
            if moved.node and moved.node not in (home, now.node):
                what = f"{plugin} {words} and it were scheduled again"
                found.append(
                    WouldMove(pod=pod.key, home=home, what=what, node=moved.node, plugin=plugin, weight=weight * factor)
                )
    elsewhere = yield from _elsewhere(copy, pod, home)
    return found if elsewhere is None else [*found, elsewhere]


def _moved(copy: ClusterCopy, pod: Pod, deciders: dict[str, Decider] | None = None) -> Work[Placed]:
    placing = Placing(copy, [(pod, "pending")], preempts=False, deciders=deciders)
    try:
        yield from placing.run()
        outcome = placing.outcome(pod.key)
    finally:
        placing.undo()
    return outcome if outcome is not None else Placed(pod=pod.key, origin="pending")


def _elsewhere(copy: ClusterCopy, pod: Pod, home: str) -> Work[WouldMove | None]:
    """Where the pod would go if its node took no pods, preempting as it may; None if it would come back there."""
    info = copy.cache.cluster.node(home)
    if info is None:
        return None
    original = info.node
    copy.cache.add_node(with_cordon(original, True))
    placing = Placing(copy, [(pod, "pending")])
    try:
        yield from placing.run()
        outcome = placing.outcome(pod.key)
        mine = [gone for gone in placing.evicted if gone.by == pod.key]
    finally:
        placing.undo()
        copy.cache.add_node(original)
    node = outcome.node if outcome is not None else ""
    if node == home:
        return None
    return WouldMove(
        pod=pod.key,
        home=home,
        what=f"{home} were cordoned and it were scheduled again",
        node=node,
        drain=home,
        victims=tuple(gone.pod for gone in mine) if node else (),
        ties=max((gone.ties for gone in mine), default=1) if node else 1,
    )
