"""Every page, dark and light, wide and narrow: no rule of axe broken, no scrolling sideways, few elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.axe import violations
from tests.browser.conftest import expect, visiting
from tests.browser.looks import PAGES, fill, page_of, showing

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
MOST_ELEMENTS = 1500
MOST_PIXELS = 8000
"""Of height, on a telephone."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
async def test_no_page_breaks_a_rule_of_accessibility(browser: Browser, width: int, scheme: str) -> None:
    broken: dict[str, list[str]] = {}
    elements: dict[str, int] = {}
    sideways: dict[str, int] = {}
    heights: dict[str, int] = {}
    async with showing(300) as stage:
        await fill(stage)
        async with visiting(browser, stage.url, color_scheme=scheme) as visit:
            await visit.page.set_viewport_size({"width": width, "height": 844})
            for name, address in PAGES.items():
                await visit.page.goto(f"{stage.url}/dashboard/{address}")
                await expect(visit.page.locator(page_of(address))).to_have_count(1)
                broken[name] = await violations(visit.page)
                elements[name] = await visit.page.evaluate("document.querySelectorAll('*').length")
                sideways[name] = await visit.page.evaluate(
                    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
                heights[name] = await visit.page.evaluate("document.documentElement.scrollHeight")
            assert visit.problems == []

    assert {name: found for name, found in broken.items() if found} == {}
    assert {name: pixels for name, pixels in sideways.items() if pixels > 0} == {}
    assert {name: count for name, count in elements.items() if count > MOST_ELEMENTS} == {}
    assert {name: pixels for name, pixels in heights.items() if pixels > MOST_PIXELS} == {}
