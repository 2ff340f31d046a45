"""DeviceTaintRules: taints that rules put on devices, and devices that follow when rules come and go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    DRIVER,
    claim,
    device,
    devices_of,
    evaluate,
    refusal,
    request,
    slice_of,
)

from bayplan.api.decode import decode_object
from bayplan.api.devices import DeviceTaintRule, ResourceSlice
from bayplan.app.watching import wanted_kinds
from bayplan.cluster.devices import Devices
from bayplan.cluster.objects import Objects
from bayplan.config.own import BayplanConfig

Json = dict[str, Any]
TAINT = {"key": "broken", "value": "fan", "effect": "NoSchedule"}


def rule(name: str = "rule", taint: Json = TAINT, **selector: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"device": "a"}, ["r: pool/b"]),
        ({"driver": DRIVER, "pool": "pool", "device": "a"}, ["r: pool/b"]),
        ({"driver": "nic.example.com", "device": "a"}, ["r: pool/a"]),
        ({"pool": "other"}, ["r: pool/a"]),
        ({"pool": "pool"}, []),
        ({}, []),
    ],
)
def test_a_rule_taints_the_devices_that_it_selects(selector: dict[str, str], expected: list[str]) -> None:
    outcome = evaluate(slice_of(device("a"), device("b")), claim("c", request()), rule(**selector))

    assert devices_of(outcome) == expected


def test_the_taint_of_a_rule_is_tolerated_like_any_other() -> None:
    tolerant = request(tolerations=[{"key": "broken", "operator": "Exists"}])
    outcome = evaluate(slice_of(device("a")), claim("c", tolerant), rule())

    assert devices_of(outcome) == ["r: pool/a"]


def test_taints_of_the_driver_and_of_several_rules_add_up() -> None:
    published = slice_of(device("a", taints=[{"key": "hot", "effect": "NoExecute"}]))
    tolerations = [{"key": key, "operator": "Exists"} for key in ("hot", "broken")]
    second = rule("second", {"key": "old", "effect": "NoExecute"})
    outcome = evaluate(published, claim("c", request(tolerations=tolerations)), rule(), second)

    assert refusal(outcome) == "cannot allocate all claims"


def test_devices_follow_rules_that_come_change_and_go() -> None:
    objects = Objects()
    objects.put(decode_object(slice_of(device("a"), device("b"))))
    devices = Devices(objects)

    def tainted() -> list[str]:
        return [each.raw.name for published in devices.slices_on("n") for each in published.devices if each.taints]

    before = devices.slice_changes.position
    objects.put(decode_object(rule(device="a")))
    assert tainted() == ["a"]
    assert devices.slice_changes.since(before) == {"n"}
    objects.put(decode_object(rule(device="b")))
    assert tainted() == ["b"]
    again = decode_object(slice_of(device("a"), device("b"), device("c")))
    assert isinstance(again, ResourceSlice)
    objects.put(msgspec.structs.replace(again, metadata=msgspec.structs.replace(again.metadata, resource_version="2")))
    assert tainted() == ["b"]
    gone = decode_object(rule(device="b"))
    assert gone is not None
    objects.remove(gone)
    assert tainted() == []


@pytest.mark.parametrize("is_on", [False, True])
def test_rules_are_read_where_the_setting_says_so(is_on: bool) -> None:
    kinds = [kind.type for kind in wanted_kinds(BayplanConfig(device_taint_rules=is_on))]

    assert (DeviceTaintRule in kinds) is is_on
