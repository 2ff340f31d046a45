"""Where the claims of a pod can be met, compared with a plain reading of the rules on random clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import (
    SELECTED,
    VolumeCluster,
    capacity,
    claim,
    csi_driver,
    judged,
    storage_class,
    volume,
)

from bayplan.api.node_selectors import compile_node_selector
from bayplan.api.quantity import value
from bayplan.api.selectors import compile_selector
from bayplan.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.framework import CycleState
from bayplan.plugins.intree.volume_binding.plugin import BINDING, VolumeBinding

AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

NODES = [("n0", {"zone": "a", "host": "n0"}), ("n1", {"zone": "a", "host": "n1"}), ("n2", {"zone": "b"}), ("n3", {})]
SIZES = ("1Gi", "2Gi", "3Gi")
CLAIMS = ("c0", "c1", "c2")

_requirement = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("zone", "host")),
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
        "values": st.lists(st.sampled_from(("a", "b", "n0", "n1")), max_size=2),
    }
)
_affinity = st.none() | st.lists(
    st.fixed_dictionaries({"matchExpressions": st.lists(_requirement, max_size=2)}), max_size=2
)
_modes = st.lists(st.sampled_from(("ReadWriteOnce", "ReadOnlyMany")), min_size=1, max_size=2, unique=True)


@st.composite
def volumes(draw: st.DrawFn, number: int) -> PersistentVolume:
    return volume(
        f"v{number}",
        affinity=draw(_affinity),
        size=draw(st.sampled_from(SIZES)),
        phase=draw(st.sampled_from(("Available", "Available", "Released"))),
        claim=draw(st.sampled_from(("", "", "", "c0", "c1:uid-c1", "c0:other"))),
        storage_class=draw(st.sampled_from(("fast", "fast", "local"))),
        labels=draw(st.sampled_from(({}, {"kind": "x"}))),
        accessModes=draw(_modes),
        volumeMode=draw(st.sampled_from((None, "Filesystem", "Block"))),
        volumeAttributesClassName=draw(st.sampled_from((None, None, "gold"))),
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> PersistentVolumeClaim:
    kind = draw(st.sampled_from(("bound", "delayed", "delayed", "delayed", "selected")))
    common: dict[str, Any] = {
        "size": draw(st.sampled_from((*SIZES, None))),
        "storage_class": draw(st.sampled_from(("fast", "fast", "local"))),
        "accessModes": draw(_modes),
        "volumeMode": draw(st.sampled_from((None, None, "Block"))),
        "volumeAttributesClassName": draw(st.sampled_from((None, None, None, "gold"))),
    }
    if draw(st.integers(0, 3)) == 0:
        common["selector"] = {"matchLabels": {"kind": "x"}}
    if kind == "bound":
        return claim(name, bound_to=f"v{draw(st.integers(0, 6))}", **common)
    selected = {SELECTED: draw(st.sampled_from(("n0", "n2", "gone")))} if kind == "selected" else {}
    return claim(name, annotations=selected, **common)


_topologies = st.lists(
    st.fixed_dictionaries(
        {
            "matchLabelExpressions": st.lists(
                st.fixed_dictionaries(
                    {"key": st.sampled_from(("zone", "host")), "values": st.lists(st.sampled_from("ab"), max_size=2)}
                ),
                max_size=2,
            )
        }
    ),
    max_size=2,
)


@st.composite
def capacities(draw: st.DrawFn, number: int) -> CSIStorageCapacity:
    parts: dict[str, Any] = {"capacity": draw(st.sampled_from((None, *SIZES)))}
    parts["maximumVolumeSize"] = draw(st.sampled_from((None, None, *SIZES)))
    labels = draw(st.sampled_from(({"zone": "a"}, {"host": "n1"}, {})))
    parts["nodeTopology"] = draw(st.sampled_from((None, {"matchLabels": labels})))
    return capacity(f"s{number}", storage_class=draw(st.sampled_from(("fast", "local"))), **parts)


@st.composite
def clusters(draw: st.DrawFn) -> VolumeCluster:
    cluster = VolumeCluster(*(node(name, labels=labels) for name, labels in NODES))
    provisioners = st.sampled_from(("csi.x", "csi.x", "kubernetes.io/no-provisioner", ""))
    for name in ("fast", "local"):
        cluster.put(storage_class(name, provisioner=draw(provisioners), allowedTopologies=draw(_topologies)))
    cluster.put(csi_driver(storage_capacity=draw(st.booleans())))
    for number in range(draw(st.integers(0, 5))):
        cluster.put(draw(volumes(number)))
    for number in range(draw(st.integers(0, 3))):
        cluster.put(draw(capacities(number)))
    for name in CLAIMS:
        cluster.put(draw(claims(name)))
    return cluster


@settings(max_examples=250, deadline=None)
@given(cluster=clusters(), used=st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3))
def test_every_node_gets_the_reasons_that_the_rules_give(cluster: VolumeCluster, used: list[str]) -> None:
    """Also when the pod names a claim twice."""
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with(*used)
    statuses = judged(plugin, pod, cluster)
    objects = cluster.state.objects
    named = [objects.get(PersistentVolumeClaim, f"default/{name}") for name in used]

    expected = {name: Plainly(cluster, name, labels).reasons(named) for name, labels in NODES}
    assert {name: status.reasons for name, status in statuses.items()} == expected


@settings(max_examples=60, deadline=None)
@given(cluster=clusters(), used=st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3, unique=True))
def test_what_is_reserved_is_what_the_rules_choose(cluster: VolumeCluster, used: list[str]) -> None:
    plugin, pod = cluster.plugin(VolumeBinding), cluster.pod_with(*used)
    fitting = [name for name, status in judged(plugin, pod, cluster).items() if status.is_success]
    objects = cluster.state.objects
    named = [objects.get(PersistentVolumeClaim, f"default/{name}") for name in used]

    for name in fitting:
        state = CycleState()
        assert plugin.pre_filter(state, pod, cluster.columns) is None
        assert plugin.reserve(state, pod, name) is None
        promised = state[BINDING].reserved
        plainly = Plainly(cluster, name, dict(NODES)[name])
        assert plainly.reasons(named) == ()
        chosen = {} if promised is None else {b.claim.name: b.volume.name for b in promised.bindings}
        assert chosen == plainly.chosen
        plugin.unreserve(state, pod, name)


class Plainly:
    """The rules, read out one node at a time."""

    def __init__(self, cluster: VolumeCluster, name: str, labels: Mapping[str, str]) -> None:
        self.objects, self.name, self.labels = cluster.state.objects, name, labels
        self.chosen: dict[str, str] = {}

    def reasons(self, named: list[Any]) -> tuple[str, ...]:
        bound = self._bound([c for c in named if c.spec.volume_name])
        delayed = self._delayed([c for c in named if not c.spec.volume_name])
        return tuple(reason for reason in (AFFINITY, NO_VOLUME, NO_SPACE, GONE) if reason in (bound, delayed))

    def _bound(self, named: list[PersistentVolumeClaim]) -> str:
        for each in named:
            found = self.objects.get(PersistentVolume, each.spec.volume_name)
            if found is None:
                return GONE
            if not self._reaches(found):
                return AFFINITY
        return ""

    def _reaches(self, found: PersistentVolume) -> bool:
        if found.spec.node_affinity is None or found.spec.node_affinity.required is None:
            return True
        terms = compile_node_selector(found.spec.node_affinity.required)
        return any(term.matches(self.labels, self.name) for term in terms)

    def _delayed(self, named: list[PersistentVolumeClaim]) -> str:
        self.chosen = {}
        provision = []
        for each in named:
            if SELECTED in each.annotations:
                if each.annotations[SELECTED] != self.name:
                    return NO_VOLUME
                provision.append(each)
        taken: set[str] = set()
        waiting = [each for each in named if SELECTED not in each.annotations]
        for each in sorted(waiting, key=_wanted):
            found = self._match(each, taken)
            if found is None:
                provision.append(each)
            else:
                taken.add(found.name)
                self.chosen[each.name] = found.name
        for each in provision:
            obstacle = self._obstacle(each)
            if obstacle:
                return obstacle
        return ""

    def _match(self, wanted: PersistentVolumeClaim, taken: set[str]) -> PersistentVolume | None:
        best: PersistentVolume | None = None
        for found in sorted(self.objects.list(PersistentVolume), key=lambda v: v.name):
            if found.name in taken or found.spec.storage_class_name != wanted.spec.storage_class_name:
                continue
            reference = found.spec.claim_ref
            is_own = (
                reference is not None and reference.name == wanted.name and reference.uid in ("", wanted.metadata.uid)
            )
            if reference is not None and not is_own:
                continue
            if _size(found) < _wanted(wanted) or not _alike(found, wanted):
                continue
            if is_own:
                return found if self._reaches(found) else None
            if found.status.phase != "Available" or not self._reaches(found):
                continue
            if wanted.spec.selector is not None and not compile_selector(wanted.spec.selector).matches(found.labels):
                continue
            if not set(wanted.spec.access_modes or ()) <= set(found.spec.access_modes or ()):
                continue
            if best is None or _size(found) < _size(best):
                best = found
        return best

    def _obstacle(self, wanted: PersistentVolumeClaim) -> str:
        found = self.objects.get(StorageClass, wanted.spec.storage_class_name or "")
        assert found is not None
        if found.provisioner in ("", "kubernetes.io/no-provisioner") or not self._is_allowed(found):
            return NO_VOLUME
        driver = self.objects.get(CSIDriver, found.provisioner)
        if driver is None or not driver.spec.storage_capacity or wanted.spec.resources is None:
            return ""
        return (
            "" if any(self._holds(each, found, wanted) for each in self.objects.list(CSIStorageCapacity)) else NO_SPACE
        )

    def _is_allowed(self, found: StorageClass) -> bool:
        return not found.allowed_topologies or any(
            term.match_label_expressions
            and all(self.labels.get(r.key) in (r.values or []) for r in term.match_label_expressions)
            for term in found.allowed_topologies
        )

    def _holds(self, each: CSIStorageCapacity, found: StorageClass, wanted: PersistentVolumeClaim) -> bool:
        limit = each.maximum_volume_size or each.capacity
        if each.storage_class_name != found.name or limit is None or value(limit) < _wanted(wanted):
            return False
        return each.node_topology is not None and compile_selector(each.node_topology).matches(self.labels)


def _wanted(wanted: PersistentVolumeClaim) -> int:
    resources = wanted.spec.resources
    return value((resources.requests or {}).get("storage", 0)) if resources is not None else 0


def _size(found: PersistentVolume) -> int:
    return value((found.spec.capacity or {}).get("storage", 0))


def _alike(found: PersistentVolume, wanted: PersistentVolumeClaim) -> bool:
    mode = (found.spec.volume_mode or "Filesystem") == (wanted.spec.volume_mode or "Filesystem")
    return mode and found.spec.volume_attributes_class_name == wanted.spec.volume_attributes_class_name
