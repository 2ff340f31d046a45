"""The nodes on which the claims of a pod can be met: bound volumes are reachable, the others found or provisioned.

Bound claims go by the node affinity of their volume. Claims that wait for a first consumer take an available volume, or
else must be provisionable; those that a provisioner already works on for some node can be met on that node only. The
conflicts of a node are a set of flags, which become one status.
"""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple

import numpy as np

from bayplan.framework import SUCCESS, Error, NodeColumns, NodeInfo, Status, Unresolvable, Verdicts
from bayplan.framework.columns import BoolN, ClusterState, Int32N
from bayplan.framework.objects import CSINode, PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.intree.volume_binding.assumed_objects import AssumedObjects
from bayplan.plugins.intree.volume_binding.matching import ClaimError, VolumeMatcher, affinity_places, requested_bytes
from bayplan.plugins.intree.volume_binding.places import PlaceMasks, Places, is_reachable, places_of_affinity
from bayplan.plugins.intree.volume_binding.provisioning import Obstacle, VolumeProvisioning
from bayplan.plugins.volumes.claims import SELECTED_NODE
from bayplan.plugins.volumes.csi_migration import (
    InTreePlugin,
    TranslationError,
    migrated_plugins,
    plugin_of_volume,
    translated_affinity,
)
from bayplan.plugins.volumes.csi_nodes import MigratedRows

__all__ = ["REASONS", "Binding", "PodClaims", "PodVolumeFinder", "PodVolumes", "VolumeConflict", "volume_places"]


class VolumeConflict(IntFlag):
    """Why a node cannot take the pod; the order of the bits is the order of the reasons."""

    NODE_AFFINITY = 1
    NO_VOLUME = 2
    NO_SPACE = 4
    VOLUME_GONE = 8


