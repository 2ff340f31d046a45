"""Matches tolerations with taints, and gives cordoned nodes theirs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.api.node import Node, Taint
from bayplan.api.pod import Toleration

__all__ = ["UNSCHEDULABLE_TAINT", "first_untolerated", "is_tolerated", "tolerates", "with_cordon"]

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordoned node counts as having."""


def with_cordon(node: Node, is_cordoned: bool) -> Node:
    """The node after `kubectl cordon` or `uncordon`: the node controller adds or removes the taint as well."""
    taints = [taint for taint in node.spec.taints or () if taint.key != UNSCHEDULABLE_TAINT.key]
    taints += [UNSCHEDULABLE_TAINT] if is_cordoned else []
    spec = msgspec.structs.replace(node.spec, unschedulable=is_cordoned, taints=taints or None)
    return msgspec.structs.replace(node, spec=spec)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """One toleration against one taint. An empty key or effect in the toleration stands for any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
) -> Taint | None:
    """The first taint with one of the effects that no toleration matches."""
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, tolerations):
            return taint
    return None
