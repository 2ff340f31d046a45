"""The dashboard in a real browser on a running cluster: what it shows is what was decided, and nothing else runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from bayplan.app.settings import load_settings
from tests.browser.conftest import pod, staged, visiting

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
PAYLOAD = "<img src=x onerror=alert(1)><script>alert(2)</script>"


async def test_a_created_pod_shows_its_funnel_and_matrix(browser: Browser) -> None:
    async with staged(12) as stage, visiting(browser, stage.url) as visit:
        await stage.create(*(pod(f"web-{i}") for i in range(20)), pod("picky-0", nodeSelector={"zone": "none"}))
        await stage.until(lambda: stage.recorder.bound_count >= 20 and stage.recorder.failed_count >= 1)
        page = visit.page
        await expect(page.locator(".tile", has_text="pods on nodes")).to_contain_text("20")
        await expect(page.locator(".chart svg").first).to_be_visible()
        await page.goto(f"{stage.url}/dashboard/#/pod/default/web-7")
        record = stage.recorder.of_pod("default/web-7")[0]
        await expect(page.locator("h1")).to_have_text("default/web-7")
        await expect(page.locator("#verdict")).to_contain_text(f"runs on {record.node}")
        await expect(page.locator("#funnel li").first).to_contain_text("12")
        await expect(page.locator("#funnel li").last).to_contain_text(f"chosen: {record.node}")
        cells = await page.locator("#matrix tr.total td").all_inner_texts()
        rows = {
            (await row.locator("th").inner_text()).split()[0]: await row.locator("td").nth(0).inner_text()
            for row in await page.locator("#matrix tbody tr:not(.total)").all()
        }

    assert record.runner_up is not None
    assert cells == [f"{total:,}" for total in (record.total, record.runner_up.total)]
    for plugin, points in record.points.items():
        assert rows[plugin].split()[0] == str(points.weighted)
        assert rows[plugin].endswith(f"{'–' if points.raw is None else f'{points.raw:,}'} → {points.normalized}")
    assert visit.problems == []


async def test_a_pending_pod_shows_its_cause_and_what_would_help(browser: Browser) -> None:
    async with staged(6) as stage, visiting(browser, stage.url) as visit:
        await stage.create(
            *(pod(f"big-{i}", cpu="500") for i in range(3)), pod("picky-0", nodeSelector={"disk": "ssd"})
        )
        await stage.until(lambda: stage.recorder.failed_count >= 4)
        page = visit.page
        await page.click("nav >> text=Queue")
        await expect(page.locator(".verdict")).to_contain_text("3 because of NodeResourcesFit: Insufficient cpu")
        await page.click("text=Find the change that frees the most")
        await expect(page.locator("[role=status] strong")).to_contain_text(
            "of 4 pending pods would find a node", timeout=60_000
        )
        await page.click("summary:has-text('node affinity')")
        await page.click("text=default/picky-0")
        await expect(page.locator("#verdict")).to_contain_text("didn't match Pod's node affinity/selector")
        await expect(page.locator("main")).to_contain_text("if the pod did not select disk=ssd")
        await page.fill("#wi-disable", "NodeAffinity")
        await page.click("text=What if?")
        await expect(page.locator("main")).to_contain_text("default/picky-0 would go to")

    assert visit.problems == []


async def test_the_heat_map_answers_quickly_at_five_thousand_nodes(browser: Browser) -> None:
    nodes = [_node(number) for number in range(5000)]
    running = [
        pod(f"load-{number}", cpu=f"{1 + number * 7919 % 16}", nodeName=f"node-{number * 31 % 5000:04}")
        for number in range(3500)
    ]
    async with staged(nodes, objects=running) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await page.click("nav >> text=Nodes")
        canvas = page.locator("canvas")
        await expect(canvas).to_have_attribute("data-matching", "5000")
        box = await canvas.bounding_box()
        assert box is not None
        hover = await page.evaluate(
            """async () => {
                const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
                let worst = 0;
                for (let step = 1; step < 30; step++) {
                    const began = performance.now();
                    const at = { clientX: box.left + step * 20, clientY: box.top + 30 + step, bubbles: true };
                    canvas.dispatchEvent(new PointerEvent("pointermove", at));
                    await new Promise(requestAnimationFrame);
                    worst = Math.max(worst, performance.now() - began);
                }
                return [worst, document.querySelector(".tip").textContent];
            }"""
        )
        filtered = await page.evaluate(
            """async () => {
                const input = document.querySelector("#filter"), began = performance.now();
                input.value = "node-0042";
                input.dispatchEvent(new Event("input"));
                await new Promise(requestAnimationFrame);
                return [performance.now() - began, document.querySelector("canvas").dataset.matching];
            }"""
        )
        await page.fill("#filter", "")
        await canvas.focus()
        await page.keyboard.press("ArrowRight")
        status = await page.locator("#map-status").inner_text()
        await page.mouse.click(box["x"] + 30, box["y"] + 24)
        await expect(page.locator("main")).to_contain_text("no pod is pending")
        opened = page.url

    print(f"hover {hover[0]:.1f} ms, filter {filtered[0]:.1f} ms")
    assert hover[0] < 200 and hover[1].startswith("node-")
    assert filtered[0] < 200 and filtered[1] == "1"
    assert "cpu" in status
    assert "#/node/node-" in opened
    assert visit.problems == []


def _node(number: int) -> dict[str, object]:
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}", "kubernetes.io/hostname": f"node-{number:04}"}
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:04}", "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


async def test_hostile_text_is_shown_as_text(browser: Browser) -> None:
    """Labels and names of objects are the cluster's users' to write; so are messages of plugins."""
    async with staged(3) as stage, visiting(browser, stage.url) as visit:
        node = _node(1)
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "zone-a"  # type: ignore[index]
        await stage.create(pod("plain-0", nodeSelector={"team": "x"}))
        await stage.until(lambda: stage.recorder.failed_count >= 1)
        # An API server refuses such names; a cache that somebody else filled, or a plugin's message, might not.
        record = stage.recorder.latest(1)[0]
        live = stage.local.live
        info = live.cache.cluster.nodes.at(0)
        info.labels["topology.kubernetes.io/zone"] = PAYLOAD
        info.labels[PAYLOAD] = PAYLOAD
        queued = live.queue.get("default/plain-0")
        assert queued is not None and record.message
        queued.history.append((1.0, PAYLOAD, PAYLOAD))
        page = visit.page
        await page.click("nav >> text=Nodes")
        await expect(page.locator("#zone")).to_contain_text(PAYLOAD)
        await page.goto(f"{stage.url}/dashboard/#/pod/default/plain-0")
        await expect(page.locator("main")).to_contain_text(PAYLOAD)
        await page.goto(f"{stage.url}/dashboard/#/pod/default/{PAYLOAD.replace('/', '%2F')}")
        await expect(page.locator("[role=alert]")).to_contain_text("path")
        injected = await page.locator("main img, main script").count()

    assert injected == 0
    assert [problem for problem in visit.problems if "40" not in problem] == []


async def test_a_plugin_reload_appears(browser: Browser, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(_plugin("Mine"))
    async with staged(3, plugins=[str(plugin)]) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await stage.create(pod("web-0"))
        await stage.until(lambda: stage.recorder.bound_count >= 1)
        await page.click("nav >> text=Plugins")
        await expect(page.locator("main")).to_contain_text("Mine")
        await expect(page.locator("main")).to_contain_text("Nothing was reloaded")
        await asyncio.sleep(1.2)
        plugin.write_text(_plugin("Other"))
        stage.settings.append(load_settings(None, [str(plugin)], enable=True))
        stage.local.reload(stage.settings[-1])
        stage.explaining.note_reload("reloaded mine.py", [])
        await expect(page.locator("main")).to_contain_text("Other", timeout=60_000)
        await expect(page.locator("main")).to_contain_text("reloaded mine.py")
        await page.click("nav >> text=Configuration")
        await expect(page.locator("main")).to_contain_text("default-scheduler")

    assert visit.problems == []


def _plugin(name: str) -> str:
    return (
        "from bayplan.framework import Plugin\n\n\n"
        f"class {name}(Plugin):\n"
        '    """Likes every node the same."""\n\n'
        "    def score(self, state, pod, node):\n"
        "        return 1\n"
    )


async def test_it_is_readable_in_the_dark_and_by_keyboard(browser: Browser) -> None:
    async with staged(8) as stage, visiting(browser, stage.url, color_scheme="dark") as visit:
        await stage.create(*(pod(f"web-{i}") for i in range(5)))
        await stage.until(lambda: stage.recorder.bound_count >= 5)
        page = visit.page
        await expect(page.locator(".tile", has_text="pods on nodes")).to_contain_text("5")
        background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        await page.keyboard.press("Tab")
        first = await page.evaluate("document.activeElement.textContent")
        unnamed = await page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, a, canvas")].filter((item) =>
                !(item.textContent.trim() || item.getAttribute("aria-label") || item.labels?.length)).length"""
        )
        await page.evaluate("document.activeElement.blur()")

    assert background == "rgb(14, 19, 24)"
    assert first == "Skip to content"
    assert unnamed == 0
    assert visit.problems == []
