"""Every page at the width of a telephone and of a desk: nothing is cut off, and no name breaks into slivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import visiting
from tests.browser.looks import PAGES, fill, page_of, showing

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
CUT = """() => [...document.querySelectorAll("main .scroll")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1 && !box.querySelector("#matrix"))
    .map((box) => `${box.getAttribute("aria-label")}: ${box.scrollWidth} in ${box.clientWidth}`)"""
"""Tables wider than their card; the score matrix scrolls on purpose."""
SLIVERS = """() => [...document.querySelectorAll("main td, main table:not(.stack) th, main a, main h1, main .verdict")]
    .map((item) => {
        const text = document.createRange();
        text.selectNodeContents(item);
        return [item.textContent.trim(), text.getBoundingClientRect()];
    })
    .filter(([text, box]) => box.width > 1 && box.height > 40 + 4 * text.length)
    .map(([text, box]) => `${text}: ${Math.round(box.width)} x ${Math.round(box.height)}`)"""
"""Texts with a line for every five letters or fewer."""


@pytest.mark.parametrize("width", [390, 1440])
async def test_nothing_is_cut_off_and_no_name_breaks_into_slivers(browser: Browser, width: int) -> None:
    found: dict[str, list[str]] = {}
    async with showing(300) as stage, visiting(browser, stage.url) as visit:
        page = visit.page
        await page.set_viewport_size({"width": width, "height": 900})
        await fill(stage)
        for name, address in PAGES.items():
            await page.goto(f"{stage.url}/dashboard/{address}")
            await page.wait_for_selector(page_of(address))
            found[name] = [*await page.evaluate(CUT), *await page.evaluate(SLIVERS)]

    assert {name: faults for name, faults in found.items() if faults} == {}
    assert visit.problems == []
