"""Devices on both API servers: each is given to one claim at most, shared claims are shared, and deletion frees them.

What is checked is what the API says: claims, pods and slices.
"""

from __future__ import annotations

from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.claim_controller import give_back, make_claims
from tests.e2e.clusters import Cluster
from tests.e2e.device_objects import (
    API,
    asking,
    device_class,
    given,
    given_twice,
    published,
    sharing,
    template,
    templated,
)
from tests.e2e.ledger import keeping_ledger
from tests.e2e.objects import JsonObject, node
from tests.e2e.running import account_for, all_bound, scheduling
from tests.waiting import answer


async def test_each_device_is_given_to_one_claim_at_most(cluster: Cluster) -> None:
    config, names = cluster.kubeconfig, [f"n{number:02}" for number in range(20)]
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(device_class(), template(2), *map(node, names), *(published(name, 8) for name in names))
        async with scheduling(config) as live:
            await api.create(*(templated(f"p{number:02}") for number in range(60)))
            await make_claims(api)
            await all_bound(live, ledger, 60)
            pod_list = await account_for(live, api)
        devices = await given(api)

    assert ledger.moved() == {}
    places = {each["metadata"]["uid"]: each["spec"]["nodeName"] for each in pod_list}
    assert devices.keys() == places.keys()
    assert all([pool for pool, _ in held] == [places[uid]] * 2 for uid, held in devices.items())
    assert given_twice(devices) == []


async def test_two_pods_share_a_claim_on_its_node(cluster: Cluster) -> None:
    config = cluster.kubeconfig
    shared = {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": "shared"}, "spec": asking(1)}
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(device_class(), node("a"), node("b"), published("a", 1), published("b", 1), shared)
        async with scheduling(config) as live:
            await api.create(sharing("first", "shared"), sharing("second", "shared"))
            await all_bound(live, ledger, 2)
            pod_list = await account_for(live, api)
        devices = await given(api)

    (place,) = {each["spec"]["nodeName"] for each in pod_list}
    assert devices == {each["metadata"]["uid"]: [(place, "gpu-0")] for each in pod_list}


async def test_a_pod_that_waits_gets_the_devices_of_one_that_is_deleted(cluster: Cluster) -> None:
    config = cluster.kubeconfig
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(device_class(), template(1), node("only"), published("only", 2))
        async with scheduling(config) as live:
            await api.create(*(templated(f"p{number}") for number in range(3)))
            await make_claims(api)
            await all_bound(live, ledger, 2)
            waiting = await _refused(api)
            bound = [each["metadata"]["name"] for each in await api.pods() if each["spec"].get("nodeName")]
            await api.delete_pods(bound[0])
            await give_back(api)
            await all_bound(live, ledger, 3)
            pod_list = await account_for(live, api)
        devices = await given(api)

    assert waiting["status"]["conditions"][0]["message"].startswith(
        "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"
    )
    assert {each["metadata"]["name"] for each in pod_list} == {"p0", "p1", "p2"} - {bound[0]}
    assert sorted(each for held in devices.values() for each in held) == [("only", "gpu-0"), ("only", "gpu-1")]


async def _refused(api: ApiSession) -> JsonObject:
    async def refused() -> JsonObject | None:
        pods = [each for each in await api.pods() if not each["spec"].get("nodeName")]
        return pods[0] if pods and pods[0]["status"].get("conditions") else None

    return await answer(refused, what="a pod that is refused") or {}
