"""Pictures of every page at two widths, dark and light, for people to look at.

python -m tests.browser.looks FOLDER [PAGE ...]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.browser.conftest import CHROMIUM, FLAGS, Stage, pod, staged
from tests.browser.scene import (
    CONFIG,
    DEVICES,
    claiming,
    definitions,
    gang,
    name_of,
    near_the_cache,
    node,
    preempt,
    running,
    waiting,
    web_shop,
)

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
    "plugins": "#/plugins",
    "config": "#/config",
}


def page_of(address: str) -> str:
    """Selects the page of an address once it is shown."""
    name = address.removeprefix("#/").partition("?")[0].partition("/")[0]
    return f'main[data-page="{name}"][aria-busy="false"]'


async def fill(stage: Stage) -> None:
    """Everything that the pages show, over some seconds, so that charts have lines."""
    await stage.create(near_the_cache("web-0"), *waiting(), *claiming(), *gang())
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
    return staged([node(n) for n in range(NODES)], objects=objects, config=CONFIG, devices=DEVICES)


async def main(folder: Path, wanted: Collection[str]) -> None:
    from playwright.async_api import async_playwright

    async with showing(900) as stage:
        await fill(stage)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            for width in (1440, 390):
                for scheme in ("light", "dark"):
                    context = await browser.new_context(
                        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
                    )
                    page = await context.new_page()
                    page.on("console", lambda message: message.type == "error" and print(message.text))
                    page.on("pageerror", lambda error: print(error))
                    for name, address in PAGES.items():
                        if wanted and name not in wanted:
                            continue
                        await page.goto(f"{stage.url}/dashboard/{address}")
                        await page.wait_for_selector(page_of(address))
                        await asyncio.sleep(0.6)
                        await page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
                    await context.close()
            await browser.close()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(target, sys.argv[2:]))
