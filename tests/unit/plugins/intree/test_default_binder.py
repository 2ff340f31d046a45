"""DefaultBinder tells the API server which node a pod goes to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.unit.plugins.small_cluster import STATE, SmallCluster

from bayplan.framework import Code, PodInfo
from bayplan.plugins.intree.default_binder import DefaultBinder


class Api:
    """Keeps what it is told to bind, or refuses."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.bound: list[tuple[str, str]] = []
        self.refusal = refusal

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.bound.append((pod.key, node_name))


def binder(api: Api) -> DefaultBinder:
    handle: Any = SimpleNamespace(api=api)
    return DefaultBinder(None, handle)


async def test_a_pod_is_bound_to_its_node() -> None:
    api = Api()

    assert await binder(api).bind(STATE, SmallCluster().pod("p"), "n1") is None
    assert api.bound == [("default/p", "n1")]


async def test_a_refusal_is_an_error_with_its_text_and_cause() -> None:
    refusal = RuntimeError("pod p is already assigned to node n2")
    status = await binder(Api(refusal)).bind(STATE, SmallCluster().pod("p"), "n1")

    assert status is not None
    assert status.code is Code.ERROR
    assert status.reasons == ("pod p is already assigned to node n2",)
    assert status.exception is refusal


def test_it_asks_for_the_right_to_bind_and_no_more() -> None:
    [permission] = DefaultBinder.permissions

    assert permission == ("", "pods/binding", ("create",))
