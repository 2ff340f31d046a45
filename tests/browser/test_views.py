"""What each page shows besides its table: heat map by any resource, axes, causes, devices, gangs, and a lost server."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import expect, pod, staged, visiting
from tests.browser.looks import fill, showing
from tests.browser.scene import node, preempt, waiting
from tests.browser.test_pages import open_page

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
_SIX_OF_A_GROUP_NOW = re.compile("Nothing differs|current pods number: 6, minMember of group: 8")
"""A pod is tried when it comes; how many of its group were there by then is a matter of time."""


async def test_the_heat_map_shows_any_resource_and_its_use_over_time_by_an_address(browser: Browser) -> None:
    async with staged([node(n) for n in range(60)]) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("web-0"))
        await stage.until(lambda: stage.recorder.bound_count >= 1)
        await open_page(page, stage, "#/nodes")
        await expect(page.locator("#resource")).to_have_value("cpu")
        offered = await page.locator("#resource option").all_text_contents()
        await page.select_option("#resource", "nvidia.com/gpu")
        await expect(page.locator("main")).to_contain_text("nvidia.com/gpu requested")
        await page.locator("canvas").focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("#map-status")).to_contain_text("nvidia.com/gpu")
        await expect(page.locator("section[aria-label='Requested over time'] svg")).to_have_count(1)
        sent = page.url
        await page.goto("about:blank")
        await page.goto(sent)
        await expect(page.locator("#resource")).to_have_value("nvidia.com/gpu")
        await page.select_option("#zone", "eu-1a")
        await page.fill("#filter", "gpu")
        await expect(page.locator("canvas")).to_have_attribute("data-matching", re.compile("^[1-3]$"))

    assert offered == ["cpu", "memory", "nvidia.com/gpu", "pods"]
    assert page.url.endswith("#/nodes?resource=nvidia.com%2Fgpu&zone=eu-1a&q=gpu")
    assert visit.problems == []


async def test_charts_have_round_times_and_units_on_their_axes(browser: Browser) -> None:
    async with staged(6) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(*(pod(f"web-{i}") for i in range(30)))
        await stage.until(lambda: stage.recorder.bound_count >= 30)
        await open_page(page, stage, "#/overview")
        latency = page.locator("section[aria-label='From the start of an attempt to its binding'] svg")
        await expect(latency.locator("text", has_text=re.compile(r"^[\d.]+ ms$")).first).to_be_visible()
        await expect(latency.locator("text", has_text=re.compile(r"^\d\d:\d\d:\d\d$")).first).to_be_visible()
        said = await latency.get_attribute("aria-label") or ""
        await page.click("[aria-label='Span of the charts'] >> text=1 hour")
        await expect(page.locator("button[aria-pressed=true]")).to_have_text("1 hour")
        clipped = await page.evaluate(
            """() => [...document.querySelectorAll(".chart svg")].flatMap((drawing) => {
                const box = drawing.getBoundingClientRect();
                return [...drawing.querySelectorAll("text")].map((text) => text.getBoundingClientRect())
                    .filter((text) => text.left < box.left - 1 || text.right > box.right + 1);
            }).length"""
        )

    assert re.search(r"p99 now [\d.]+ ms, highest [\d.]+ ms; p50 now", said)
    assert page.url.endswith("#/overview?span=1h")
    assert clipped == 0
    assert visit.problems == []


async def test_the_overview_names_causes_and_leaves_prose_to_those_who_unfold_it(browser: Browser) -> None:
    async with staged(6) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(*waiting())
        await stage.until(lambda: stage.recorder.failed_count >= 17)
        await open_page(page, stage, "#/overview")
        await expect(page.locator(".causes .cause")).to_have_count(4)
        await expect(page.locator("section[aria-label='Latest decisions'] tbody tr")).to_have_count(2)
        said = await page.locator("main").inner_text()

    assert "nodes are available" not in said and "preemption:" not in said
    assert said.count("Insufficient cpu") == 2
    assert visit.problems == []


async def test_causes_unfold_and_stay_unfolded_while_the_page_is_refreshed(browser: Browser) -> None:
    async with staged(6) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(*waiting())
        await stage.until(lambda: stage.recorder.failed_count >= 17)
        await open_page(page, stage, "#/queue")
        cause = page.locator("details.cause", has_text="Insufficient cpu")
        words = cause.locator("details >> text=nodes are available")
        await expect(words).to_be_hidden()
        await cause.locator("summary").first.click()
        await expect(cause.locator("tbody tr")).to_have_count(8)
        await expect(cause.locator("a", has_text="and 4 more")).to_have_count(1)
        await cause.locator("details summary").click()
        await expect(words).to_be_visible()
        await stage.create(*(pod(f"train-1{i}", cpu="64") for i in range(2, 5)))
        await expect(cause.locator(".count")).to_have_text("15")
        await expect(words).to_be_visible()
        focused = await page.evaluate("document.activeElement.textContent")
        unserved = page.locator("details.cause", has_text="old-scheduler")
        await expect(unserved.locator("code")).to_have_text("old-scheduler")
        await cause.locator("a", has_text="and 7 more").click()
        await expect(page.locator("main tbody tr")).to_have_count(15)

    assert focused == "In kube-scheduler's words"
    assert visit.problems == []


async def test_gangs_and_devices_are_explained_and_plugins_are_live(browser: Browser) -> None:
    async with showing(0) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await fill(stage)
        await open_page(page, stage, "#/pod/ml/allreduce-0")
        await expect(page.locator("#verdict")).to_contain_text("minMember of group: 8")
        await expect(page.locator("section[aria-label='What would let it run']")).to_contain_text("2 more pods like it")
        await expect(page.locator("section[aria-label='Then against now']")).to_contain_text(_SIX_OF_A_GROUP_NOW)
        await open_page(page, stage, "#/pod/ml/pretrain-0")
        await expect(page.locator("#verdict")).to_contain_text("lack devices")
        await expect(page.locator("#devices table").first).to_contain_text("gpu-0, gpu-1, gpu-2, gpu-3")
        await open_page(page, stage, "#/pod/ml/finetune-0")
        await expect(page.locator("section[aria-label=Devices]")).to_contain_text("gpu.example.com")
        await open_page(page, stage, "#/plugins")
        row = page.locator("main tbody tr", has_text="NodeAffinity")
        before = await row.locator("td[data-head=rejected]").inner_text()
        await stage.create(*(pod(f"nowhere-{i}", nodeSelector={"disk": "tape"}) for i in range(3)))
        await expect(row.locator("td[data-head=rejected]")).not_to_have_text(before)
        await open_page(page, stage, "#/preemptions")
        await expect(page.locator(".tile", has_text="pods that left")).to_contain_text("6")
        await expect(page.locator("main tbody tr")).to_have_count(3)

    assert visit.problems == []


async def test_a_pod_has_the_same_state_on_its_page_as_in_the_list_and_in_its_cause(browser: Browser) -> None:
    names = {"train-0": "unschedulable", "deploy-0": "gated", "legacy-0": "unserved", "web-0": "placed"}
    found: dict[str, tuple[str, str]] = {}
    async with staged(6) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("web-0"), *waiting())
        await stage.until(lambda: stage.recorder.bound_count >= 1 and stage.recorder.failed_count >= 17)
        for name in names:
            await open_page(page, stage, f"#/pods?q={name}")
            listed = (
                await page.locator("main tbody tr", has_text=f"default/{name}").first.locator(".badge").inner_text()
            )
            await open_page(page, stage, f"#/pod/default/{name}")
            found[name] = listed, await page.locator("section[aria-label=Verdict] .badge").inner_text()
        await open_page(page, stage, "#/queue")
        unserved = page.locator("details.cause", has_text="old-scheduler")
        await unserved.locator("summary").first.click()
        await expect(unserved.locator(".badge")).to_have_text("unserved")
        await expect(page.locator(".tile", has_text="unserved")).to_contain_text("1")
        await page.click("text=Find the change that frees the most")
        await expect(page.locator("[role=status] .command").first).to_contain_text("kubectl", timeout=60_000)

    assert found == {name: (state, state) for name, state in names.items()}
    assert visit.problems == []


async def test_victims_lead_to_their_preemptor_and_the_way_of_a_bound_pod_ends_with_its_binding(
    browser: Browser,
) -> None:
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await preempt(stage)
        await stage.until(lambda: not stage.has_pods("batch-0"))
        await open_page(page, stage, "#/pod/default/batch-0")
        verdict = page.locator("section[aria-label=Verdict]")
        await expect(verdict).to_contain_text("gone from edge-0 for default/vip-0.")
        await expect(page.locator("section[aria-label='What if']")).to_be_hidden()
        await verdict.locator("a", has_text="vip-0").click()
        await expect(page.locator("section[aria-label='Who had to leave']")).to_contain_text("default/batch-0")
        await expect(page.locator(".steps li").last).to_contain_text("bound at")
        await expect(page.locator("section[aria-label='What if']")).to_be_visible()
        await open_page(page, stage, "#/pod/default/nobody")
        await expect(page.locator("[role=alert] code")).to_have_text("default/nobody")
        await expect(page.locator("section[aria-label='What if']")).to_be_hidden()

    assert [problem for problem in visit.problems if "404" not in problem] == []


async def test_a_server_that_went_away_is_named_and_a_strange_address_leads_to_the_overview(browser: Browser) -> None:
    async with AsyncExitStack() as opened:
        stage = await opened.enter_async_context(staged(3))
        async with visiting(browser, stage.url) as visit:
            page = visit.page
            await page.goto(f"{stage.url}/dashboard/#/constructor")
            await expect(page.locator("h1")).to_have_text("Overview")
            await open_page(page, stage, "#/pods")
            problems = list(visit.problems)
            await opened.aclose()
            await expect(page.locator("#link")).to_have_attribute("data-state", "lost")
            said = await page.locator("#link").inner_text()

    shown = r"; what is shown was so at \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"{re.escape(stage.url.removeprefix('http://'))} does not answer, trying again{shown}", said)
    assert problems == []
