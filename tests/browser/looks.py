"""Pictures of every page at two widths, dark and light, for people to look at.

python -m tests.browser.looks FOLDER [PAGE ...] [WIDTH-SCHEME ...]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.conftest import CHROMIUM, FLAGS, Stage, pod, staged
from tests.browser.scene import (
    CONFIG,
    DEVICES,
    LICENCES,
    claiming,
    definitions,
    gang,
    licensed,
    name_of,
    near_the_cache,
    node,
    preempt,
    running,
    waiting,
    web_shop,
)

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

NODES = 300
PAGES = {
    "overview": "#/overview",
    "pods": "#/pods",
    "pods-waiting": "#/pods?state=unschedulable",
    "decisions": "#/decisions",
    "queue": "#/queue",
    "preemptions": "#/preemptions",
    "nodes": "#/nodes",
    "nodes-gpu": "#/nodes?resource=nvidia.com%2Fgpu",
    "node": f"#/node/{name_of(13)}",
    "pod": "#/pod/default/web-0",
    "pod-pending": "#/pod/default/train-0",
    "pod-devices": "#/pod/ml/pretrain-0",
    "pod-gang": "#/pod/ml/allreduce-0",
    "pod-preempting": "#/pod/default/vip-0",
    "pod-victim": "#/pod/default/batch-0",
    "pod-elsewhere": "#/pod/default/legacy-0",
    "pod-gated": "#/pod/default/deploy-0",
    "pod-held": "#/pod/batch/solver-manual-0",
    "pod-refused-later": "#/pod/batch/solver-none-0",
    "pod-failed-later": "#/pod/batch/solver-broken-0",
    "node-devices": f"#/node/{name_of(0)}",
    "nodes-memory": "#/nodes?resource=memory",
    "plugins": "#/plugins",
    "config": "#/config",
}


def page_of(address: str) -> str:
    """Selects the page of an address once it is shown."""
    name = address.removeprefix("#/").partition("?")[0].partition("/")[0]
    return f'main[data-page="{name}"][aria-busy="false"]'


async def fill(stage: Stage) -> None:
    """Everything that the pages show, over some seconds, so that charts have lines."""
    await stage.create(near_the_cache("web-0"), *waiting(), *claiming(), *gang(), *licensed())
    await preempt(stage, 3)
    shop = web_shop()
    for batch in range(10):
        await stage.create(*shop[batch * 30 : batch * 30 + 30 - batch % 3 * 9])
        await stage.create(*(pod(f"report-{batch}{i:02}", namespace="batch") for i in range(4 + batch * 5 % 7)))
        await asyncio.sleep(1.0)
    await stage.create(*(one for batch in range(10) for one in shop[batch * 30 + 30 - batch % 3 * 9 : batch * 30 + 30]))


def showing(pods: int) -> AbstractAsyncContextManager[Stage]:
    """A cluster of the scene with so many pods on its nodes already."""
    objects = [*definitions(), *running(NODES, pods)]
    nodes = [node(n) for n in range(NODES)]
    return staged(nodes, objects=objects, config=CONFIG, devices=DEVICES, plugins=[str(LICENCES)])


async def open_in(page: Page, url: str, address: str) -> None:
    await page.keyboard.press("Escape")
    await page.goto(f"{url}/dashboard/{address}")
    await page.wait_for_selector(page_of(address))
    await asyncio.sleep(0.6)


async def search(page: Page, url: str) -> None:
    await open_in(page, url, "#/overview")
    await page.keyboard.press("/")
    await page.keyboard.type("web")
    await page.wait_for_selector("#found li[role=option]")


async def keys(page: Page, url: str) -> None:
    await open_in(page, url, "#/pods")
    await page.click("#help")


async def unfolded(page: Page, url: str) -> None:
    await open_in(page, url, "#/decisions?outcome=unschedulable")
    await page.locator("button.link").first.click()
    await page.wait_for_selector("tr.inside")
    await asyncio.sleep(2.0)


async def advised(page: Page, url: str) -> None:
    await open_in(page, url, "#/queue")
    await page.locator("details.cause summary").first.click()
    await page.click("text=Find the change that frees the most")
    await page.wait_for_selector("[role=status] strong", timeout=60_000)


async def pointed(page: Page, url: str) -> None:
    await open_in(page, url, "#/nodes")
    box = await page.locator("canvas").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] // 28 * 28 - 10, box["y"] + 30)
    await page.wait_for_selector(".tip:not([hidden])")


async def tried(page: Page, url: str) -> None:
    await open_in(page, url, "#/pod/default/web-0")
    await page.fill("#wi-drain", name_of(13))
    await page.click("text=What if?")
    await page.wait_for_selector("section[aria-label='What if'] [role=status] p:nth-child(2)", timeout=60_000)


async def unknown(page: Page, url: str) -> None:
    await open_in(page, url, "#/pod/default/nobody")


STATES = {
    "search": search,
    "keys": keys,
    "decisions-unfolded": unfolded,
    "queue-advised": advised,
    "nodes-pointed": pointed,
    "pod-tried": tried,
    "pod-unknown": unknown,
}
LOOKS = ("1440-light", "1440-dark", "390-light", "390-dark")
EMPTY = ("overview", "pods", "decisions", "queue", "preemptions", "nodes")


@asynccontextmanager
async def viewed(browser: Browser, looks: Collection[str]) -> AsyncIterator[list[tuple[Page, str]]]:
    """A page for each of the looks, with its name."""
    pages: list[tuple[Page, str]] = []
    for look in looks:
        width, _, scheme = look.partition("-")
        context = await browser.new_context(
            viewport={"width": int(width), "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
        )
        page = await context.new_page()
        page.on("console", lambda message: message.type == "error" and print(message.text))
        page.on("pageerror", lambda error: print(error))
        pages.append((page, look))
    yield pages
    for page, _ in pages:
        await page.context.close()


async def main(folder: Path, wanted: Collection[str]) -> None:
    from playwright.async_api import async_playwright

    looks = [look for look in LOOKS if look in wanted] or LOOKS
    wanted = set(wanted).difference(LOOKS)

    async def picture(page: Page, name: str) -> None:
        await page.screenshot(path=folder / f"{name}.png", full_page=True)

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        async with showing(900) as stage, viewed(browser, looks) as pages:
            await fill(stage)
            for page, look in pages:
                for name, address in PAGES.items():
                    if not wanted or name in wanted:
                        await open_in(page, stage.url, address)
                        await picture(page, f"{name}-{look}")
                for name, reach in STATES.items():
                    if not wanted or name in wanted:
                        await reach(page, stage.url)
                        await picture(page, f"{name}-{look}")
        if not wanted or "empty" in wanted:
            async with viewed(browser, looks) as pages:
                async with staged([]) as stage:
                    for page, look in pages:
                        for name in EMPTY:
                            await open_in(page, stage.url, PAGES[name])
                            await picture(page, f"empty-{name}-{look}")
                for page, look in pages:
                    await page.wait_for_selector("#link[data-state=lost]")
                    await page.click("nav >> text=Pods")
                    await page.wait_for_selector("[role=alert]")
                    await picture(page, f"lost-{look}")
        await browser.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(target, sys.argv[2:]))
