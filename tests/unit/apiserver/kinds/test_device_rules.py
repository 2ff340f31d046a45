"""What the embedded server refuses of claims, slices and classes, and what it fills in."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.kinds.device_rules import (
    default_claim,
    validate_claim,
    validate_class,
    validate_slice,
    validate_template,
)


def claim(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests), **devices}}}


def exactly(**fields: Any) -> dict[str, Any]:
    asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **fields}
    return {"name": "r", "exactly": asked}


def selecting(expression: str) -> dict[str, Any]:
    return exactly(selectors=[{"cel": {"expression": expression}}])


def test_mode_and_count_are_filled_in() -> None:
    document = claim({"name": "r", "exactly": {"deviceClassName": "gpu"}})
    default_claim(document)

    assert document["spec"]["devices"]["requests"][0]["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
    }


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (claim({"name": "r"}), "spec.devices.requests[0]"),
        (claim(exactly(deviceClassName="")), "spec.devices.requests[0].exactly.deviceClassName"),
        (claim(exactly(allocationMode="Some")), "spec.devices.requests[0].exactly.allocationMode"),
        (claim(exactly(count=-1)), "spec.devices.requests[0].exactly.count"),
        (claim(exactly(allocationMode="All", count=2)), "spec.devices.requests[0].exactly.count"),
        (claim(exactly(), exactly()), "spec.devices.requests[1].name"),
        (claim(selecting("device.")), "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (claim(selecting("1 + 1")), "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (claim(selecting("x" * 20_000)), "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (claim(exactly(), constraints=[{}]), "spec.devices.constraints[0]"),
        (claim(exactly(), constraints=[{"matchAttribute": "numa"}]), "spec.devices.constraints[0].matchAttribute"),
        (
            claim(exactly(), constraints=[{"matchAttribute": "a/b", "requests": ["z"]}]),
            "spec.devices.constraints[0].requests[0]",
        ),
        (claim(*({**exactly(), "name": f"r{n}"} for n in range(33))), "spec.devices.requests"),
    ],
)
def test_a_claim_that_kubernetes_refuses_is_refused(document: dict[str, Any], field: str) -> None:
    assert [cause.field for cause in validate_claim(document, None)] == [field]


def test_the_spec_of_claims_and_templates_does_not_change() -> None:
    before, after = claim(exactly()), claim(exactly(count=2))

    assert [cause.field for cause in validate_claim(after, before)] == ["spec"]
    assert [cause.field for cause in validate_template({"spec": after}, {"spec": before})] == ["spec"]


def test_an_allocation_does_not_change_but_for_its_time() -> None:
    before = claim(exactly()) | {"status": {"allocation": {"devices": {"results": []}}}}
    timed = claim(exactly()) | {"status": {"allocation": {"devices": {"results": []}, "allocationTimestamp": "x"}}}
    other = claim(exactly()) | {"status": {"allocation": {"devices": {"results": [{"request": "r"}]}}}}

    assert validate_claim(timed, before) == []
    assert [cause.field for cause in validate_claim(other, before)] == ["status.allocation"]


def slice_(**spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"spec": {"driver": "d", "pool": pool, "nodeName": "n", **spec}}


def device(**fields: Any) -> dict[str, Any]:
    return {"name": "a", **fields}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (slice_(driver=""), "spec.driver"),
        (slice_(nodeName=""), "spec"),
        (slice_(allNodes=True), "spec"),
        (slice_(pool={"name": "p", "resourceSliceCount": 0}), "spec.pool.resourceSliceCount"),
        (slice_(devices=[{"name": "a"}, {"name": "a"}]), "spec.devices[1].name"),
        (slice_(devices=[{"name": "a", "attributes": {"x": {}}}]), "spec.devices[0].attributes[x]"),
        (
            slice_(devices=[{"name": "a", "attributes": {"x": {"int": 1, "bool": True}}}]),
            "spec.devices[0].attributes[x]",
        ),
        (
            slice_(devices=[{"name": "a", "taints": [{"key": "k", "effect": "Never"}]}]),
            "spec.devices[0].taints[0].effect",
        ),
        (slice_(devices=[{"name": f"d{n}"} for n in range(129)]), "spec.devices"),
        (slice_(devices=[{"name": "a"}], sharedCounters=[{"name": "x"}]), "spec"),
    ],
)
def test_a_slice_that_kubernetes_refuses_is_refused(document: dict[str, Any], field: str) -> None:
    assert [cause.field for cause in validate_slice(document, None)] == [field]


def test_the_selectors_of_a_class_are_compiled() -> None:
    broken = {"spec": {"selectors": [{"cel": {"expression": "device.driver =="}}]}}

    assert [cause.field for cause in validate_class(broken, None)] == ["spec.selectors[0].cel.expression"]
    assert validate_class({"spec": {"selectors": [{"cel": {"expression": "true"}}]}}, None) == []
