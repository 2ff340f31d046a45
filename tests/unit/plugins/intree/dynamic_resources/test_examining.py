"""What each device of a node is to a request, and what keeps devices that would do from being enough."""

from __future__ import annotations

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    DRIVER,
    Json,
    claim,
    counters,
    device,
    device_class,
    held,
    node,
    pod,
    request,
    result,
    slice_of,
    takes,
)

from bayplan.api.decode import decode_object
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.app.settings import load_settings
from bayplan.explain.builders import now_of
from bayplan.explain.claims.wording import sentence
from bayplan.explain.device_report import lacking_cause, lacks
from bayplan.explain.model import DeviceReport

LARGE = f'device.attributes["{DRIVER}"].size > 4'


def report_of(*objects: Json) -> DeviceReport:
    scheduler, target = _staged(objects)
    info = scheduler.info(target)
    decision = scheduler.decide(info, explains=True)
    now = now_of(scheduler.framework("default-scheduler"), decision)
    assert now.devices is not None
    return now.devices


def _staged(objects: tuple[Json, ...]) -> tuple[OfflineScheduler, Pod]:
    names = [each["metadata"]["name"] for each in objects if each["kind"] == "ResourceClaim" and "status" not in each]
    target = decode_object(pod(*names), where="pod")
    assert isinstance(target, Pod)
    settings = load_settings(None, [])
    decoded = [decode_object(each, where=each["kind"]) for each in (node(), device_class(), *objects)]
    return OfflineScheduler(settings.profiles, settings.registry, [each for each in decoded if each]), target


def phrases(report: DeviceReport) -> dict[str, str]:
    found = {}
    for asked in report.nodes[0].requests:
        found |= {fact.device.rpartition("/")[2]: f"{fact.state}: {fact.phrase}" for fact in asked.devices}
    return found


def test_every_device_has_the_first_thing_that_the_search_would_hold_against_it() -> None:
    taint = {"key": "broken", "value": "yes", "effect": "NoSchedule"}
    found = report_of(
        slice_of(
            device("free", attributes={"size": 8}),
            device("held", attributes={"size": 8}),
            device("small", attributes={"size": 2}),
            device("tainted", attributes={"size": 8}, taints=[taint]),
        ),
        held("held"),
        claim("c", request("r", LARGE, count=2)),
    )

    assert phrases(found) == {
        "free": "free: is free and would do",
        "held": "taken: is taken by claim default/held-held, reserved for default/other",
        "small": f"refused: is refused by claim default/c: `{LARGE}` is false "
        f'(device.attributes["{DRIVER}"].size is 2)',
        "tainted": "tainted: has the taint broken=yes:NoSchedule, which is not tolerated",
    }
    claimed = lacks(found, "default/target", 1)
    assert claimed is not None
    assert sentence(claimed) == (
        "default/target is pending: the node lacks devices; n has 1 of 2 for default/c/r "
        "(1 refused, 1 tainted, 1 taken)."
    )
    assert lacking_cause(found) == "2 of class gpu wanted, no node has more than 1 that would do"


@pytest.mark.parametrize(
    ("shared", "phrase"),
    [
        (
            slice_of(device("d", capacity={"memory": "40Gi"}, allowMultipleAllocations=True)),
            "short: is short of capacity memory: it needs 50Gi and 40Gi is left",
        ),
        (
            slice_of(device("d", capacity={"other": "40Gi"})),
            "short: is short of capacity memory: it needs 50Gi and 0 is left",
        ),
    ],
)
def test_a_device_without_the_capacity_says_what_is_left(shared: Json, phrase: str) -> None:
    found = report_of(shared, claim("c", request("r", capacity={"requests": {"memory": "50Gi"}})))

    assert phrases(found) == {"d": phrase}


def test_a_partition_without_its_counter_says_what_is_left() -> None:
    partition = {"consumesCounters": [takes("gpu", memory="30Gi")]}
    found = report_of(
        slice_of(device("a", **partition), device("b", **partition), count=2),
        slice_of(name="sets", count=2, sharedCounters=[counters("gpu", memory="40Gi")]),
        held("a"),
        claim("c", request()),
    )

    assert phrases(found)["b"] == "short: is short of counter memory of gpu: it needs 30Gi and 10Gi is left"


def test_devices_that_a_constraint_splits_are_counted_by_value() -> None:
    found = report_of(
        slice_of(device("a", attributes={"root": "x"}), device("b", attributes={"root": "y"}), device("c")),
        claim("c", request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/root"}]),
    )

    assert [fact.sentence for fact in found.nodes[0].facts] == [
        f"On n the devices of claim default/c would have to agree in {DRIVER}/root: "
        "1 device without it, 1 device with x, 1 device with y."
    ]
    assert lacking_cause(found) == f"enough devices would do, and they do not agree in {DRIVER}/root"


def test_requests_that_want_the_same_device_are_told_so() -> None:
    found = report_of(slice_of(device("a")), claim("c", request("r0"), request("r1")))

    assert [fact.sentence for fact in found.nodes[0].facts] == [
        "On n each request finds devices by itself, and there are not enough for all of them together."
    ]


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ([slice_of(device("a"), count=2)], "some of its slices are missing"),
        ([slice_of(device("a"), device("a"))], "duplicate device name a"),
    ],
)
def test_a_pool_that_is_not_used_is_named_with_the_reason(slices: list[Json], expected: str) -> None:
    found = report_of(*slices, claim("c", request()))

    assert [fact.sentence for fact in found.nodes[0].facts] == [
        f"Devices of pool {DRIVER}/pool on n are not used: {expected}."
    ]


def test_an_expression_that_fails_is_named_with_the_device() -> None:
    missing = f'device.attributes["{DRIVER}"].absent == "x"'
    found = report_of(slice_of(device("a")), claim("c", request("r", missing)))

    assert phrases(found)["a"] == (
        f"refused: cannot be judged by claim default/c: `{missing}`: CEL runtime error: no such key: absent"
    )
    assert lacking_cause(found) == "claim default/c: selector #0: CEL runtime error: no such key: absent"


def test_a_claim_with_devices_elsewhere_is_out_of_reach() -> None:
    status = {
        "allocation": {
            "devices": {"results": [result("a")]},
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}]
            },
        }
    }
    here = claim("c", request(), status=status)
    scheduler, _ = _staged((here,))
    target = decode_object(pod("c"), where="pod")
    assert isinstance(target, Pod)
    decision = scheduler.decide(scheduler.info(target), explains=True)
    found = now_of(scheduler.framework("default-scheduler"), decision).devices

    assert found is not None
    assert [fact.sentence for fact in found.nodes[0].facts] == [
        "Claim default/c has its devices already, and they cannot be used from n."
    ]


def test_a_node_without_devices_says_so() -> None:
    found = report_of(claim("c", request()))

    assert [fact.sentence for fact in found.nodes[0].facts] == ["n has no devices."]
