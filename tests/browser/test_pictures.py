"""A cluster that looks like one, and the pictures of it in the documentation.

BAYPLAN_SCREENSHOTS=docs/images renews them. What they show is checked: a funnel of several filters, a winner by a few
points, and pending pods for three reasons.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import IMAGES, pod, staged, visiting

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
NODES = 5000
HOSTNAME = "kubernetes.io/hostname"


def name_of(number: int) -> str:
    return f"{'gpu' if number % 20 == 0 else 'big' if number % 3 == 0 else 'std'}-{number:04}"


def node(number: int) -> dict[str, Any]:
    """Large and small ones, some with GPUs, some for one team, some cordoned, in three zones."""
    name = name_of(number)
    amounts = {"cpu": "32", "memory": "128Gi"} if number % 3 == 0 else {"cpu": "16", "memory": "64Gi"}
    amounts |= {"pods": "110"} | ({"nvidia.com/gpu": "8"} if number % 20 == 0 else {})
    taints = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}] if number % 20 == 0 else []
    taints += [{"key": "team", "value": "payments", "effect": "NoSchedule"}] if number % 25 == 7 else []
    labels = {HOSTNAME: name, "topology.kubernetes.io/zone": f"eu-1{'abc'[number * 7 % 11 % 3]}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | {"disk": "ssd" if number % 4 else "hdd"}},
        "spec": {"taints": taints, "unschedulable": number % 61 == 3},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def running() -> list[dict[str, Any]]:
    loads = [
        pod(f"load-{k}", cpu=("1", "2", "4", "6")[k * 7919 % 4], nodeName=name_of((k * 37 + k // 9) % NODES))
        for k in range(7000)
    ]
    homes = ((1, "2"), (13, "3"), (25, "5"))
    caches = [pod(f"cache-{n}", cpu=cpu, labels={"app": "cache"}, nodeName=name_of(n)) for n, cpu in homes]
    return [*loads, *caches]


def near_the_cache(name: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": HOSTNAME}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return pod(name, cpu="500m", labels={"app": "web"}, nodeSelector={"disk": "ssd"}, affinity=affinity)


async def test_a_large_cluster_is_shown_as_in_the_documentation(browser: Browser) -> None:
    nodes = [node(number) for number in range(NODES)]
    async with staged(nodes, objects=running()) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(
            near_the_cache("web-0"),
            *(pod(f"train-{i}", cpu="64") for i in range(12)),
            *(pod(f"render-{i}", cpu="2", nodeSelector={"disk": "nvme"}) for i in range(5)),
            pod("deploy-0", schedulingGates=[{"name": "example.com/approval"}]),
        )
        await stage.until(lambda: stage.recorder.bound_count >= 1 and stage.recorder.failed_count >= 17, 60)
        await page.goto(f"{stage.url}/dashboard/#/pod/default/web-0")
        await expect(page.locator("#verdict")).to_contain_text("ahead of")
        steps = await page.locator("#funnel li").all_inner_texts()
        await expect(page.locator("main")).to_contain_text("were drained", timeout=30_000)
        await page.screenshot(path=IMAGES / "pod.png", full_page=True)
        await page.click("nav >> text=Pending")
        await page.click("text=Find the change that frees the most")
        await expect(page.locator("[role=status] strong")).to_contain_text("of 18 pods", timeout=60_000)
        causes = await page.locator(".card h2").all_inner_texts()
        await page.screenshot(path=IMAGES / "pending.png")
        await page.click("nav >> text=Nodes")
        await expect(page.locator("canvas")).to_have_attribute("data-matching", str(NODES))
        await page.screenshot(path=IMAGES / "nodes.png")
        await page.click("nav >> text=Overview")
        for batch in range(6):
            await stage.create(*(pod(f"job-{batch}-{i}") for i in range(4 + batch * 3)))
            await asyncio.sleep(1.0)
        await expect(page.locator(".chart")).to_be_visible()
        await page.screenshot(path=IMAGES / "overview.png")

    assert len(steps) >= 4 and steps[0].startswith("5,000") and "chosen" in steps[-1]
    assert [cause.partition(" ")[0] for cause in causes if " × " in cause] == ["12", "5", "1"]
    assert visit.problems == []
