"""`Devices`: what is taken, from the decision to the watch and back."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.unit.plugins.intree.dynamic_resources.device_cases import allocated, claim, device, request, result, slice_of

from bayplan.api.devices import ResourceClaim, ResourceSlice
from bayplan.cluster.devices import Devices
from bayplan.cluster.objects import Objects

A, B = ("gpu.example.com", "pool", "a"), ("gpu.example.com", "pool", "b")


def free(version: str = "1", uid: str = "uid-c") -> ResourceClaim:
    return msgspec.convert(claim("c", request(), metadata={"resourceVersion": version, "uid": uid}), ResourceClaim)


def held(*names: str, version: str = "2", uid: str = "uid-c", **more: Any) -> ResourceClaim:
    status = allocated(*(result(name, **more) for name in names))
    metadata = {"resourceVersion": version, "uid": uid}
    return msgspec.convert(claim("c", request(), status=status, metadata=metadata), ResourceClaim)


def cluster(*items: Any) -> tuple[Objects, Devices]:
    objects = Objects()
    for item in items:
        objects.put(item)
    return objects, Devices(objects)


def test_allocations_that_were_there_before_count() -> None:
    _, devices = cluster(held("a"))

    assert set(devices.use.dedicated) == {A}


def test_a_decision_counts_until_it_is_dropped() -> None:
    _, devices = cluster(free())
    devices.put_in_flight(held("a"))
    assert set(devices.use.dedicated) == {A}
    assert devices.in_flight("uid-c") is not None

    devices.drop_in_flight(free())
    assert not devices.use.dedicated
    assert devices.in_flight("uid-c") is None


def test_a_decision_that_was_written_stays_when_it_is_no_longer_in_flight() -> None:
    _, devices = cluster(free())
    devices.put_in_flight(held("a"))
    devices.wrote(held("a"))
    devices.drop_in_flight(free())

    assert set(devices.use.dedicated) == {A}


def test_what_was_written_counts_until_the_watch_brings_something_newer() -> None:
    objects, devices = cluster(free())
    devices.wrote(held("a", version="5"))
    objects.put(free("4"))
    assert set(devices.use.dedicated) == {A}

    objects.put(free("6"))
    assert not devices.use.dedicated
    assert devices.claim("default/c") == free("6")


def test_a_write_that_comes_back_late_changes_nothing() -> None:
    objects, devices = cluster(free())
    objects.put(held("b", version="7"))
    devices.wrote(held("a", version="5"))

    assert set(devices.use.dedicated) == {B}


def test_a_deleted_claim_gives_its_devices_back() -> None:
    objects, devices = cluster(held("a", "b"))
    objects.remove(held("a", "b"))

    assert not devices.use.dedicated
    assert devices.claim("default/c") is None


def test_a_claim_that_was_written_and_deleted_gives_them_back_too() -> None:
    objects, devices = cluster(free())
    devices.wrote(held("a", version="5"))
    objects.remove(free())

    assert not devices.use.dedicated


def test_a_new_claim_of_the_same_name_starts_without_devices() -> None:
    objects, devices = cluster(held("a"))
    objects.put(free("9", uid="another"))

    assert not devices.use.dedicated


def test_admin_access_takes_nothing() -> None:
    _, devices = cluster(held("a", adminAccess=True))

    assert not devices.use.is_allocated(A)


def test_shares_add_up_and_are_given_back() -> None:
    objects, devices = cluster()
    for number in range(2):
        share = result("a", shareID=f"s{number}", consumedCapacity={"memory": "1Gi"})
        objects.put(msgspec.convert(claim(f"c{number}", request(), status=allocated(share)), ResourceClaim))
    assert devices.use.consumed[A]["memory"] == 2 * 2**30 * 10**9
    assert not devices.use.dedicated

    for number in range(2):
        objects.remove(msgspec.convert(claim(f"c{number}", request()), ResourceClaim))
    assert not devices.use.is_allocated(A)
    assert devices.use.consumed == {}


def test_only_the_nodes_of_a_pool_hear_of_its_use() -> None:
    slices = [slice_of(device("a"), pool=name, node=name) for name in ("n", "m")]
    objects, devices = cluster(*(msgspec.convert(each, ResourceSlice) for each in slices))
    before = devices.use_changes.position
    objects.put(msgspec.convert(claim("c", request(), status=allocated(result("a", pool="n"))), ResourceClaim))

    assert devices.use_changes.since(before) == {"n"}


def test_everybody_hears_of_slices_that_several_nodes_reach() -> None:
    objects, devices = cluster()
    before = devices.slice_changes.position
    objects.put(msgspec.convert(slice_of(device("a"), allNodes=True), ResourceSlice))

    assert devices.slice_changes.since(before) == {""}


def test_claims_are_found_by_the_object_that_controls_them() -> None:
    objects, devices = cluster(owned("uid-pod"))
    assert [each.key for each in devices.claims_of("uid-pod")] == ["default/c"]

    objects.put(owned("uid-other"))
    assert devices.claims_of("uid-pod") == []
    assert [each.key for each in devices.claims_of("uid-other")] == ["default/c"]

    objects.remove(owned("uid-other"))
    assert devices.claims_of("uid-other") == []


def owned(uid: str) -> ResourceClaim:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    return msgspec.convert(claim("c", request(), metadata={"ownerReferences": [owner]}), ResourceClaim)
