"""Which devices are chosen: combinations within a request, all devices, constraints, taints, shares."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    allocated,
    claim,
    device,
    device_class,
    every,
    held,
    request,
    result,
    slice_of,
    summary,
)

Json = dict[str, Any]
CANNOT, INVALID = "cannot allocate all claims", "invalid resource pools were encountered"
NUMA, COLOUR = "gpu.example.com/numa", "gpu.example.com/colour"
SHARED = "device.allowMultipleAllocations"


def plain(*names: str, **slice_fields: Any) -> Json:
    return slice_of(*(device(name) for name in names), **slice_fields)


def with_values(name: str, **devices: Any) -> Json:
    return slice_of(*(device(each, attributes={name: value}) for each, value in devices.items()))


def index_in(*numbers: int) -> str:
    return f'device.attributes["gpu.example.com"].numa in {list(numbers)}'


COMBINATIONS = [
    pytest.param([plain("a"), claim("c", request())], "r: pool/a", id="one"),
    pytest.param([claim("c", request())], CANNOT, id="no slices"),
    pytest.param([plain("a"), held("a"), claim("c", request())], CANNOT, id="taken"),
    pytest.param([plain("a", "b"), held("a"), claim("c", request())], "r: pool/b", id="one is taken"),
    pytest.param(
        [plain("a", pool="p2"), plain("a", pool="p1"), plain("a", pool="p3"), claim("c", request(count=3))],
        "r: p1/a, r: p2/a, r: p3/a",
        id="pools by name",
    ),
    pytest.param(
        [plain("a", pool="p", driver="z.example.com"), plain("a", pool="q"), claim("c", request(count=2))],
        "r: q/a, r: p/a",
        id="drivers before pools",
    ),
    pytest.param(
        [with_values("numa", a=0, b=1, c=2), claim("c", request("x", count=2), request("y", index_in(0)))],
        "x: pool/b, x: pool/c, y: pool/a",
        id="a later request needs the first device",
    ),
    pytest.param(
        [with_values("numa", a=0, b=1, c=2), claim("c", request("x", count=2), request("y", index_in(1)))],
        "x: pool/a, x: pool/c, y: pool/b",
        id="a later request needs the second device",
    ),
    pytest.param(
        [with_values("numa", a=0, b=1), claim("c", request("x")), claim("d", request("y", index_in(0)))],
        "x: pool/b, y: pool/a",
        id="a later claim needs the first device",
    ),
    pytest.param(
        [with_values("numa", a=0, b=1), claim("c", request("x", index_in(0)), request("y", index_in(0)))],
        CANNOT,
        id="two requests, one device",
    ),
    pytest.param([plain("a", "b", count=2), claim("c", request())], CANNOT, id="an incomplete pool"),
    pytest.param(
        [plain("a", "a", pool="p"), plain("b", pool="q"), claim("c", request())], "r: q/b", id="an invalid pool beside"
    ),
    pytest.param([plain("a", "a"), claim("c", request())], INVALID, id="an invalid pool alone"),
]


@pytest.mark.parametrize(("objects", "expected"), COMBINATIONS)
def test_the_first_combination_in_order_is_taken(objects: list[Json], expected: str) -> None:
    assert summary(*objects) == expected


ADMIN = {"adminAccess": True}
EVERYTHING = [
    pytest.param([plain("a"), claim("c", every())], "r: pool/a", id="one"),
    pytest.param([plain("a", pool="p"), plain("b", pool="q"), claim("c", every())], "r: p/a, r: q/b", id="two pools"),
    pytest.param([claim("c", every())], CANNOT, id="none"),
    pytest.param([plain("a", "b"), held("a"), claim("c", every())], CANNOT, id="one is taken"),
    pytest.param([plain("a", "b"), held("a"), claim("c", every(**ADMIN))], "r: pool/a, r: pool/b", id="for an admin"),
    pytest.param(
        [plain("a"), claim("c", every("x", **ADMIN)), claim("d", every("y", **ADMIN))],
        "x: pool/a, y: pool/a",
        id="for two admins",
    ),
    pytest.param(
        [plain("a"), claim("c", request("x")), claim("d", every("y", **ADMIN))],
        "x: pool/a, y: pool/a",
        id="for an admin after a user",
    ),
    pytest.param(
        [with_values("numa", a=0, b=1), claim("c", every("x", index_in(0)), request("y"))],
        "x: pool/a, y: pool/b",
        id="all of some, and another",
    ),
    pytest.param(
        [with_values("numa", a=0, b=1), claim("c", request("y"), every("x", index_in(0)))],
        "y: pool/b, x: pool/a",
        id="another, and all of some",
    ),
    pytest.param([plain("a", "b"), claim("c", request("y"), every("x"))], CANNOT, id="another, and all"),
    pytest.param(
        [plain(*(f"d{n:02}" for n in range(32))), claim("c", every())],
        ", ".join(f"r: pool/d{n:02}" for n in range(32)),
        id="as many as a claim can hold",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), EVERYTHING)
def test_all_devices_means_all_that_are_selected(objects: list[Json], expected: str) -> None:
    assert summary(*objects) == expected


SAME, DIFFERENT = [{"matchAttribute": COLOUR}], [{"distinctAttribute": COLOUR}]
CONSTRAINTS = [
    pytest.param([with_values("colour", a=1, b=2)], SAME, CANNOT, id="numbers differ"),
    pytest.param([with_values("colour", a=1, b=1)], SAME, "r: pool/a, r: pool/b", id="numbers agree"),
    pytest.param([with_values("colour", a="x", b="y")], SAME, CANNOT, id="texts differ"),
    pytest.param([with_values("colour", a="x", b="x")], SAME, "r: pool/a, r: pool/b", id="texts agree"),
    pytest.param([with_values("colour", a=True, b=False)], SAME, CANNOT, id="truths differ"),
    pytest.param([with_values("colour", a=True, b=True)], SAME, "r: pool/a, r: pool/b", id="truths agree"),
    pytest.param(
        [with_values("colour", a={"version": "1.0.0"}, b={"version": "2.0.0"})], SAME, CANNOT, id="versions differ"
    ),
    pytest.param(
        [with_values("colour", a={"version": "1.0.0"}, b={"version": "1.0.0"})],
        SAME,
        "r: pool/a, r: pool/b",
        id="versions agree",
    ),
    pytest.param([with_values("other", a=1, b=1)], SAME, CANNOT, id="no such attribute"),
    pytest.param([with_values("other", a=1, b=2)], DIFFERENT, CANNOT, id="no such attribute to differ in"),
    pytest.param([with_values("colour", a=1, b=1)], DIFFERENT, CANNOT, id="two alike"),
    pytest.param([with_values("colour", a=1, b=1, c=2)], DIFFERENT, "r: pool/a, r: pool/c", id="two that differ"),
    pytest.param([with_values("colour", a="x", b=1)], DIFFERENT, "r: pool/a, r: pool/b", id="types differ"),
    pytest.param([with_values("colour", a=1, b=2, c=2)], SAME, "r: pool/b, r: pool/c", id="the first is given up"),
]


@pytest.mark.parametrize(("slices", "constraints", "expected"), CONSTRAINTS)
def test_constraints_compare_values_of_one_type(slices: list[Json], constraints: list[Json], expected: str) -> None:
    assert summary(*slices, claim("c", request(count=2), constraints=constraints)) == expected


def taint(key: str, effect: str = "NoSchedule") -> Json:
    return {"key": key, "value": "v", "effect": effect}


ANY = [{"operator": "Exists"}]
TAINTS = [
    pytest.param([taint("x")], [], False, id="one"),
    pytest.param([taint("x", "NoExecute")], [], False, id="one that evicts"),
    pytest.param([taint("x", "None")], [], True, id="one without effect"),
    pytest.param([taint("x"), taint("y", "None")], [{"key": "x", "operator": "Exists"}], True, id="one of each"),
    pytest.param([taint("x"), taint("y")], [{"key": "x", "operator": "Exists"}], False, id="one of two tolerated"),
    pytest.param([taint("x"), taint("y")], ANY, True, id="all tolerated"),
    pytest.param(
        [taint("x"), taint("y")],
        [{"key": "x", "operator": "Equal", "value": "v"}, {"key": "y", "operator": "Exists"}],
        True,
        id="each tolerated",
    ),
    pytest.param(
        [taint("x", "NoExecute")], [{"operator": "Exists", "effect": "NoSchedule"}], False, id="another effect"
    ),
]


@pytest.mark.parametrize(("taints", "tolerations", "expected"), TAINTS)
@pytest.mark.parametrize("asked", [request, every])
def test_taints_keep_devices_from_requests_that_do_not_tolerate_them(
    taints: list[Json], tolerations: list[Json], expected: bool, asked: Any
) -> None:
    wanted = claim("c", asked(tolerations=tolerations))

    assert summary(slice_of(device("a", taints=taints)), wanted) == ("r: pool/a" if expected else CANNOT)


def shared(name: str, memory: str | None = "4Gi", **fields: Any) -> Json:
    capacity = {} if memory is None else {"memory": memory}
    return device(name, allowMultipleAllocations=True, capacity=capacity, **fields)


def share(name: str, memory: str) -> Json:
    return held(name, shareID="00000000-0000-4000-8000-000000000001", consumedCapacity={"memory": memory})


def wanting(memory: str, name: str = "r", **fields: Any) -> Json:
    return request(name, capacity={"requests": {"memory": memory}}, **fields)


SHARES = [
    pytest.param([slice_of(shared("a")), claim("c", wanting("1Gi"))], "r: pool/a", id="a part"),
    pytest.param([slice_of(shared("a")), claim("c", wanting("5Gi"))], CANNOT, id="more than there is"),
    pytest.param([slice_of(shared("a", None)), claim("c", wanting("1Gi"))], CANNOT, id="no such capacity"),
    pytest.param(
        [slice_of(shared("a", None)), claim("c", request("x")), claim("d", request("y"))],
        "x: pool/a, y: pool/a",
        id="without capacity for everybody",
    ),
    pytest.param(
        [slice_of(shared("a")), claim("c", request("x")), claim("d", request("y"))], CANNOT, id="the whole, twice"
    ),
    pytest.param(
        [slice_of(shared("a"), shared("b")), claim("c", request("x")), claim("d", request("y"))],
        "x: pool/a, y: pool/b",
        id="the whole of each",
    ),
    pytest.param(
        [slice_of(shared("a")), claim("c", wanting("2Gi", "x")), claim("d", wanting("2Gi", "y"))],
        "x: pool/a, y: pool/a",
        id="two halves",
    ),
    pytest.param(
        [slice_of(shared("a"), shared("b")), share("a", "3Gi"), claim("c", wanting("2Gi"))],
        "r: pool/b",
        id="others left too little",
    ),
    pytest.param([slice_of(shared("a")), share("a", "3Gi"), claim("c", wanting("1Gi"))], "r: pool/a", id="the rest"),
    pytest.param([slice_of(shared("a")), held("a"), claim("c", wanting("1Gi"))], CANNOT, id="others have the whole"),
    pytest.param(
        [slice_of(shared("a", "2Gi"), shared("b", "4Gi")), claim("c", wanting("1Gi", "x"), wanting("4Gi", "y"))],
        "x: pool/a, y: pool/b",
        id="a small and a large one",
    ),
    pytest.param(
        [slice_of(shared("a", "4Gi"), shared("b", "2Gi")), claim("c", wanting("1Gi", "x"), wanting("4Gi", "y"))],
        "x: pool/b, y: pool/a",
        id="the first share moves for the second",
    ),
    pytest.param(
        [slice_of(shared("a"), device("b")), device_class("gpu", f"!{SHARED}"), claim("c", request())],
        "r: pool/b",
        id="a class without shared devices",
    ),
    pytest.param(
        [slice_of(device("b"), shared("a")), claim("c", request("r", SHARED))], "r: pool/a", id="shared devices only"
    ),
    pytest.param(
        [slice_of(device("a", capacity={"memory": "4Gi"})), claim("c", wanting("1Gi"))],
        "r: pool/a",
        id="a dedicated device that is large enough",
    ),
    pytest.param(
        [slice_of(device("a", capacity={"memory": "4Gi"})), claim("c", wanting("5Gi"))],
        CANNOT,
        id="a dedicated device that is too small",
    ),
    pytest.param(
        [slice_of(device("a", capacity={"memory": "4Gi"})), claim("c", wanting("1Gi", "x"), wanting("1Gi", "y"))],
        CANNOT,
        id="a dedicated device is not divided",
    ),
    pytest.param(
        [
            slice_of(device("a")),
            claim("h", request(), status=allocated(result("a", shareID="00000000-0000-4000-8000-000000000001"))),
            claim("c", request()),
        ],
        "r: pool/a",
        id="a device that was shared before",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), SHARES)
def test_shares_are_given_while_capacity_is_left(objects: list[Json], expected: str) -> None:
    assert summary(*objects) == expected
