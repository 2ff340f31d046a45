"""One attempt at a change: what becomes of a pending pod, and of the pods that the change deletes.

A pod that is deleted and made again by its controller waits with the others, after those as important: it may take the
room back, find another node, or find none. A change is not offered where nobody can say who loses what: the pod would
make others leave, another scheduler places it, or a draw between nodes that are as good decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bayplan.api.decode import InputError
from bayplan.api.pod import Pod
from bayplan.explain.claims.base import Edit
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.disruption import budgets_exceeded_by
from bayplan.explain.whatif.edits import apply_edits
from bayplan.explain.whatif.placing import Placed, Placing
from bayplan.loop.decide import decide
from bayplan.loop.recorder import preemption_of
from bayplan.observe.time_slices import Work

__all__ = ["Fate", "Tried", "budgets_against", "fate_of_deleted", "in_turn", "try_edits"]


@dataclass(frozen=True)
class Fate:
    """Of the pods that were deleted."""

    lost: tuple[str, ...] = ()
    """Those that nobody makes again."""
    displaced: tuple[str, ...] = ()
    """Those that are made again and find no node."""


@dataclass(frozen=True)
class Tried:
    placed: Placed
    fate: Fate | None
    """None where it cannot be said."""

    @property
    def fits(self) -> bool:
        return bool(self.placed.node) and self.fate is not None


def try_edits(
    copy: ClusterCopy, key: str, edits: Sequence[Edit], *, ahead: Sequence[Pod] = (), behind: Sequence[Pod] = ()
) -> Work[Tried | None]:
    """What becomes of a pending pod with the edits applied, after those `ahead` of it had their turn; None if the edits
    cannot be applied. Those `behind` it matter to pods that are made again. The copy is left as it was."""
    try:
        undo = apply_edits(copy, edits)
    except InputError:
        return None
    followers = [pod.key for pod in behind] if copy.remade else []
    line = in_turn(copy, [*(pod.key for pod in ahead), key, *followers])
    placing = Placing(copy, [(pod, "pending") for pod in line], preempts=False)
    try:
        yield from placing.run()
        placed = placing.outcome(key)
        if placed is None:
            return None
        fate = fate_of_deleted(copy, placing)
        return Tried(placed, None if placed.node in _drawn(copy, placing, until=key) else fate)
    finally:
        placing.undo()
        undo()


def in_turn(copy: ClusterCopy, line: Iterable[str]) -> list[Pod]:
    """The pods of a line that still wait, with those that are made again: each after all that are as important."""
    waiting = [copy.waiting[key] for key in line if key in copy.waiting]
    remade = [copy.waiting[key] for key in copy.remade]
    return sorted([*waiting, *remade], key=lambda pod: -pod.priority) if remade else waiting


def fate_of_deleted(copy: ClusterCopy, placing: Placing) -> Fate | None:
    """Once all of the line have had their turn."""
    displaced = [key for key in copy.remade if not _node_of(placing, key)]
    if any(_is_unknown(copy, copy.waiting[key]) for key in displaced) or (displaced and _drawn(copy, placing)):
        return None
    return Fate(lost=tuple(copy.lost), displaced=tuple(displaced))


def budgets_against(copy: ClusterCopy, edits: Sequence[Edit]) -> Work[tuple[str, ...]]:
    """The disruption budgets that do not allow so many of their pods to leave as the edits delete."""
    names = {edit.name for edit in edits if edit.kind == "deletePod"}
    leaving = [info.pod for info in copy.cache.pods() if info.key in names] if names else []
    found = yield from budgets_exceeded_by(copy.cache.cluster, leaving)
    return tuple(exceeded.budget for exceeded in found)


def _drawn(copy: ClusterCopy, placing: Placing, *, until: str = "") -> set[str]:
    """Nodes of which one is drawn for a pod that is made again, as long as the pod `until` has not had its turn."""
    found: set[str] = set()
    for key, decision in placing.decisions.items():
        if key == until:
            break
        if key in copy.remade and decision.ties > 1 and decision.tied is not None:
            found.update(copy.cache.cluster.nodes.at(row).name for row in decision.tied.tolist())
    return found


def _node_of(placing: Placing, key: str) -> str:
    outcome = placing.outcome(key)
    return outcome.node if outcome is not None else ""


def _is_unknown(copy: ClusterCopy, pod: Pod) -> bool:
    """Whether a pod that found no node may find one all the same, at the expense of others."""
    decider = copy.deciders.get(pod.spec.scheduler_name)
    return decider is None or preemption_of(decide(decider, copy.info(pod)).nomination) is not None
