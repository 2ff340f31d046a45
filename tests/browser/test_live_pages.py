"""Pages that stay open: times that go on, text that is copied, answers that fail, and a scheduler that refuses."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from bayplan.explain.service import NotReady
from tests.browser.conftest import Stage, expect, pod, staged, visiting
from tests.browser.looks import fill, showing
from tests.browser.scene import node, waiting
from tests.browser.test_pages import open_page

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Route

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
AN_HOUR_AHEAD = "const real = Date.now; Date.now = () => real() + 3600e3;"


async def answer_with(page: Page, address: str, status: int, message: str) -> None:
    """Let every request for the address be refused."""

    async def refuse(route: Route) -> None:
        await route.fulfill(status=status, content_type="application/json", body=json.dumps({"message": message}))

    await page.route(address, refuse)


async def more_nodes(page: Page, stage: Stage, count: int) -> None:
    """Add one after the other, each when the page has heard of the one before: seconds pass on the page."""
    there = len(stage.local.live.cache.cluster.nodes)
    for number in range(there, there + count):
        await stage.create(node(number))
        await expect(page.locator("#link")).to_have_text(f"{number + 1} nodes, live")


async def test_how_long_ago_it_was_goes_on_and_follows_the_clock_of_the_scheduler(browser: Browser) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await page.add_init_script(AN_HOUR_AHEAD)
        await stage.create(pod("web-0"))
        await stage.until(lambda: stage.recorder.bound_count >= 1)
        await page.reload()
        await expect(page.locator("#link")).to_have_text("3 nodes, live")
        await open_page(page, stage, "#/pod/default/web-0")
        decided = page.locator("section[aria-label=Verdict] time")
        await expect(decided).to_have_text(re.compile(r"^\d+ s ago$"))
        first = await decided.inner_text()
        await expect(decided).not_to_have_text(first)
        title = await decided.get_attribute("title")

    assert title is not None and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+", title)
    assert visit.problems == []


async def test_what_is_selected_stays_until_it_is_let_go(browser: Browser) -> None:
    async with staged([node(n) for n in range(3)]) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("web-0"))
        await open_page(page, stage, "#/pods")
        await page.evaluate("getSelection().selectAllChildren(document.querySelector('main tbody a'))")
        await stage.create(pod("late-0"))
        await stage.until(lambda: stage.has_pods("late-0"))
        await more_nodes(page, stage, 4)
        chosen = await page.evaluate("getSelection().toString()")
        await expect(page.locator("main tbody tr")).to_have_count(1)
        await page.evaluate("getSelection().removeAllRanges()")
        await expect(page.locator("main tbody tr")).to_have_count(2)

    assert chosen == "default/web-0"
    assert visit.problems == []


async def test_a_search_ends_with_the_page_that_it_was_made_on(browser: Browser) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("web-0"))
        await stage.until(lambda: stage.recorder.bound_count >= 1)
        held: list[Route] = []
        await page.route("**/bayplan/v1/search*", lambda route: held.append(route))
        await page.fill("#find", "web")
        await stage.until(lambda: bool(held))
        await page.locator("#find").press("Enter")
        await expect(page.locator("main tbody tr")).to_have_count(1)
        await page.unroute("**/bayplan/v1/search*")
        reached = page.url
        await expect(page.locator("#found")).to_be_hidden()
        await page.fill("#find", "web")
        await expect(page.locator("#found li")).to_have_count(1)
        await page.evaluate("location.hash = '#/nodes'")
        await expect(page.locator("h1")).to_have_text("Nodes")
        await expect(page.locator("#find")).to_have_value("")
        await expect(page.locator("#found")).to_be_hidden()

    assert reached.endswith("#/pods?q=web")
    assert visit.problems == []


async def test_a_cluster_without_nodes_has_no_empty_boxes(browser: Browser) -> None:
    async with staged([]) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await open_page(page, stage, "#/nodes")
        await expect(page.locator("#map-status")).to_have_text("There are no nodes.")
        await expect(page.locator("#resource")).to_have_value("cpu")
        await expect(page.locator("main")).to_contain_text("No node offers anything.")
        await expect(page.locator("main table")).to_have_count(0)
        await open_page(page, stage, "#/overview")
        await expect(page.locator(".tile", has_text="cpu requested")).to_contain_text("–")
        await open_page(page, stage, "#/queue")
        await expect(page.locator("main")).to_contain_text("No pod is pending.")
        await expect(page.get_by_role("button", name="Find the change")).to_have_count(0)
        await open_page(page, stage, "#/nodes")
        await stage.create(node(1))
        await expect(page.locator("canvas")).to_have_attribute("data-matching", "1")
        await expect(page.locator("canvas")).to_be_visible()

    assert visit.problems == []


async def test_a_scheduler_that_refuses_says_why_and_the_page_comes_back_by_itself(browser: Browser) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        link = page.locator("#link")
        await expect(link).to_have_text("3 nodes, live")
        gone = "https://10.0.0.1:10259 does not answer: connection refused"
        await answer_with(page, "**/bayplan/v1/events", 401, "")
        await answer_with(page, "**/bayplan/v1/overview", 502, gone)
        await page.reload()
        await expect(link).to_have_text(gone)
        await page.unroute("**/bayplan/v1/overview")
        await answer_with(page, "**/bayplan/v1/overview", 401, "")
        await expect(link).to_contain_text("this session is not known any more")
        await page.unroute("**/bayplan/v1/events")
        await expect(link).to_have_text("3 nodes, live", timeout=30_000)


async def test_a_part_of_a_page_that_fails_says_so_until_it_is_answered(browser: Browser) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        for path in ("log", "pending", "timeline"):
            await answer_with(page, f"**/bayplan/v1/{path}?*", 503, f"no {path} yet")
            await answer_with(page, f"**/bayplan/v1/{path}", 503, f"no {path} yet")
        await page.reload()
        latest = page.locator("section[aria-label='Latest decisions']")
        await expect(latest.locator("[role=alert]")).to_have_text("no log yet")
        await expect(page.locator("section[aria-label='What pods wait for'] [role=alert]")).to_have_text(
            "no pending yet"
        )
        await expect(page.locator(".chart [role=alert]").first).to_have_text("no timeline yet")
        await expect(page.locator(".tile", has_text="p99 to binding").locator("dd")).to_have_text("–")
        await page.unroute_all()
        await expect(latest).to_contain_text("No pod has been decided on yet.")
        await expect(page.locator(".chart svg")).to_have_count(4)


async def test_a_short_address_is_enough_and_an_unknown_name_leads_to_those_like_it(browser: Browser) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("web-0"), *waiting())
        await stage.until(lambda: stage.recorder.bound_count >= 1 and stage.recorder.failed_count >= 17)
        await page.goto(f"{stage.url}/dashboard/#/pod/web-0")
        await expect(page.locator("h1")).to_have_text("default/web-0")
        await page.goto(f"{stage.url}/dashboard/#/pod")
        await expect(page.locator("h1")).to_have_text("Pods")
        await page.goto(f"{stage.url}/dashboard/#/node/")
        await expect(page.locator("h1")).to_have_text("Nodes")
        await page.goto(f"{stage.url}/dashboard/#/pod/default/web")
        await page.click("text=Pods with such a name")
        await expect(page.locator("main tbody tr")).to_have_count(1)
        await open_page(page, stage, "#/queue")
        await expect(page.locator("details.cause", has_text="old-scheduler").locator(".since")).to_contain_text("for ")

    assert [problem for problem in visit.problems if "404" not in problem] == []


async def test_a_pod_that_was_refused_after_the_choice_is_told_of_then_and_a_node_of_its_devices(
    browser: Browser,
) -> None:
    async with showing(0) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await fill(stage)
        await open_page(page, stage, "#/pod/batch/solver-none-0")
        verdict = page.locator("section[aria-label=Verdict]")
        await expect(verdict.locator(".verdict")).to_have_class(re.compile("refuse"))
        await expect(verdict).to_contain_text("As decided")
        await expect(verdict).not_to_contain_text("as it is now")
        await open_page(page, stage, "#/pod/ml/finetune-0")
        await verdict.locator("a").click()
        devices = page.locator("section[aria-label=Devices] tbody tr", has_text="ml/finetune-0")
        await expect(devices).to_have_count(2)
        await expect(devices.first).to_contain_text("taken")
        await page.click("text=all of them in the log")
        await expect(page.locator("main tbody tr", has_text="ml/finetune-0")).to_have_count(1)

    assert "node=gpu-" in page.url
    assert visit.problems == []


async def test_the_tip_of_the_heat_map_stays_on_a_narrow_screen(browser: Browser) -> None:
    async with staged([node(n) for n in range(60)]) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await page.set_viewport_size({"width": 390, "height": 800})
        await open_page(page, stage, "#/nodes?resource=nvidia.com%2Fgpu")
        await page.locator("canvas").focus()
        sideways = 0
        for _ in range(14):
            await page.keyboard.press("ArrowRight")
            sideways = max(sideways, await page.evaluate("document.documentElement.scrollWidth - innerWidth"))
        await expect(page.locator(".tip")).to_be_visible()

    assert sideways <= 0
    assert visit.problems == []


async def test_a_scheduler_that_sends_nothing_is_not_shown_as_live(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was stopped, or stands by, ends no stream. The page says of when it is, and ages go on."""

    def stands_by() -> None:
        raise NotReady("this replica stands by")

    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        link = page.locator("#link")
        await stage.create(pod("web-0"))
        await stage.until(lambda: stage.recorder.bound_count >= 1)
        await open_page(page, stage, "#/pod/default/web-0")
        await expect(link).to_have_text("3 nodes, live")
        monkeypatch.setattr(stage.explaining.service, "overview", stands_by)
        said = r"this replica stands by; what is shown was so at \d\d:\d\d:\d\d"
        await expect(link).to_have_text(re.compile(rf"^{said}$"))
        decided = page.locator("section[aria-label=Verdict] time")
        first = await decided.inner_text()
        await expect(decided).not_to_have_text(first)
        monkeypatch.undo()
        await expect(link).to_have_text("3 nodes, live")
