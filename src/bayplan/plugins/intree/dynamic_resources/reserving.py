"""From Reserve to PreBind: the devices of the chosen node are taken, written to the claims, and waited for."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.framework import Error, Handle, NodeInfo, Status
from bayplan.framework.devices import ResourceClaim
from bayplan.plugins.intree.dynamic_resources.attempt import DeviceAttempt, with_allocation
from bayplan.plugins.intree.dynamic_resources.binding import (
    BindingProblem,
    BindingTimeout,
    is_ready,
    waits_for_conditions,
)
from bayplan.plugins.intree.dynamic_resources.claims import is_reserved_for
from bayplan.plugins.intree.dynamic_resources.extended import with_requests
from bayplan.plugins.intree.dynamic_resources.writing import ClaimWriter, check_unmoved

__all__ = ["Reservations"]

_POLL_SECONDS = 5.0
_RELEASE_POLL_SECONDS = 0.05


class Reservations:
    def __init__(self, handle: Handle, writer: ClaimWriter, binding_timeout_seconds: float) -> None:
        self._handle, self._writer, self._timeout = handle, writer, binding_timeout_seconds
        self._devices = handle.cluster.devices

    def take(self, attempt: DeviceAttempt, node: NodeInfo, check_deadline: Callable[[str], None]) -> Status | None:
        """Count the devices of the node as taken, in memory. Raises what the search raises."""
        resources = attempt.delegated_on(node)
        if not resources and not attempt.has_user_claims:
            return None
        solution = attempt.solve(node, check_deadline)
        if solution is None:
            return Error(f"internal error, couldn't find allocation for node {node.name}")
        allocations = solution.allocations(node.name)
        if attempt.extended is not None:
            attempt.delegated = attempt.delegation(resources)
        for number, allocation in zip(attempt.to_allocate(), allocations, strict=True):
            claim = attempt.claims[number]
            if claim is attempt.extended and not resources:
                continue
            attempt.reserved[number] = allocation
            self._devices.put_in_flight(with_allocation(claim, allocation))
        return None

    def give_back(self, attempt: DeviceAttempt) -> None:
        """Undo `take`, and what `write` has written by then. A reservation that came about meanwhile, by a leader whose
        last requests are late, is not the attempt's to take back."""
        pod = attempt.pod.pod
        for number in attempt.reserved:
            self._devices.drop_in_flight(attempt.claims[number])
        for claim in attempt.claims:
            if not claim.name or claim is attempt.extended or not is_reserved_for(claim, pod):
                continue
            current = self._devices.claim(claim.key)
            if current is not None and current.status.allocation is not None and is_reserved_for(current, pod):
                self._devices.releases.add((current.uid, pod.uid))
                self._handle.start_task(f"release claim {current.key}", self._writer.release(current, pod))
        if attempt.extended is not None and not attempt.is_extended_in_memory:
            self._handle.start_task(f"delete claim {attempt.extended.key}", self._writer.delete(attempt.extended, pod))

    async def write(self, attempt: DeviceAttempt) -> None:
        """Raises WriteFailed."""
        for number, claim in enumerate(attempt.claims):
            if claim is not attempt.extended:
                await self._wait_for_release(claim, attempt.pod.uid)
                current = self._devices.claim(claim.key) or claim
                check_unmoved(current, attempt.reserved.get(number) or claim.status.allocation)
                attempt.claims[number] = current
            if not is_reserved_for(attempt.claims[number], attempt.pod.pod):
                attempt.claims[number] = await self._write_claim(attempt, number)

    async def _wait_for_release(self, claim: ResourceClaim, pod_uid: str) -> None:
        """An earlier attempt may still be taking the pod's reservation back: made anew before, it would be lost."""
        while (claim.uid, pod_uid) in self._devices.releases:
            await self._handle.clock.sleep(_RELEASE_POLL_SECONDS)

    async def _write_claim(self, attempt: DeviceAttempt, number: int) -> ResourceClaim:
        claim, allocation, pod = attempt.claims[number], attempt.reserved.get(number), attempt.pod
        is_extended = claim is attempt.extended
        if is_extended and allocation is None and claim.status.allocation is None:
            return claim
        before = claim
        if is_extended and attempt.is_extended_in_memory:
            asked = with_requests(claim, attempt.delegated.requests)
            claim = attempt.extended = await self._writer.create(asked, pod.pod)
        written = await self._writer.reserve(pod.pod, claim, allocation)
        if is_extended:
            attempt.extended = written
            await self._writer.note_extended(pod, written, attempt.delegated.mappings)
        self._devices.drop_in_flight(before)
        attempt.reserved.pop(number, None)
        return written

    async def wait_until_ready(self, attempt: DeviceAttempt, node_name: str) -> None:
        """Raises BindingProblem."""
        if not any(waits_for_conditions(claim) for claim in attempt.claims):
            return
        note = f"waiting for binding conditions for device on node {node_name}"
        self._handle.recorder.event(
            attempt.pod, kind="Normal", reason="BindingConditionsPending", action="Scheduling", note=note
        )
        clock = self._handle.clock
        begin, status = clock.monotonic(), "error"
        try:
            await self._poll(attempt, begin + self._timeout)
            status = "success"
        except BindingProblem as problem:
            status = "timeout" if isinstance(problem, BindingTimeout) else "failure"
            raise
        finally:
            self._devices.metrics.waited(
                attempt.claims,
                profile=self._handle.profile_name,
                status=status,
                seconds=clock.monotonic() - begin,
            )

    async def _poll(self, attempt: DeviceAttempt, end: float) -> None:
        clock = self._handle.clock
        while not all(is_ready(self._devices.claim(claim.key) or claim) for claim in attempt.claims):
            if clock.monotonic() >= end:
                raise BindingTimeout("device binding timeout: context deadline exceeded")
            await clock.sleep(min(_POLL_SECONDS, end - clock.monotonic()))
