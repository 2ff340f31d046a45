"""A Lease on an API server that can be made to fail, as several candidates see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b"{}"


@dataclass
class LeaseServer:
    """Optimistic concurrency on one object. `fault` answers instead when set; `is_stuck` never answers."""

    lease: dict[str, object] | None = None
    version: int = 0
    fault: Reply | Exception | None = None
    is_stuck: bool = False
    writes: list[str] = field(default_factory=list)

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
    ) -> Reply:
        if self.is_stuck:
            await asyncio.Event().wait()
        if isinstance(self.fault, Exception):
            raise self.fault
        if self.fault is not None:
            return self.fault
        assert path.startswith("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        if method == "GET":
            return Reply(404) if self.lease is None else self._whole(200)
        sent = json.loads(body or b"{}")
        if method == "POST":
            return Reply(409) if self.lease is not None else self._write(sent, 201)
        if self.lease is None:
            return Reply(404)
        is_current = sent["metadata"].get("resourceVersion") == str(self.version)
        return self._write(sent, 200) if is_current else Reply(409)

    @property
    def spec(self) -> dict[str, object]:
        assert self.lease is not None
        spec = self.lease["spec"]
        assert isinstance(spec, dict)
        return spec

    def touch(self) -> None:
        """Somebody else wrote the lease, changing nothing that matters."""
        assert self.lease is not None
        self._write(self.lease, 200)

    def _write(self, lease: dict[str, object], status: int) -> Reply:
        self.version += 1
        metadata = lease["metadata"]
        assert isinstance(metadata, dict)
        self.lease = {**lease, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        self.writes.append(str(self.spec["holderIdentity"]))
        return self._whole(status)

    def _whole(self, status: int) -> Reply:
        return Reply(status, json.dumps(self.lease).encode())
