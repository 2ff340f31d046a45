"""DynamicResources: what pods without resource claims see of it.

Devices are not allocated here. A pod that asks for them stays pending with a reason that says so, which is better than
putting it on a node where its containers cannot start.
"""

from __future__ import annotations

import re
from collections.abc import Hashable

import numpy as np

from bayplan.framework import (
    SKIP,
    CycleState,
    Depends,
    Diagnosis,
    Error,
    EventHint,
    Handle,
    NodeColumns,
    NodeInfo,
    Plugin,
    PluginArgs,
    PodInfo,
    Status,
    Unresolvable,
    Unschedulable,
    normalize_highest,
)
from bayplan.framework.columns import Int64N

__all__ = ["DynamicResources"]

_NO_DEVICES = Unresolvable(
    "pod asks for devices through resourceClaims, which Bayplan does not allocate yet; "
    "use another scheduler for this pod or remove its resourceClaims"
)
_NOTHING_TO_FREE = Unschedulable("no new claims to deallocate")
_NO_STATE = Error("not found")


class DynamicResources(Plugin):
    """Hold back pods that need devices, and answer for all others as kube-scheduler's plugin does.

    *What it does*: nothing for a pod without `spec.resourceClaims`. When such a pod fits nowhere, its message gets the
    part that kube-scheduler's plugin adds.
    *Rejects when*: the pod has resource claims.
    *Scores by*: nothing; every node gets 0.
    *Retries on*: nothing; the claims of a pod cannot change.
    *Arguments*: `filterTimeout` (default 10s, 0 for none) and `bindingTimeout` (default 10m0s, at least 1s) are read
    and checked, so that configurations for kube-scheduler stay valid. They limit the work on claims, of which there
    is none.
    *Differs from kube-scheduler*: pods with resource claims stay pending at PreFilter, and extended resources that a
    device class offers are treated as those of a device plugin. There is no PreEnqueue, Filter, Reserve and PreBind.
    """

    default_weight = 2
    depends = Depends.NODE
    settles_by_kind = True
    signs_by_kind = True
    reasons = (*_NO_DEVICES.reasons, *_NOTHING_TO_FREE.reasons, *_NO_STATE.reasons)
    normalize = normalize_highest

    class Args(PluginArgs):
        filter_timeout: str = "10s"
        """Longest search for devices on one node; 0 for no limit."""
        binding_timeout: str = "10m0s"
        """Longest wait for the devices of a pod to become ready."""

        def validate(self) -> list[str]:
            return [
                *_duration_problems("filterTimeout", self.filter_timeout, at_least=0.0),
                *_duration_problems("bindingTimeout", self.binding_timeout, at_least=1.0),
            ]

    def sign(self, pod: PodInfo) -> Hashable:
        return _has_claims(pod)

    def is_relevant(self, pod: PodInfo) -> bool:
        return _has_claims(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        return _NO_DEVICES if _has_claims(pod) else SKIP

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> Status | None:
        # kube-scheduler's plugin looks for what its PreFilter left behind, and fails when an earlier plugin's
        # rejection ended PreFilter before its turn.
        return _NOTHING_TO_FREE if self.name in state.reached else _NO_STATE

    def dry_copy(self, handle: Handle) -> DynamicResources:
        return type(self)(self.args, handle)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        return np.zeros(len(nodes), dtype=np.int64)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def events_to_register(self) -> list[EventHint]:
        return []


def _has_claims(pod: PodInfo) -> bool:
    return bool(pod.shape.spec.resource_claims)


_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART})+)", re.ASCII)


def _duration_problems(field: str, text: str, *, at_least: float) -> list[str]:
    seconds = _seconds(text)
    if seconds is None:
        return [f"{field}: `{text}` is not a duration; write a number with a unit, such as `10s` or `1m30s`"]
    return [] if seconds >= at_least else [f"{field}: `{text}` is too short; it must be at least {at_least:g}s"]


def _seconds(text: str) -> float | None:
    """A duration as Go writes it."""
    if not _DURATION.fullmatch(text):
        return None
    total = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    return -total if text.startswith("-") else total
