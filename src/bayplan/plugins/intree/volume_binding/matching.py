"""The choice of an existing PersistentVolume for a claim that waits for its first consumer.

If a volume is set aside for the claim, only that one can be chosen. Otherwise it is the smallest available volume that
is large enough, of the right class, mode and attributes, offers every access mode, matches the claim's selector and is
reachable from the node. Two claims of one pod never get the same volume.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import numpy as np

from bayplan.framework import NodeInfo
from bayplan.framework.columns import BoolN, ClusterState, Rows
from bayplan.framework.objects import (
    EVERYTHING,
    PersistentVolume,
    PersistentVolumeClaim,
    Quantity,
    QuantityError,
    Selector,
    SelectorError,
    compile_selector,
    value,
)
from bayplan.plugins.intree.volume_binding.assumed_objects import AssumedObjects
from bayplan.plugins.intree.volume_binding.places import (
    PlaceMasks,
    Places,
    SizedPlaces,
    is_reachable,
    places_of_affinity,
)
from bayplan.plugins.volumes.claims import claim_class, is_volume_of, volume_class
from bayplan.plugins.volumes.object_changes import ObjectFollower

__all__ = ["ClaimError", "VolumeMatcher", "affinity_places", "offered_bytes", "requested_bytes"]

_Offer = tuple[str, str, frozenset[str]]
"""Volume mode, attributes class, access modes: volumes of one size that agree in these are interchangeable."""
_NO_SLOTS: Rows = np.zeros(0, dtype=np.intp)


class ClaimError(Exception):
    """An inconsistent claim, for which no volume can be chosen or provisioned; the pod is scheduled again later."""


def requested_bytes(claim: PersistentVolumeClaim) -> int | None:
    """The storage that a claim requests; None when it states none."""
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    stated = (requests or {}).get("storage")
    return None if stated is None else value(stated)


def affinity_places(volume: PersistentVolume) -> Places:
    """The places from which a volume is reachable by its own node affinity."""
    affinity = volume.spec.node_affinity
    return places_of_affinity(affinity.required if affinity is not None else None)


class VolumeCandidates(NamedTuple):
    """Volumes that fit a claim on some node."""

    set_aside: list[PersistentVolume]
    open: SizedPlaces
    slots: Rows


class VolumeMatcher:
    """Keeps the volumes by class from cycle to cycle."""

    def __init__(self, cluster: ClusterState, assumed: AssumedObjects[PersistentVolume], masks: PlaceMasks) -> None:
        self._cluster, self._assumed, self._masks = cluster, assumed, masks
        self._changes = ObjectFollower(cluster.objects, PersistentVolume)
        self._open: dict[str, SizedPlaces] = {}
        self._set_aside: dict[str, dict[str, PersistentVolume]] = {}

    def choose(self, claim: PersistentVolumeClaim, node: NodeInfo, excluded: Container[str]) -> PersistentVolume | None:
        """The volume for a claim on a node. Raises ClaimError."""
        fitting = self._candidates(claim)
        for volume in fitting.set_aside:
            if volume.name not in excluded:
                return volume if is_reachable(affinity_places(volume), node.labels) else None
        here = fitting.open.reachable_from(node.row, fitting.slots) if len(fitting.slots) else fitting.slots
        for slot in fitting.open.smallest_first(here):
            name = fitting.open.name(slot)
            if name not in excluded:
                return self._assumed.get(name)
        return None

    def choose_all(self, claims: list[PersistentVolumeClaim]) -> list[BoolN | None]:
        """For each claim, in order, the rows on which it gets a volume that no claim before it got there; None if there
        are none. Raises ClaimError.
        """
        classes = [claim_class(claim) for claim in claims]
        if len(set(classes)) == len(classes):
            return [self._reach(claim) for claim in claims]
        taken: dict[str, BoolN] = {}
        return [self._reach_untaken(claim, taken) for claim in claims]

    def _reach(self, claim: PersistentVolumeClaim) -> BoolN | None:
        fitting = self._candidates(claim)
        if fitting.set_aside:
            return self._mask(affinity_places(fitting.set_aside[0]))
        return fitting.open.reach(fitting.slots) if len(fitting.slots) else None

    def _reach_untaken(self, claim: PersistentVolumeClaim, taken: dict[str, BoolN]) -> BoolN:
        fitting = self._candidates(claim)
        found = np.zeros(self._cluster.nodes.size, dtype=np.bool_)
        undecided = ~found
        for volume in fitting.set_aside:
            here = undecided & ~taken[volume.name] if volume.name in taken else undecided.copy()
            undecided &= ~here
            found |= self._take(volume.name, here & self._mask(affinity_places(volume)), taken)
        for slot in fitting.open.smallest_first(fitting.slots):
            if not undecided.any():
                break
            name = fitting.open.name(slot)
            here = undecided & self._mask(fitting.open.places(slot))
            if name in taken:
                here &= ~taken[name]
            if here.any():
                undecided &= ~here
                found |= self._take(name, here, taken)
        return found

    def _take(self, name: str, here: BoolN, taken: dict[str, BoolN]) -> BoolN:
        taken[name] = here | taken[name] if name in taken else here
        return here

    def _mask(self, places: Places) -> BoolN:
        return np.ones(self._cluster.nodes.size, dtype=np.bool_) if places is None else self._masks.rows(places)

    def _candidates(self, claim: PersistentVolumeClaim) -> VolumeCandidates:
        self._follow()
        name, size = claim_class(claim), requested_bytes(claim) or 0
        selector = _selector_of(claim)
        opened = self._open.get(name)
        if opened is None:
            opened = self._open[name] = SizedPlaces(self._cluster.nodes, self._masks)
        if not len(opened):
            return VolumeCandidates(self._set_aside_for(claim, name, size), opened, _NO_SLOTS)
        groups = [number for offer, number in opened.groups.items() if _suits(offer, claim)]
        promised = [v.name for v in self._assumed.matching(lambda volume: volume.name in opened)]
        slots = self._selected(opened, opened.at_least(size, groups, promised), selector)
        return VolumeCandidates(self._set_aside_for(claim, name, size), opened, slots)

    def _selected(self, opened: SizedPlaces, slots: Rows, selector: Selector) -> Rows:
        """The volumes that match the claim's selector."""
        if selector.is_everything:
            return slots
        kept = [slot for slot in slots.tolist() if self._is_selected(opened.name(slot), selector)]
        return np.array(kept, dtype=np.intp)

    def _is_selected(self, name: str, selector: Selector) -> bool:
        volume = self._assumed.stored(name)
        return volume is not None and selector.matches(volume.labels)

    def _set_aside_for(self, claim: PersistentVolumeClaim, class_name: str, size: int) -> list[PersistentVolume]:
        listed = [self._assumed.get(name) for name in self._set_aside.get(claim.key, ())]
        listed += self._assumed.matching(lambda volume: is_volume_of(volume, claim))
        found = {v.name: v for v in listed if v is not None and is_volume_of(v, claim) and _fits(v, claim, size)}
        return [found[name] for name in sorted(found) if volume_class(found[name]) == class_name]

    def _follow(self) -> None:
        for old, new in self._changes.changes():
            if old is not None:
                self._remove(old)
            if new is not None:
                self._add(new)

    def _remove(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is None:
            opened = self._open.get(volume_class(volume))
            if opened is not None:
                opened.remove(volume.name)
            return
        key = f"{reference.namespace}/{reference.name}"
        others = self._set_aside.get(key, {})
        others.pop(volume.name, None)
        if not others:
            self._set_aside.pop(key, None)

    def _add(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is not None:
            self._set_aside.setdefault(f"{reference.namespace}/{reference.name}", {})[volume.name] = volume
        elif volume.status.phase == "Available" and not volume.is_terminating:
            name = volume_class(volume)
            opened = self._open.get(name)
            if opened is None:
                opened = self._open[name] = SizedPlaces(self._cluster.nodes, self._masks)
            opened.put(volume.name, _capacity_bytes(volume), affinity_places(volume), _offer(volume))


def _selector_of(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return compile_selector(claim.spec.selector)
    except SelectorError as error:
        raise ClaimError(f"error creating internal label selector for claim: {claim.key}: {error}") from error


def offered_bytes(stated: Quantity) -> int:
    """The size of a volume or capacity; 0 if it cannot be parsed, so that it does not affect the others."""
    try:
        return value(stated)
    except QuantityError:
        return 0


def _capacity_bytes(volume: PersistentVolume) -> int:
    return offered_bytes((volume.spec.capacity or {}).get("storage", 0))


def _offer(volume: PersistentVolume) -> _Offer:
    spec = volume.spec
    modes = frozenset(spec.access_modes or ())
    return spec.volume_mode or "Filesystem", spec.volume_attributes_class_name or "", modes


def _suits(offer: object, claim: PersistentVolumeClaim) -> bool:
    if not isinstance(offer, tuple):
        return False
    mode, attributes, modes = offer
    return _is_alike(mode, attributes, claim) and frozenset(claim.spec.access_modes or ()) <= frozenset(modes)


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim, size: int) -> bool:
    """What even a volume that is set aside must meet; its access modes are not checked."""
    mode, attributes, _ = _offer(volume)
    return _is_alike(mode, attributes, claim) and _capacity_bytes(volume) >= size and not volume.is_terminating


def _is_alike(mode: str, attributes: str, claim: PersistentVolumeClaim) -> bool:
    spec = claim.spec
    return mode == (spec.volume_mode or "Filesystem") and attributes == (spec.volume_attributes_class_name or "")
