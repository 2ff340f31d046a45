"""Expressions that fail, slices that contradict each other, claims that go away: a clear status and event for the pod
that it concerns, and the other pods go on."""

from __future__ import annotations

import pytest

from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.claim_controller import CLAIMS
from tests.e2e.clusters import Cluster
from tests.e2e.device_objects import API, DRIVER, device_class, published, sharing
from tests.e2e.ledger import Ledger, keeping_ledger
from tests.e2e.objects import JsonObject, node
from tests.e2e.running import all_bound, scheduling
from tests.waiting import answer, until

ATTRIBUTES = f'device.attributes["{DRIVER}"]'
LONG = f"[{', '.join(['1'] * 100)}]"


def claim(name: str, expression: str = "", **exactly: object) -> JsonObject:
    selectors = [{"cel": {"expression": expression}}] if expression else []
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": selectors, **exactly}}
    body = {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}}
    return body | {"spec": {"devices": {"requests": [request]}}}


async def _message(api: ApiSession, name: str, part: str) -> str:
    """The condition of a pod, once it says what is expected."""

    async def found() -> str | None:
        conditions = (await api.pod(name))["status"].get("conditions") or []
        said: str = conditions[0].get("message", "") if conditions else ""
        return said if part in said else None

    return await answer(found, what=f"`{part}` in the condition of {name}") or ""


async def _event(api: ApiSession, name: str, part: str) -> None:
    async def found() -> bool | None:
        return any(part in event["note"] for event in await api.events(reason="FailedScheduling", name=name)) or None

    assert await answer(found, what=f"an event of {name} with `{part}`")


async def _others_go_on(api: ApiSession, ledger: Ledger) -> None:
    before = ledger.bound
    await api.create(claim("good"), sharing("good", "good"))
    await until(lambda: ledger.bound == before + 1, what="the pod with a good claim bound")


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param(f"1 / ({ATTRIBUTES}.index - {ATTRIBUTES}.index) == 1", "division by zero", id="divides by zero"),
        pytest.param(f'{ATTRIBUTES}.absent == "x"', "no such key: absent", id="attribute that is not there"),
        pytest.param(f'{ATTRIBUTES}.index.startsWith("x")', "no such overload", id="attribute of another type"),
        pytest.param(
            f"{LONG}.all(a, {LONG}.all(b, {LONG}.all(c, a + b + c + {ATTRIBUTES}.index < 1000)))",
            "cost limit exceeded",
            id="costs too much",
        ),
    ],
)
async def test_an_expression_that_fails_keeps_its_pod_alone_from_nodes(
    cluster: Cluster, expression: str, problem: str
) -> None:
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(node("n"), device_class(), published("n", 4))
        bad = claim("bad", expression)
        answered = await api.call("POST", CLAIMS, bad, allow=[422])
        if answered["kind"] == "Status":
            # What an API server can foresee it does not let in.
            assert "cost" in answered["message"]
            return
        async with scheduling(cluster.kubeconfig):
            await api.create(sharing("bad", "bad"))
            message = await _message(api, "bad", problem)
            await _event(api, "bad", problem)
            await _others_go_on(api, ledger)

    assert "claim default/bad: selector #0: CEL runtime error" in message


async def test_an_expression_that_does_not_compile_is_not_let_in(cluster: Cluster) -> None:
    async with api_session(cluster.kubeconfig) as api:
        answered = await api.call("POST", CLAIMS, claim("bad", "device.attributes["), allow=[422])

    assert answered["code"] == 422
    assert "compilation failed" in answered["message"]


async def test_slices_with_one_device_twice_are_left_out_and_other_pools_serve(cluster: Cluster) -> None:
    first, second = published("n", 1), published("n", 1)
    for place, each in enumerate((first, second)):
        each["metadata"]["name"] = f"twice-{place}"
        each["spec"]["pool"] |= {"name": "twice", "resourceSliceCount": 2}
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(node("n"), device_class(), first, second)
        async with scheduling(cluster.kubeconfig) as live:
            await api.create(claim("c"), sharing("waits", "c"))
            await _message(api, "waits", "1 invalid resource pools were encountered")
            await _event(api, "waits", "invalid resource pools were encountered")
            await api.create(published("n", 2))
            await all_bound(live, ledger, 1)
            await _others_go_on(api, ledger)


async def test_a_claim_that_is_deleted_while_its_pod_waits_is_named(cluster: Cluster) -> None:
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(node("n"), device_class(), published("n", 4))
        async with scheduling(cluster.kubeconfig):
            await api.create(claim("c", count=9), sharing("waits", "c"))
            await _message(api, "waits", "cannot allocate all claims")
            await api.call("DELETE", f"{CLAIMS}/c")
            await _others_go_on(api, ledger)
            await api.create(claim("c"))
            await until(lambda: ledger.bound == 2, what="the pod bound with the claim that was made again")