REASONS = {
    VolumeConflict.NODE_AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    VolumeConflict.NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    VolumeConflict.NO_SPACE: "node(s) did not have enough free storage",
    VolumeConflict.VOLUME_GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
_STATUSES = tuple(
    Unresolvable(*(reason for conflict, reason in REASONS.items() if bits & conflict)) if bits else SUCCESS
    for bits in range(16)
)
_CONFLICT_OF = {Obstacle.NO_VOLUME: VolumeConflict.NO_VOLUME, Obstacle.NO_SPACE: VolumeConflict.NO_SPACE}


class PodClaims(NamedTuple):
    """The claims of a pod, as far as they restrict its nodes."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


class Binding(NamedTuple):
    volume: PersistentVolume
    claim: PersistentVolumeClaim


class PodVolumes(NamedTuple):
    """What is to be written for a pod on a node: volumes to bind, claims to have provisioned."""

    bindings: tuple[Binding, ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


class PodVolumeFinder:
    """Finds volumes for one node, and for all nodes at once."""

    def __init__(self, cluster: ClusterState, volumes: AssumedObjects[PersistentVolume]) -> None:
        self._cluster, self._volumes = cluster, volumes
        self._masks = PlaceMasks(cluster.nodes)
        self._migrated = MigratedRows(cluster)
        self._matcher = VolumeMatcher(cluster, volumes, self._masks)
        self._provisioning = VolumeProvisioning(cluster, self._masks)

    # One node

    def on_node(self, claims: PodClaims, node: NodeInfo) -> PodVolumes | Status:
        """What has to be written for the pod on a node, or why the node cannot take it."""
        try:
            conflicts = self._bound_conflicts(claims.bound, node)
            more, volumes = self._delayed_on_node(claims.delayed, node) if claims.delayed else (0, PodVolumes())
        except (ClaimError, TranslationError) as error:
            return Error(str(error), exception=error)
        return _STATUSES[conflicts | more] if conflicts | more else volumes

    def _bound_conflicts(self, bound: tuple[PersistentVolumeClaim, ...], node: NodeInfo) -> int:
        csi_node = self._cluster.objects.get(CSINode, node.name)
        for claim in bound:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                return VolumeConflict.VOLUME_GONE
            if not is_reachable(volume_places(volume, csi_node), node.labels):
                return VolumeConflict.NODE_AFFINITY
        return 0

    def _delayed_on_node(self, delayed: tuple[PersistentVolumeClaim, ...], node: NodeInfo) -> tuple[int, PodVolumes]:
        under_way, to_match = _divided(delayed)
        if any(claim.annotations[SELECTED_NODE] != node.name for claim in under_way):
            return VolumeConflict.NO_VOLUME, PodVolumes()
        bindings: dict[str, Binding] = {}
        to_provision = list(under_way)
        for claim in to_match:
            volume = self._matcher.choose(claim, node, bindings)
            if volume is None:
                to_provision.append(claim)
            else:
                bindings[volume.name] = Binding(volume, claim)
        for claim in to_provision:
            obstacle = self._provisioning.obstacle(claim, node)
            if obstacle is not None:
                return _CONFLICT_OF[obstacle], PodVolumes()
        return 0, PodVolumes(tuple(bindings.values()), tuple(to_provision))

    # All nodes

    def on_nodes(self, claims: PodClaims, nodes: NodeColumns) -> Verdicts:
        findings = _Findings(len(nodes))
        self._check_bound(claims.bound, nodes, findings)
        if claims.delayed:
            self._check_delayed(claims.delayed, nodes, findings)
        return findings.verdicts()

    def _check_bound(self, bound: tuple[PersistentVolumeClaim, ...], nodes: NodeColumns, findings: _Findings) -> None:
        for claim in bound:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                findings.reject(findings.clean(), VolumeConflict.VOLUME_GONE)
                return
            self._check_volume(volume, nodes, findings)

    def _check_volume(self, volume: PersistentVolume, nodes: NodeColumns, findings: _Findings) -> None:
        places, plugin = affinity_places(volume), _followed_plugin(volume)
        moved, problem = places, ""
        if plugin is not None:
            try:
                moved = places_of_affinity(translated_affinity(volume, plugin))
            except TranslationError as error:
                problem = _bad_translation(error)
        reachable = self._masks.of(places, nodes)
        if plugin is not None and (moved != places or problem):
            migrated = _cut(self._migrated.of(plugin.name), nodes)
            if problem:
                findings.fail(findings.clean() & migrated, problem)
            there = _or_all(self._masks.of(moved, nodes), nodes)
            reachable = np.where(migrated, there, _or_all(reachable, nodes))
        if reachable is not None:
            findings.reject(findings.clean() & ~reachable, VolumeConflict.NODE_AFFINITY)

    def _check_delayed(
        self, delayed: tuple[PersistentVolumeClaim, ...], nodes: NodeColumns, findings: _Findings
    ) -> None:
        under_way, to_match = _divided(delayed)
        todo = findings.without_error()
        for claim in under_way:
            here = nodes.rows == nodes.table.row_of.get(claim.annotations[SELECTED_NODE], -1)
            findings.reject(todo & ~here, VolumeConflict.NO_VOLUME)
            todo &= here
        if not todo.any():
            return
        to_provision = [(claim, todo.copy()) for claim in under_way]
        try:
            found = self._matcher.choose_all(to_match)
        except ClaimError as error:
            findings.fail(todo, str(error))
            return
        to_provision += [
            (claim, todo if rows is None else ~_cut(rows, nodes)) for claim, rows in zip(to_match, found, strict=True)
        ]
        for claim, needed in to_provision:
            todo = self._check_provision(claim, needed & todo, nodes, findings, todo)

    def _check_provision(
        self, claim: PersistentVolumeClaim, needed: BoolN, nodes: NodeColumns, findings: _Findings, todo: BoolN
    ) -> BoolN:
        """The positions that remain after a claim was checked; only the first conflict of a node counts."""
        if not needed.any():
            return todo
        try:
            allowed = self._provisioning.allowed_rows(claim)
            roomy = self._provisioning.rows_with_space(claim)
        except ClaimError as error:
            findings.fail(needed, str(error))
            return todo & ~needed
        for rows, conflict in ((allowed, VolumeConflict.NO_VOLUME), (roomy, VolumeConflict.NO_SPACE)):
            if rows is not None:
                blocked = needed & ~_cut(rows, nodes)
                findings.reject(blocked, conflict)
                needed, todo = needed & ~blocked, todo & ~blocked
        return todo


class _Findings:
    """Conflicts and errors by position. An error hides the conflicts of its node."""

    def __init__(self, length: int) -> None:
        self._conflicts: Int32N = np.zeros(length, dtype=np.int32)
        self._statuses = list(_STATUSES)

    def clean(self) -> BoolN:
        """Positions without conflicts and errors."""
        return np.equal(self._conflicts, 0)

    def without_error(self) -> BoolN:
        return np.less(self._conflicts, len(_STATUSES))

    def reject(self, where: BoolN, conflict: VolumeConflict) -> None:
        self._conflicts |= where * np.int32(conflict)

    def fail(self, where: BoolN, problem: str) -> None:
        if where.any():
            self._conflicts[where] = len(self._statuses)
            self._statuses.append(Error(problem))

    def verdicts(self) -> Verdicts:
        return Verdicts.of(self._conflicts, self._statuses)


def volume_places(volume: PersistentVolume, csi_node: CSINode | None) -> Places:
    """The places from which a volume is reachable, for the kind of node given. Raises TranslationError."""
    plugin = _followed_plugin(volume)
    if plugin is None or plugin.name not in migrated_plugins(csi_node):
        return affinity_places(volume)
    try:
        return places_of_affinity(translated_affinity(volume, plugin))
    except TranslationError as error:
        raise TranslationError(_bad_translation(error)) from error


def _followed_plugin(volume: PersistentVolume) -> InTreePlugin | None:
    plugin = plugin_of_volume(volume)
    return plugin if plugin is not None and plugin.is_followed else None


def _divided(
    delayed: tuple[PersistentVolumeClaim, ...],
) -> tuple[list[PersistentVolumeClaim], list[PersistentVolumeClaim]]:
    """Claims that a provisioner works on for some node, and the others, smallest request first."""
    under_way = [claim for claim in delayed if SELECTED_NODE in claim.annotations]
    to_match = [claim for claim in delayed if SELECTED_NODE not in claim.annotations]
    return under_way, sorted(to_match, key=lambda claim: requested_bytes(claim) or 0)


def _cut(rows: BoolN, nodes: NodeColumns) -> BoolN:
    return rows if nodes.is_all else rows[nodes.rows]


def _or_all(mask: BoolN | None, nodes: NodeColumns) -> BoolN:
    return np.ones(len(nodes), dtype=np.bool_) if mask is None else mask


def _bad_translation(error: TranslationError) -> str:
    return f"could not translate pv: {error}"
