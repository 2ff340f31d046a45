"""The dashboard in front of a large cluster: time to content and elements of every page, and what scheduling loses.

    python -m bench.browser [--nodes 5000] [--pods 50000]

Runs the embedded cluster, the scheduler and headless Chromium on this machine. Fails when a page takes a second or
longer to its content in the median of three visits, or has more than 1,500 elements.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

from tests.browser.conftest import CHROMIUM, FLAGS, Stage, pod, staged
from tests.browser.looks import page_of
from tests.browser.scene import name_of, near_the_cache, node, running, waiting

VISITS = 3
MOST_SECONDS = 1.0
MOST_ELEMENTS = 1500
PAGES = (
    "#/overview",
    "#/pods",
    "#/pods?state=unschedulable",
    "#/pods?q=load-123",
    "#/decisions",
    "#/queue",
    "#/preemptions",
    "#/nodes",
    f"#/node/{name_of(13)}",
    "#/pod/default/web-0",
    "#/pod/default/train-0",
    "#/plugins",
    "#/config",
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    page: str
    seconds: float
    elements: int

    @property
    def is_good(self) -> bool:
        return self.seconds < MOST_SECONDS and self.elements <= MOST_ELEMENTS


async def visit(browser: Any, url: str, page: str) -> Figure:
    """A new browser context each time, so that nothing is cached."""
    seconds, elements = [], 0
    for _ in range(VISITS):
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        tab = await context.new_page()
        began = time.perf_counter()
        await tab.goto(f"{url}/dashboard/{page}", wait_until="commit")
        await tab.wait_for_selector(page_of(page), timeout=30_000)
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(1.5)
        elements = max(elements, await tab.evaluate("document.querySelectorAll('*').length"))
        await context.close()
    return Figure(page=page, seconds=statistics.median(seconds), elements=elements)


async def typed(browser: Any, stage: Stage) -> float:
    """Seconds from a letter in the search box to the list of what was found."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    tab = await context.new_page()
    await tab.goto(f"{stage.url}/dashboard/#/config")
    await tab.wait_for_selector(page_of("#/config"))
    began = time.perf_counter()
    await tab.type("#find", "load-4711")
    await tab.wait_for_selector("#found li >> text=load-4711")
    seconds = time.perf_counter() - began
    await context.close()
    return seconds


async def measure(nodes: int, pods: int) -> list[Figure]:
    from playwright.async_api import async_playwright

    print(f"starting {nodes:,} nodes and {pods:,} pods", flush=True)
    objects = [*running(nodes, pods)]
    async with staged([node(n) for n in range(nodes)], objects=objects) as stage:
        await stage.create(near_the_cache("web-0"), *waiting(), *(pod(f"job-{i}") for i in range(300)))
        await stage.until(lambda: stage.recorder.bound_count >= 301, 120)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            figures = [await visit(browser, stage.url, page) for page in PAGES]
            found = await typed(browser, stage)
            await browser.close()
    for figure in figures:
        mark = "" if figure.is_good else "  too much"
        print(f"{figure.page:32}  {figure.seconds * 1000:6.0f} ms to content  {figure.elements:5} elements{mark}")
    print(f"{'search as you type':32}  {found * 1000:6.0f} ms to the list")
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    options = parser.parse_args()
    figures = asyncio.run(measure(options.nodes, options.pods))
    return 0 if all(figure.is_good for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
