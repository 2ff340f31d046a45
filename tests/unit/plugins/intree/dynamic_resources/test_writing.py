"""`writing`: what reaches the API server, and what happens when somebody else wrote in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.unit.plugins.intree.dynamic_resources.claim_server import Api, Clock
from tests.unit.plugins.intree.dynamic_resources.device_cases import allocated, claim, pod, request, result

from bayplan.api.pod import Pod
from bayplan.cluster.devices import Devices
from bayplan.cluster.objects import Objects
from bayplan.framework import ApiError, Conflict, NoAnswer, NotFound
from bayplan.framework.devices import AllocationResult, ResourceClaim
from bayplan.plugins.intree.dynamic_resources.extended import RequestMapping
from bayplan.plugins.intree.dynamic_resources.writing import FINALIZER, ClaimWriter, WriteFailed

Json = dict[str, Any]
NOW = "2023-11-14T22:13:20Z"
CHOSEN = msgspec.convert(allocated(result("a"))["allocation"], AllocationResult)
TARGET = msgspec.convert(pod("c"), Pod)
ME = {"resource": "pods", "name": "target", "uid": "uid-target"}


class Bench:
    def __init__(self, stored: Json, *meanwhile: Json | None) -> None:
        self.api, self.clock = Api(stored, *meanwhile), Clock()
        self.objects = Objects()
        self.claim = msgspec.convert(stored, ResourceClaim)
        self.objects.put(self.claim)
        self.devices = Devices(self.objects)
        handle: Any = SimpleNamespace(api=self.api, clock=self.clock)
        self.writer = ClaimWriter(handle, self.devices)

    async def reserve(self, allocation: AllocationResult | None) -> ResourceClaim:
        return await self.writer.reserve(TARGET, self.claim, allocation)


FREE = claim("c", request())
HELD = claim("c", request(), status=allocated(result("a"), users=["other"]))


async def test_an_allocation_is_protected_from_deletion_and_then_written_with_the_reservation() -> None:
    bench = Bench(FREE)
    written = await bench.reserve(CHOSEN)

    kinds = [(kind, subresource) for kind, subresource, _ in bench.api.calls]
    assert kinds == [("update", ""), ("update", "status")]
    assert written.metadata.finalizers == [FINALIZER]
    assert bench.api.calls[1][2]["status"]["reservedFor"] == [ME]
    assert bench.api.calls[1][2]["status"]["allocation"]["allocationTimestamp"] == NOW
    assert ("gpu.example.com", "pool", "a") in bench.devices.use.dedicated


async def test_what_was_written_counts_before_the_watch_brings_it() -> None:
    bench = Bench(FREE)
    written = await bench.reserve(CHOSEN)
    assert bench.devices.claim("default/c") is written
    bench.objects.put(bench.claim)

    assert bench.devices.claim("default/c") is written


async def test_a_finalizer_that_is_there_is_not_written_again() -> None:
    bench = Bench(claim("c", request(), metadata={"finalizers": ["other", FINALIZER]}))
    await bench.reserve(CHOSEN)

    assert [subresource for _, subresource, _ in bench.api.calls] == ["status"]


async def test_an_allocated_claim_gets_one_more_user() -> None:
    bench = Bench(HELD)
    await bench.reserve(None)

    (_, subresource, change), *_ = bench.api.calls
    assert subresource == "status"
    assert change["status"]["reservedFor"] == [{"resource": "pods", "name": "other", "uid": "uid-other"}, ME]


async def test_a_conflict_is_tried_again_with_what_others_wrote() -> None:
    labelled = claim("c", request(), metadata={"labels": {"new": "yes"}})
    bench = Bench(FREE, labelled)
    written = await bench.reserve(CHOSEN)

    assert bench.clock.waits == [0.01]
    assert written.metadata.labels == {"new": "yes"}
    assert written.status.allocation is not None


@pytest.mark.parametrize(
    ("stored", "meanwhile", "allocation", "problem"),
    [
        pytest.param(
            FREE,
            claim("c", request(), metadata={"deletionTimestamp": NOW}),
            CHOSEN,
            "claim default/c got deleted in the meantime",
            id="being deleted",
        ),
        pytest.param(FREE, HELD, CHOSEN, "claim default/c got allocated elsewhere in the meantime", id="allocated"),
        pytest.param(HELD, FREE, None, "claim default/c got deallocated elsewhere in the meantime", id="deallocated"),
        pytest.param(
            FREE,
            None,
            CHOSEN,
            'get updated claim default/c after conflict: resourceclaims.resource.k8s.io "c" not found',
            id="gone",
        ),
    ],
)
async def test_a_claim_that_is_no_longer_what_was_decided_about_fails(
    stored: Json, meanwhile: Json | None, allocation: AllocationResult | None, problem: str
) -> None:
    bench = Bench(stored, meanwhile)
    with pytest.raises(WriteFailed) as caught:
        await bench.reserve(allocation)

    assert str(caught.value) == problem
    assert bench.api.calls == []


async def test_conflicts_without_end_are_given_up() -> None:
    bench = Bench(HELD, *[HELD] * 9)
    with pytest.raises(WriteFailed, match="add reservation to claim default/c: the object has been modified"):
        await bench.reserve(None)

    assert bench.clock.waits == [0.01, 0.02, 0.04, 0.08]


NO_ANSWER = NoAnswer("the connection broke", may_have_been_processed=True)


async def test_a_write_without_an_answer_that_was_carried_out_is_found_to_be() -> None:
    """Otherwise the devices would be given to somebody else, and the claim have them too."""
    bench = Bench(FREE | {"metadata": {**FREE["metadata"], "finalizers": [FINALIZER]}})
    bench.api.lost_answers = [NO_ANSWER]
    bench.api.unread = [NO_ANSWER, ApiError("starting", code=503)]
    written = await bench.reserve(CHOSEN)

    assert len(bench.api.calls) == 1
    assert [each.uid for each in written.status.reserved_for or ()] == ["uid-target"]
    assert ("gpu.example.com", "pool", "a") in bench.devices.use.dedicated


async def test_server_errors_without_end_are_given_up_once_the_claim_is_known() -> None:
    bench = Bench(FREE)

    async def fail(*_: Any, **__: Any) -> ResourceClaim:
        raise ApiError("a webhook failed", code=500, reason="InternalError")

    bench.api.update = fail  # type: ignore[method-assign]  # a server that refuses every write
    with pytest.raises(WriteFailed, match="add allocation and reservation to claim default/c: a webhook failed"):
        await bench.reserve(CHOSEN)

    assert not bench.devices.use.dedicated


async def test_another_error_is_not_tried_again() -> None:
    bench = Bench(HELD)

    async def refuse(*_: Any, **__: Any) -> ResourceClaim:
        raise RuntimeError("quota")

    bench.api.update = refuse  # type: ignore[method-assign]  # the one call that fails
    with pytest.raises(WriteFailed, match="add reservation to claim default/c: quota"):
        await bench.reserve(None)

    assert bench.clock.waits == []


async def test_the_claim_of_extended_resources_is_named_by_the_server() -> None:
    bench = Bench(FREE)
    asked = msgspec.convert(claim("<extended-resources>", request()), ResourceClaim)
    made = await bench.writer.create(asked, TARGET)

    assert {at: child.value for at, child in bench.devices.metrics.creates.children.items()} == {("success",): 1}

    _, _, body = bench.api.calls[0]
    assert body["metadata"]["generateName"] == "target-extended-resources-"
    assert not body["metadata"].keys() & {"name", "uid"}
    assert bench.devices.claim("default/c") is bench.claim
    assert made.name == "target-extended-resources-x7"


async def test_the_pod_says_which_container_gets_which_request() -> None:
    bench = Bench(FREE)
    mapping = RequestMapping("main", "example.com/gpu", "container-0-request-0")
    info: Any = SimpleNamespace(name="target", namespace="default")
    await bench.writer.note_extended(info, bench.claim, [mapping])

    row = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    noted = {"resourceClaimName": "c", "requestMappings": [row]}
    assert bench.api.calls == [("patch pod", "status", {"status": {"extendedResourceClaimStatus": noted}})]


async def test_no_mapping_is_an_error() -> None:
    bench = Bench(FREE)
    info: Any = SimpleNamespace(name="target", namespace="default")
    with pytest.raises(WriteFailed, match="nil or empty request mappings, no update of pod default/target"):
        await bench.writer.note_extended(info, bench.claim, [])


MINE = claim("c", request(), status=allocated(result("a"), users=["other", "target"]))
OTHER = {"resource": "pods", "name": "other", "uid": "uid-other"}


async def test_a_reservation_is_taken_back_from_the_version_that_was_read() -> None:
    bench = Bench(MINE)
    version = MINE["metadata"]["resourceVersion"]
    await bench.writer.release(bench.claim, TARGET)

    change = {"metadata": {"resourceVersion": version}, "status": {"reservedFor": [OTHER]}}
    assert bench.api.calls == [("update", "status", change)]


async def test_the_last_reservation_leaves_none_behind() -> None:
    bench = Bench(claim("c", request(), status=allocated(result("a"), users=["target"])))
    await bench.writer.release(bench.claim, TARGET)

    assert bench.api.stored is not None
    assert "reservedFor" not in bench.api.stored["status"]


async def test_taking_back_goes_on_until_there_is_an_answer() -> None:
    bench = Bench(MINE)
    bench.api.unread += [NoAnswer("reset", may_have_been_processed=True)]
    bench.api.refusals += [ApiError("etcd is away", code=503), Conflict("changed", code=409)]
    await bench.writer.release(bench.claim, TARGET)

    assert [kind for kind, _, _ in bench.api.calls] == ["update"]


async def test_a_lost_answer_to_taking_back_is_not_followed_by_another_write() -> None:
    bench = Bench(MINE)
    bench.api.lost_answers.append(NoAnswer("reset", may_have_been_processed=True))
    await bench.writer.release(bench.claim, TARGET)

    assert [kind for kind, _, _ in bench.api.calls] == ["update"]
    assert bench.devices.claim("default/c").status.reserved_for[0].uid == "uid-other"  # type: ignore[union-attr, index]


@pytest.mark.parametrize("write", ["release", "deallocate", "delete"])
async def test_nothing_is_taken_back_from_a_pod_that_is_bound_after_all(write: str) -> None:
    """By a leader before this one, or by a binding whose answer was lost."""
    bench = Bench(MINE)
    bench.api.node_name = "n"
    await getattr(bench.writer, write)(bench.claim, TARGET)

    assert bench.api.calls == []


async def test_deallocating_frees_the_devices_at_once() -> None:
    bench = Bench(HELD)
    assert bench.devices.use.dedicated
    await bench.writer.deallocate(bench.claim, TARGET)

    assert not bench.devices.use.dedicated


async def test_deleting_takes_our_own_protection_away_first() -> None:
    bench = Bench(claim("c", request(), metadata={"finalizers": ["other", FINALIZER]}))
    await bench.writer.delete(bench.claim, TARGET)

    assert bench.api.calls == [("update", "", {"metadata": {"finalizers": ["other"]}}), ("delete", "c", {})]


@pytest.mark.parametrize("refusal", [NotFound("not found", code=404), Conflict("another uid", code=409)])
@pytest.mark.parametrize("write", ["release", "deallocate", "delete"])
async def test_a_claim_that_is_gone_or_changed_meanwhile_is_left_alone(refusal: ApiError, write: str) -> None:
    """Its owner may delete a claim at any time; nothing is left to take back then."""
    bench = Bench(HELD)
    bench.api.refusals.append(refusal)
    if write == "release":
        bench.devices.releases.add((bench.claim.uid, TARGET.uid))
        await bench.writer.release(bench.claim, TARGET)
    elif write == "deallocate":
        await bench.writer.deallocate(bench.claim, TARGET)
    else:
        await bench.writer.delete(bench.claim, TARGET)

    assert not bench.devices.releases
    assert bench.api.calls == []
