"""All pods, filtered, counted and paged; and search by part of a name."""

from __future__ import annotations

from typing import Any

from tests.unit.explain.stage import Stage, raw_pod, staged

from bayplan.explain.pages.pod_list import PodFilter, PodPage, SearchResult, find_by_name, list_pods
from bayplan.observe.time_slices import at_once


def listed(stage: Stage, **query: Any) -> PodPage:
    return at_once(list_pods(stage.local.live, PodFilter(**query)))


def names(page: PodPage) -> list[str]:
    return [pod.pod.removeprefix("default/") for pod in page.pods]


async def filled(stage: Stage) -> None:
    await stage.create(
        *(raw_pod(f"web-{i}") for i in range(5)),
        raw_pod("big", cpu="900"),
        raw_pod("picky", nodeSelector={"disk": "none"}),
        raw_pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
        raw_pod("orphan", schedulerName="nobody"),
    )
    await stage.settled(bound=5, failed=2)
    await stage.until(lambda: stage.local.live.watching.pod("default", "orphan") is not None)


async def test_every_pod_is_listed_with_its_state_and_what_holds_it_back() -> None:
    async with staged(3) as stage:
        await filled(stage)
        page = listed(stage)

    states = {pod.pod.removeprefix("default/"): (pod.state, pod.reasons) for pod in page.pods}
    assert page.total == page.matching == 9
    assert states["web-0"] == ("placed", [])
    assert states["big"][1] == ["NodeResourcesFit"]
    assert states["picky"][1] == ["NodeAffinity"]
    assert states["gated"] == ("gated", ["SchedulingGates"])
    assert states["orphan"] == ("unserved", ["nobody"])
    assert page.namespaces == {"default": 9}
    assert page.states["placed"] == 5 and page.states["unserved"] == 1


async def test_filters_narrow_the_list_and_leave_counts_to_choose_from() -> None:
    async with staged(3) as stage:
        await filled(stage)
        web = listed(stage, text="WEB-")
        refused = listed(stage, reason="NodeAffinity")
        placed = listed(stage, states=frozenset({"placed"}))
        on_node = listed(stage, node=placed.pods[0].node)
        elsewhere = listed(stage, namespace="other")

    assert names(web) == [f"web-{i}" for i in range(5)]
    assert names(refused) == ["picky"]
    assert placed.matching == 5 and placed.states["gated"] == 1
    assert {pod.node for pod in on_node.pods} == {placed.pods[0].node}
    assert (elsewhere.matching, elsewhere.total, elsewhere.namespaces) == (0, 9, {"default": 9})


async def test_pages_follow_one_another_without_gap_or_overlap() -> None:
    async with staged(3) as stage:
        await filled(stage)
        pages = [listed(stage, offset=offset, limit=4) for offset in (0, 4, 8)]
        beyond = listed(stage, offset=100, limit=4)
        whole = listed(stage)

    assert [name for page in pages for name in names(page)] == names(whole) == sorted(names(whole))
    assert beyond.offset == 8 and names(beyond) == names(pages[-1])


async def test_those_that_wait_longest_come_first_when_sorted_so() -> None:
    async with staged(2) as stage:
        await stage.create(raw_pod("b", cpu="900"))
        await stage.settled(failed=1)
        await stage.create(raw_pod("a", cpu="901"))
        await stage.settled(failed=2)
        stage.local.live.queue.get("default/a").timestamp += 1000  # type: ignore[union-attr]  # both are waiting
        page = listed(stage, sort="waiting")

    assert names(page) == ["b", "a"]


async def test_a_part_of_a_name_finds_pods_and_nodes() -> None:
    def find(text: str, limit: int = 8) -> SearchResult:
        return at_once(find_by_name(stage.local.live, text, limit=limit))

    async with staged(3) as stage:
        await filled(stage)
        web, node, nothing = find("eb-", 2), find("Node-"), find("zzz")

    assert [pod.pod for pod in web.pods] == ["default/web-0", "default/web-1"]
    assert (web.pod_count, web.node_count) == (5, 0)
    assert [found.node for found in node.nodes] == ["node-1", "node-2", "node-3"]
    assert (nothing.pods, nothing.nodes, nothing.pod_count) == ([], [], 0)
