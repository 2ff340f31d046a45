"""What plugins write, and what becomes of conflicts and of objects that are gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.unit.app.answering import Answering, answer

from bayplan.api.meta import Metadata
from bayplan.api.storage import PersistentVolumeClaim
from bayplan.app.live_api import LiveApi
from bayplan.cache import Cache
from bayplan.client.errors import Conflict, NotSent
from bayplan.client.transport import Response
from bayplan.client.writer import Writer
from bayplan.cluster.pod_info import PodInfo
from bayplan.observe.clock import VirtualClock
from bayplan.testing.build import pod

CLAIM = PersistentVolumeClaim(metadata=Metadata(name="data", namespace="ns"))
OURS = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}

PINNED = {"metadata": {**OURS["metadata"], "resourceVersion": "5"}}


def stored(version: str, **annotations: str) -> Response:
    metadata = {"name": "data", "namespace": "ns", "resourceVersion": version, "annotations": annotations}
    return answer(200, {"metadata": metadata, "spec": {"unknown": ["kept"]}})


def api(*answers: Response | Exception) -> tuple[LiveApi, Answering]:
    transport = Answering(*answers)
    return LiveApi(Writer(transport, clock=VirtualClock(), draw=lambda: 0.5)), transport


async def test_an_update_merges_into_what_is_there_and_keeps_what_we_do_not_know() -> None:
    live, transport = api(stored("7", other="x"), stored("8"))
    await live.update(CLAIM, OURS)
    sent = msgspec.json.decode(transport.calls[1][2] or b"")

    assert transport.calls[1][:2] == ("PUT", "/api/v1/namespaces/ns/persistentvolumeclaims/data")
    assert sent["spec"] == {"unknown": ["kept"]}
    assert sent["metadata"]["resourceVersion"] == "7"
    assert sent["metadata"]["annotations"] == {"other": "x", "volume.kubernetes.io/selected-node": "n"}


async def test_a_conflict_is_tried_again_on_the_new_version() -> None:
    live, transport = api(stored("7"), answer(409, {}), stored("8"), stored("9"))
    await live.update(CLAIM, OURS)

    assert [method for method, _, _ in transport.calls] == ["GET", "PUT", "GET", "PUT"]


async def test_a_change_of_one_version_is_one_request() -> None:
    live, transport = api(stored("6"))
    written = await live.update(CLAIM, PINNED)

    assert [(method, msgspec.json.decode(body or b"")) for method, _, body in transport.calls] == [("PATCH", PINNED)]
    assert written.metadata.resource_version == "6"


async def test_a_conflict_on_a_pinned_version_is_raised() -> None:
    live, _ = api(answer(409, {}))
    with pytest.raises(Conflict):
        await live.update(CLAIM, PINNED)


async def test_who_may_not_patch_updates() -> None:
    live, transport = api(answer(403, {}), stored("5", other="x"), stored("6"))
    await live.update(CLAIM, PINNED)
    sent = msgspec.json.decode(transport.calls[2][2] or b"")

    assert [method for method, _, _ in transport.calls] == ["PATCH", "GET", "PUT"]
    assert sent["metadata"]["resourceVersion"] == "5"
    assert sent["metadata"]["annotations"] == {"other": "x", "volume.kubernetes.io/selected-node": "n"}


async def test_an_object_that_is_gone_is_none() -> None:
    live, _ = api(answer(404, {}))

    assert await live.get(PersistentVolumeClaim, "data", "ns") is None


async def test_the_status_of_a_pod_that_is_gone_is_nobodys_business() -> None:
    live, transport = api(answer(404, {}))
    await live.patch_pod_status(Cache().info(pod("p")), nominated_node_name="")

    assert msgspec.json.decode(transport.calls[0][2] or b"")["status"] == {"nominatedNodeName": None}


@pytest.mark.parametrize(
    ("write", "precondition"),
    [
        (lambda live, info: live.bind(info, "n"), ("metadata", "uid")),
        (lambda live, info: live.delete_pod(info), ("preconditions", "uid")),
        (lambda live, info: live.patch_pod_status(info, nominated_node_name="n"), ("metadata", "uid")),
        (lambda live, info: live.patch_pod(info, {"metadata": {"annotations": {"a": "b"}}}), ("metadata", "uid")),
        (lambda live, info: live.update(info.pod, PINNED), ("metadata", "uid")),
    ],
)
async def test_a_write_is_for_this_very_pod(
    write: Callable[[LiveApi, PodInfo], Any], precondition: tuple[str, str]
) -> None:
    live, transport = api(answer(200, {}))
    await write(live, Cache().info(pod("p", uid="u-1")))
    sent = msgspec.json.decode(transport.calls[0][2] or b"")

    assert sent[precondition[0]][precondition[1]] == "u-1"


@pytest.mark.parametrize(
    "write",
    [
        lambda live, info: live.bind(info, "n"),
        lambda live, info: live.delete_pod(info),
        lambda live, info: live.patch_pod_status(info, nominated_node_name="n"),
        lambda live, info: live.patch_pod(info, {}),
        lambda live, info: live.update(CLAIM, PINNED),
    ],
)
async def test_a_replica_that_lost_its_lease_writes_nothing(write: Callable[[LiveApi, PodInfo], Any]) -> None:
    transport = Answering()
    live = LiveApi(Writer(transport, clock=VirtualClock(), draw=lambda: 0.5, may_write=lambda: False))
    with pytest.raises(NotSent):
        await write(live, Cache().info(pod("p")))

    assert transport.calls == []
