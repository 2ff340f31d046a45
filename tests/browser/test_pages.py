"""Pages as people use them: search, filters, addresses, live updates, the keyboard, and rows that unfold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Stage, expect, pod, staged, visiting
from tests.browser.looks import page_of
from tests.browser.scene import preempt, waiting

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


async def open_page(page: Page, stage: Stage, address: str) -> None:
    await page.goto(f"{stage.url}/dashboard/{address}")
    await expect(page.locator(page_of(address))).to_have_count(1)


async def test_search_finds_pods_and_nodes_while_one_types(browser: Browser) -> None:
    async with staged(12) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(*(pod(f"web-{i}") for i in range(20)), pod("db-0"))
        await stage.until(lambda: stage.recorder.bound_count >= 21)
        await page.keyboard.press("/")
        await page.keyboard.type("web-1")
        found = page.locator("#found li[role=option]")
        await expect(found.first).to_contain_text("default/web-1")
        await expect(page.locator("#found")).to_contain_text("All 11 pods")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await expect(found.nth(1)).to_have_attribute("aria-selected", "true")
        chosen = await found.nth(1).locator("span").first.inner_text()
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text(chosen)
        await page.fill("#find", "node-07")
        await expect(found.first).to_contain_text("node-07")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("node-07")
        await page.fill("#find", "nothing-of-that-name")
        await expect(page.locator("#found")).to_contain_text("Nothing has that name")
        await page.fill("#find", "db")
        await expect(found.first).to_contain_text("default/db-0")
        await page.keyboard.press("Enter")
        await expect(page.locator("main tbody tr")).to_have_count(1)

    assert page.url.endswith("#/pods?q=db")
    assert visit.problems == []


async def test_filters_of_pods_are_in_the_address_and_an_address_sets_the_filters(browser: Browser) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    cart = pod("cart-0")
    cart["metadata"]["namespace"] = "shop"
    async with staged(6) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(namespace, cart, *(pod(f"web-{i}") for i in range(5)), *waiting())
        await stage.until(lambda: stage.recorder.bound_count >= 6 and stage.recorder.failed_count >= 17)
        await open_page(page, stage, "#/pods")
        rows = page.locator("main tbody tr")
        await expect(rows).to_have_count(25)
        await page.select_option("#namespace", "shop")
        await expect(rows).to_have_count(1)
        await page.select_option("#namespace", "")
        await page.click("[aria-label=States] >> text=unserved")
        await expect(rows).to_have_count(1)
        await expect(rows.first).to_contain_text("no scheduler here is named old-scheduler")
        await page.click("[aria-label=States] >> text=unserved")
        await page.select_option("#reason", "NodeAffinity")
        await expect(rows).to_have_count(5)
        await page.fill("#q", "render-3")
        await expect(rows).to_have_count(1)
        sent = page.url
        async with visiting(browser, stage.url) as other:
            await other.page.goto(sent)
            await expect(other.page.locator("main tbody tr")).to_have_count(1)
            await expect(other.page.locator("#q")).to_have_value("render-3")
            await expect(other.page.locator("#reason")).to_have_value("NodeAffinity")

    assert sent.endswith("#/pods?reason=NodeAffinity&q=render-3")
    assert visit.problems == []


async def test_three_hundred_pods_of_one_template_are_one_row_that_unfolds(browser: Browser) -> None:
    async with staged(12) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(*(pod(f"web-{i}", cpu="10m") for i in range(300)), pod("big-0", cpu="900"))
        await stage.until(lambda: stage.recorder.bound_count >= 300 and stage.recorder.failed_count >= 1)
        await open_page(page, stage, "#/decisions")
        await expect(page.locator("main tbody tr")).to_have_count(2)
        row = page.locator("main tbody tr", has_text="default/web")
        await expect(row).to_contain_text("300 pods")
        await row.locator("button").click()
        await expect(page.locator("tr.inside")).to_have_count(50)
        await expect(row.locator("button")).to_have_attribute("aria-expanded", "true")
        await page.click("[aria-label=Outcomes] >> text=unschedulable")
        await expect(page.locator("main tbody tr", has_text="Insufficient cpu")).to_have_count(1)
        await expect(page.locator("main tbody tr", has_text="default/web")).to_have_count(0)

    assert page.url.endswith("#/decisions?outcome=unschedulable")
    assert visit.problems == []


async def test_what_happens_appears_without_a_reload_and_keeps_the_focus(browser: Browser) -> None:
    async with staged(4) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("web-0"), pod("big-0", cpu="900"))
        await stage.until(lambda: stage.recorder.bound_count >= 1)
        await open_page(page, stage, "#/pods")
        await page.focus("a:has-text('default/web-0')")
        await stage.create(pod("late-0"))
        await expect(page.locator("main")).to_contain_text("default/late-0")
        focused = await page.evaluate("document.activeElement.textContent")
        await page.keyboard.press("j")
        await page.keyboard.press("k")
        above = await page.evaluate("document.activeElement.textContent")
        await open_page(page, stage, "#/preemptions")
        await expect(page.locator("main")).to_contain_text("No pod had to leave")
        await preempt(stage)
        await expect(page.locator("main tbody tr")).to_contain_text("default/batch-0")
        await expect(page.locator("main tbody tr")).to_contain_text("bound")
        await open_page(page, stage, "#/overview")
        await expect(page.locator(".chart svg")).to_have_count(4)
        labels = [await chart.get_attribute("aria-label") for chart in await page.locator(".chart svg").all()]
        axes = await page.locator(".chart svg").first.locator("text").all_text_contents()

    assert focused == "default/web-0"
    assert above == "default/late-0"
    assert any("p99 now" in (label or "") for label in labels)
    assert axes[0] == "0" and axes[-1].count(":") == 2
    assert visit.problems == []


async def test_keys_lead_to_every_page_and_are_listed(browser: Browser) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await expect(page.locator(page_of("#/overview"))).to_have_count(1)
        for key, name in (("p", "pods"), ("d", "decisions"), ("q", "queue"), ("e", "preemptions"), ("n", "nodes")):
            await page.keyboard.press("g")
            await page.keyboard.press(key)
            await expect(page.locator(page_of(f"#/{name}"))).to_have_count(1)
        await page.keyboard.press("?")
        await expect(page.locator("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.click("#theme")
        dark = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        await page.click("#theme")
        light = await page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert (dark, light) == ("rgb(14, 19, 24)", "rgb(244, 245, 247)")
    assert visit.problems == []


async def test_attempts_are_compared_and_the_pair_is_in_the_address(browser: Browser) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("big-0", cpu="900"))
        await stage.until(lambda: stage.recorder.failed_count >= 1)
        amounts = {"cpu": "950", "memory": "64Gi", "pods": "110"}
        host = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "huge"}}
        await stage.create({**host, "status": {"allocatable": amounts, "capacity": amounts}})
        await stage.until(lambda: any(record.node for record in stage.recorder.of_pod("default/big-0")))
        await open_page(page, stage, "#/pod/default/big-0?a=1")
        card = page.locator("section[aria-label='Difference between two attempts']")
        await expect(card.locator("tr.changed", has_text="node").first).to_be_visible()
        await expect(card.locator("tr.changed", has_text="nodes that fit")).to_contain_text("0")
        await expect(page.locator("section[aria-label='Then, against one more like it now']")).to_contain_text("huge")
        await card.locator("#attempt-b").select_option("1")
        await expect(card.locator("tr.changed")).to_have_count(0)

    assert page.url.endswith("a=1&b=1")
    assert visit.problems == []


async def test_the_head_of_the_score_matrix_stays_while_it_scrolls(browser: Browser) -> None:
    async with staged(20) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await page.set_viewport_size({"width": 1000, "height": 260})
        await stage.create(pod("gated-0"), pod("big-0", cpu="900"))
        await stage.until(lambda: stage.recorder.bound_count >= 1)
        await open_page(page, stage, "#/pod/default/gated-0")
        scroller = page.locator(".scroll:has(#matrix)")
        await scroller.evaluate("(box) => { box.scrollTop = 9999; }")
        gap = await scroller.evaluate(
            "(box) => box.querySelector('thead th').getBoundingClientRect().top - box.getBoundingClientRect().top"
        )
        clipped = await scroller.evaluate(
            "(box) => box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX"
        )

    assert abs(gap) <= 1
    assert clipped in (False, "auto")
    assert visit.problems == []


async def test_the_pages_work_with_the_token_of_their_address(browser: Browser) -> None:
    async with staged(3, token="secret-of-this-run") as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await expect(page.locator("body")).to_contain_text("Unauthorized")
        visit.problems.clear()
        await page.goto(f"{stage.url}/dashboard/?token=secret-of-this-run#/pods")
        await expect(page.locator(page_of("#/pods"))).to_have_count(1)
        address = page.url
        await page.click("nav >> text=Nodes")
        await expect(page.locator("canvas")).to_have_attribute("data-matching", "3")
        await expect(page.locator("#link")).to_contain_text("3 nodes, live")

    assert "secret" not in address and address.endswith("#/pods")
    assert visit.problems == []
