"""A cluster that looks like one, and the pictures of it in the documentation.

BAYPLAN_SCREENSHOTS=docs/images renews them. What they show is checked: a funnel of several filters, a winner by a few
points, and pending pods for three reasons.
"""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import IMAGES, staged, visiting
from tests.browser.looks import page_of
from tests.browser.scene import definitions, near_the_cache, node, preempt, running, waiting, web_shop

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
NODES = 5000


async def test_a_large_cluster_is_shown_as_in_the_documentation(browser: Browser) -> None:
    nodes = [node(number) for number in range(NODES)]
    async with (
        staged(nodes, objects=[*definitions(), *running(NODES, 7000)]) as stage,
        visiting(browser, stage.url) as visit,
    ):
        page = visit.page
        await page.set_viewport_size({"width": 1440, "height": 900})
        await stage.create(near_the_cache("web-0"), *waiting())
        await stage.until(lambda: stage.recorder.bound_count >= 1 and stage.recorder.failed_count >= 17, 120)
        await preempt(stage)
        await page.goto(f"{stage.url}/dashboard/#/pod/default/web-0")
        await expect(page.locator("#verdict")).to_contain_text("ahead of")
        steps = await page.locator("#funnel li").all_inner_texts()
        await expect(page.locator("main")).to_contain_text("were cordoned", timeout=30_000)
        await page.screenshot(path=IMAGES / "pod.png", full_page=True)
        await page.click("nav >> text=Queue")
        await page.click("text=Find the change that frees the most")
        await expect(page.locator("[role=status] strong")).to_contain_text("of 19 pending pods", timeout=60_000)
        causes = await page.locator(".cause .count").all_inner_texts()
        shop = web_shop()
        for batch in range(10):
            await stage.create(*shop[batch * 30 : batch * 30 + 30])
            await asyncio.sleep(1.0)
        await page.screenshot(path=IMAGES / "queue.png", full_page=True)
        await page.click("nav >> text=Nodes")
        await expect(page.locator("canvas")).to_have_attribute("data-matching", str(NODES + 1))
        await page.screenshot(path=IMAGES / "nodes.png", full_page=True)
        for name in ("pods", "decisions"):
            await page.click(f"nav >> text={name.capitalize()}")
            await expect(page.locator(page_of(f"#/{name}"))).to_have_count(1)
            await page.screenshot(path=IMAGES / f"{name}.png")
        await page.emulate_media(color_scheme="dark")
        await page.click("nav >> text=Overview")
        await expect(page.locator(".chart svg")).to_have_count(4)
        await page.screenshot(path=IMAGES / "overview-dark.png", full_page=True)

    assert len(steps) >= 4 and steps[0].startswith("5,000") and "chosen" in steps[-1]
    assert causes == ["12", "5", "1", "1"]
    assert visit.problems == []
