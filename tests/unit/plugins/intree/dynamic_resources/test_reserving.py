"""`plugin`, from Reserve to PreBind: what is taken, written, waited for and given back."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.unit.plugins.intree.dynamic_resources.claim_server import Api, Clock
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    DRIVER,
    allocated,
    claim,
    device,
    device_class,
    node,
    pod,
    request,
    result,
    slice_of,
)

from bayplan.api.decode import decode_object
from bayplan.api.pod import Pod
from bayplan.framework import SKIP, Code, Status
from bayplan.framework.devices import ResourceClaim
from bayplan.testing import Harness

Json = dict[str, Any]
A = ("gpu.example.com", "pool", "a")
GPU = "example.com/gpu"
WAITS = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}


class Cycle:
    """A pod that was decided about, and the plugin with a server to write to."""

    def __init__(self, *objects: Json, target: Json, stored: Json, meanwhile: tuple[Json | None, ...] = ()) -> None:
        self.harness = Harness(objects=[decode_object(each) for each in (node(), *objects)])
        self.api, self.clock = Api(stored, *meanwhile), Clock()
        self.tasks: list[Coroutine[Any, Any, None]] = []
        self.notes: list[str] = []
        real = self.harness.plugin("DynamicResources")
        recorder: Any = SimpleNamespace(event=lambda pod, **said: self.notes.append(said["reason"]))
        ports: Any = {
            "api": self.api,
            "clock": self.clock,
            "recorder": recorder,
            "start_task": lambda name, work: self.tasks.append(work),
        }
        self.plugin = real.dry_copy(replace(real.handle, **ports))
        self.pod = self.harness.info(msgspec.convert(target, Pod))
        self.decision = self.harness.scheduler.decide(self.pod)
        assert self.decision.node_name == "n", self.decision.message

    @property
    def devices(self) -> Any:
        return self.harness.cluster.devices

    async def bind(self) -> Status | None:
        status = self.plugin.reserve(self.decision.state, self.pod, "n")
        assert status is None
        bound: Status | None = await self.plugin.pre_bind(self.decision.state, self.pod, "n")
        return bound

    async def give_up(self) -> None:
        self.plugin.unreserve(self.decision.state, self.pod, "n")
        for task in self.tasks:
            await task


FREE = claim("c", request())


def cycle(*devices: Json, stored: Json = FREE, meanwhile: tuple[Json | None, ...] = ()) -> Cycle:
    slices = slice_of(*(devices or (device("a"),)))
    return Cycle(slices, device_class(), stored, target=pod("c"), stored=stored, meanwhile=meanwhile)


async def test_the_allocation_is_written_and_counts_from_then_on() -> None:
    one = cycle()
    assert await one.bind() is None

    assert one.api.stored is not None
    assert one.api.stored["status"]["reservedFor"] == [{"resource": "pods", "name": "target", "uid": "uid-target"}]
    assert one.devices.in_flight("uid-c") is None
    assert set(one.devices.use.dedicated) == {A}


async def test_a_claim_that_is_reserved_for_the_pod_is_not_written() -> None:
    one = cycle(stored=claim("c", request(), status=allocated(result("a"), users=["target"])))
    assert await one.bind() is None

    assert one.api.calls == []


async def test_a_failed_write_is_an_error_and_the_devices_are_free_again() -> None:
    elsewhere = claim("c", request(), status=allocated(result("b"), users=["other"]))
    one = cycle(meanwhile=(elsewhere,))
    status = await one.bind()

    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, "claim default/c got allocated elsewhere in the meantime")
    assert set(one.devices.use.dedicated) == {A}
    await one.give_up()
    assert A not in one.devices.use.dedicated


async def test_the_reservation_is_taken_back_when_the_pod_is_not_bound_after_all() -> None:
    one = cycle()
    await one.bind()
    one.api.calls.clear()
    await one.give_up()

    gone = {"metadata": {"resourceVersion": "3"}, "status": {"reservedFor": None}}
    assert one.api.calls == [("update", "status", gone)]


async def test_a_reservation_that_is_still_being_taken_back_is_made_anew_after_that() -> None:
    """The release of a failed attempt is a write that may come late, after the pod has found its node again."""
    one = cycle(stored=claim("c", request(), status=allocated(result("a"), users=["target"])))
    one.plugin.unreserve(one.decision.state, one.pod, "n")

    async def release() -> None:
        await one.tasks.pop()

    one.clock.meanwhile = release
    assert await one.bind() is None

    assert one.clock.waits == [0.05]
    assert [kind for kind, _, _ in one.api.calls] == ["update", "update"]
    assert one.api.stored is not None
    assert one.api.stored["status"]["reservedFor"] == [{"resource": "pods", "name": "target", "uid": "uid-target"}]


def test_pods_without_claims_are_skipped() -> None:
    one = Cycle(device_class(), target=pod(), stored=FREE)

    assert one.plugin.pre_bind_pre_flight(one.decision.state, one.pod, "n") is SKIP
    assert one.plugin.reserve(one.decision.state, one.pod, "n") is None


def extended() -> Cycle:
    made = claim("target-extended-resources-x7", request(), metadata={"uid": "new"})
    backed = device_class("gpu", extendedResourceName=GPU)
    return Cycle(slice_of(device("a")), backed, target=pod(requests={GPU: "1"}), stored=made)


async def test_a_claim_is_made_for_extended_resources_and_the_pod_says_so() -> None:
    one = extended()
    one.api.create = _created(one.api)  # type: ignore[method-assign]  # answers with the stored claim
    assert await one.bind() is None

    kinds = [kind for kind, _, _ in one.api.calls]
    assert kinds == ["create", "update", "update", "patch pod"]
    noted = one.api.calls[-1][2]["status"]["extendedResourceClaimStatus"]
    row = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-0"}
    assert noted == {"resourceClaimName": "target-extended-resources-x7", "requestMappings": [row]}


async def test_that_claim_is_deleted_when_the_pod_is_not_bound_after_all() -> None:
    one = extended()
    one.api.create = _created(one.api)  # type: ignore[method-assign]  # answers with the stored claim
    await one.bind()
    await one.give_up()

    assert one.api.calls[-1] == ("delete", "target-extended-resources-x7", {})


def _created(api: Api) -> Any:
    async def create(kind: type[ResourceClaim], body: Json) -> ResourceClaim:
        api.calls.append(("create", "", body))
        return msgspec.convert(api.stored, kind)

    return create


def reported(**conditions: str) -> Json:
    """The claim as a driver writes it."""
    status = allocated(result("a", **WAITS), users=["target"])
    said = [{"type": name, "status": value, "reason": "R", "message": "m"} for name, value in conditions.items()]
    place = {"driver": "gpu.example.com", "pool": "pool", "device": "a"}
    return claim(
        "c",
        request(),
        status=status | {"devices": [{**place, "conditions": said}]},
        metadata={"resourceVersion": "99"},
    )


class Driver(Clock):
    """Time in which a driver reports, after a few looks of the scheduler."""

    def __init__(self, one: Cycle, **conditions: str) -> None:
        super().__init__()
        self._one, self._conditions = one, conditions

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        self._elapsed += seconds
        if len(self.waits) == 3 and self._conditions:
            self._one.harness.scheduler.cache.put_object(decode_object(reported(**self._conditions)))


def waiting(**conditions: str) -> Cycle:
    one = cycle(device("a", **WAITS))
    one.plugin = one.plugin.dry_copy(replace(one.plugin.handle, clock=Driver(one, **conditions)))
    return one


async def test_the_pod_waits_until_its_device_is_ready() -> None:
    one = waiting(ready="True")

    assert await one.bind() is None
    assert one.notes == ["BindingConditionsPending"]
    assert one.plugin.handle.clock.waits == [5.0] * 3


async def test_a_device_that_reports_a_failure_ends_the_wait() -> None:
    status = await waiting(broken="True").bind()

    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, 'device binding failed: claim=c, reason=R, message="m"')


async def test_the_wait_ends_after_the_timeout() -> None:
    one = waiting()
    status = await one.bind()

    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, "device binding timeout: context deadline exceeded")
    assert sum(one.plugin.handle.clock.waits) == 600.0


@pytest.mark.parametrize(
    ("conditions", "status", "seconds"),
    [({"ready": "True"}, "success", 15.0), ({"broken": "True"}, "failure", 15.0), ({}, "timeout", 600.0)],
)
async def test_the_wait_and_its_outcome_are_counted(conditions: dict[str, str], status: str, seconds: float) -> None:
    one = waiting(**conditions)
    await one.bind()
    metrics, labels = one.plugin.handle.cluster.devices.metrics, ("default-scheduler", DRIVER, status)

    assert {at: child.value for at, child in metrics.conditions.children.items()} == {labels: 1}
    assert {at: child.total for at, child in metrics.waits.children.items()} == {labels: seconds}
