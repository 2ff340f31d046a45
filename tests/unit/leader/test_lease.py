from __future__ import annotations

import pytest

from bayplan.leader.lease import LOST_RACE, LeaseClient, LeaseRecord, LeaseUnavailable, micro_time

from .support import LeaseServer, Reply

MINE = LeaseRecord(holder="me", duration_seconds=15, acquired="t0", renewed="t1", transitions=2)


def _client(server: LeaseServer) -> LeaseClient:
    return LeaseClient(server, namespace="kube-system", name="kube-scheduler")


async def test_a_lease_is_created_read_and_replaced() -> None:
    server = LeaseServer()
    client = _client(server)

    assert await client.get(timeout=1) is None
    created = await client.create(MINE, timeout=1)
    assert isinstance(created, LeaseRecord)
    assert (created.holder, created.duration_seconds, created.renewed, created.transitions) == ("me", 15, "t1", 2)
    found = await client.get(timeout=1)
    assert found == created
    replaced = await client.replace(LeaseRecord(holder="you"), onto=created, timeout=1)

    assert isinstance(replaced, LeaseRecord)
    assert (replaced.holder, replaced.resource_version) == ("you", "2")


async def test_a_lost_race_is_a_value() -> None:
    server = LeaseServer()
    client = _client(server)
    created = await client.create(MINE, timeout=1)
    assert isinstance(created, LeaseRecord)

    assert await client.create(MINE, timeout=1) is LOST_RACE
    server.touch()
    assert await client.replace(MINE, onto=created, timeout=1) is LOST_RACE
    server.lease = None
    assert await client.replace(MINE, onto=created, timeout=1) is LOST_RACE


async def test_a_write_keeps_what_the_lease_holds_besides() -> None:
    server = LeaseServer()
    client = _client(server)
    created = await client.create(MINE, timeout=1)
    assert isinstance(created, LeaseRecord)
    assert created.raw is not None
    raw = {**created.raw, "metadata": {**created.raw["metadata"], "labels": {"a": "b"}}}
    raw["spec"] = {**raw["spec"], "strategy": "OldestEmulationVersion"}

    await client.replace(MINE, onto=LeaseRecord(raw=raw), timeout=1)

    assert server.lease is not None
    assert server.lease["metadata"]["labels"] == {"a": "b"}  # type: ignore[index]
    assert server.spec["strategy"] == "OldestEmulationVersion"


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Reply(403), "grant get, create and update on leases"),
        (Reply(500), "answered 500 to read"),
        (Reply(200, b"<html>"), "cannot be read"),
        (Reply(200, b'{"spec": {"leaseDurationSeconds": "long"}}'), "cannot be read"),
        (Reply(200, b'{"metadata": "mine"}'), "cannot be read"),
        (Reply(200, b"{}"), "the answer is not a Lease"),
        (Reply(200, b'{"kind": "Pod", "metadata": {"resourceVersion": "1"}}'), "the answer is not a Lease"),
        (OSError("no route"), "cannot reach the API server.*no route"),
    ],
)
async def test_anything_else_means_try_again(fault: Reply | Exception, problem: str) -> None:
    with pytest.raises(LeaseUnavailable, match=problem):
        await _client(LeaseServer(fault=fault)).get(timeout=1)


async def test_an_empty_spec_is_a_free_lease() -> None:
    answer = Reply(200, b'{"metadata": {"resourceVersion": "1"}}')
    found = await _client(LeaseServer(fault=answer)).get(timeout=1)

    assert found == LeaseRecord(raw={"metadata": {"resourceVersion": "1"}})
    assert found is not None
    assert found.resource_version == "1"


async def test_the_answer_to_another_write_is_none() -> None:
    server = LeaseServer()
    client = _client(server)
    created = await client.create(MINE, timeout=1)
    assert isinstance(created, LeaseRecord)
    server.fault = server._whole(200)

    with pytest.raises(LeaseUnavailable, match="is not about this write"):
        await client.replace(LeaseRecord(holder="you"), onto=created, timeout=1)


def test_times_are_written_with_microseconds() -> None:
    assert micro_time(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
