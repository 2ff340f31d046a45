"""The Lease object of coordination.k8s.io, read and written as election needs it.

The `Requester` protocol stands for the API server, so this package does not depend on the client;
`bayplan.client.transport.Transport` satisfies it. Every answer becomes a value: the lease, "there is none", or "lost
the race". Anything else is `LeaseUnavailable`: try again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Protocol

import msgspec


class LeaseAnswer(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...


class Requester(Protocol):
    """The part of a transport that election uses."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> LeaseAnswer: ...


class LeaseUnavailable(Exception):
    """The API server did not answer, or refused for a reason other than a lost race."""


class LostRace(Enum):
    """Another client wrote first."""

    LOST_RACE = "lost race"


LOST_RACE = LostRace.LOST_RACE


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Holder, time and duration of a lease. `raw` is the whole object, so that a write keeps all other fields."""

    holder: str = ""
    duration_seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    raw: Mapping[str, Any] | None = None

    @property
    def resource_version(self) -> str:
        return str(((self.raw or {}).get("metadata") or {}).get("resourceVersion") or "")


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseClient:
    """Get, create and replace one Lease."""

    def __init__(self, requester: Requester, *, namespace: str, name: str) -> None:
        self._requester = requester
        self._namespace = namespace
        self._name = name
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    @property
    def label(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def get(self, *, timeout: float) -> LeaseRecord | None:
        answer = await self._ask("GET", f"{self._collection}/{self._name}", None, timeout)
        if answer.status == 404:
            return None
        return self._record(answer, "read")

    async def create(self, record: LeaseRecord, *, timeout: float) -> LeaseRecord | LostRace:
        answer = await self._ask("POST", self._collection, self._encoded(record, onto={}), timeout)
        return LOST_RACE if answer.status == 409 else self._written(record, answer, "create")

    async def replace(self, record: LeaseRecord, *, onto: LeaseRecord, timeout: float) -> LeaseRecord | LostRace:
        """Write `record` over the version that `onto` was read from."""
        path = f"{self._collection}/{self._name}"
        answer = await self._ask("PUT", path, self._encoded(record, onto=onto.raw or {}), timeout)
        return LOST_RACE if answer.status in (404, 409) else self._written(record, answer, "update")

    async def _ask(self, method: str, path: str, body: bytes | None, timeout: float) -> LeaseAnswer:
        try:
            return await self._requester.request(method, path, body=body, timeout=timeout)
        except Exception as error:
            raise LeaseUnavailable(f"cannot reach the API server for lease {self.label}: {error}") from error

    def _written(self, record: LeaseRecord, answer: LeaseAnswer, verb: str) -> LeaseRecord:
        """What was written, which is what the answer has to say: one that says anything else is about another write."""
        written = self._record(answer, verb)
        if (written.holder, written.renewed) != (record.holder, record.renewed):
            raise LeaseUnavailable(f"the answer to {verb} of lease {self.label} is not about this write")
        return written

    def _record(self, answer: LeaseAnswer, verb: str) -> LeaseRecord:
        if answer.status == 403:
            raise LeaseUnavailable(
                f"not allowed to {verb} lease {self.label}; grant get, create and update on leases of "
                f"coordination.k8s.io in namespace {self._namespace}"
            )
        if answer.status >= 300:
            raise LeaseUnavailable(f"the API server answered {answer.status} to {verb} of lease {self.label}")
        try:
            raw = msgspec.json.decode(answer.body, type=dict[str, Any])
            spec = msgspec.convert(raw.get("spec") or {}, _Spec)
            metadata = msgspec.convert(raw.get("metadata") or {}, dict[str, Any])  # it is written back
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise LeaseUnavailable(f"lease {self.label} cannot be read: {error}") from error
        if raw.get("kind", "Lease") != "Lease" or not metadata.get("resourceVersion"):
            # Taken for a lease, it would be one that nobody holds.
            raise LeaseUnavailable(f"lease {self.label} cannot be read: the answer is not a Lease")
        return LeaseRecord(
            holder=spec.holder_identity or "",
            duration_seconds=spec.lease_duration_seconds or 0,
            acquired=spec.acquire_time or "",
            renewed=spec.renew_time or "",
            transitions=spec.lease_transitions or 0,
            raw=raw,
        )

    def _encoded(self, record: LeaseRecord, *, onto: Mapping[str, Any]) -> bytes:
        metadata = {**(onto.get("metadata") or {}), "name": self._name, "namespace": self._namespace}
        spec = {
            **(onto.get("spec") or {}),
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.duration_seconds,
            "acquireTime": record.acquired,
            "renewTime": record.renewed,
            "leaseTransitions": record.transitions,
        }
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        return msgspec.json.encode(lease)


def micro_time(now: float) -> str:
    """Seconds since the epoch as Kubernetes' MicroTime."""
    return datetime.fromtimestamp(now, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
