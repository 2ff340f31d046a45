"""axe-core, the accessibility checker, from npm: installed once into the user's cache, run in a page."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Page

__all__ = ["violations"]

VERSION = "4.10.3"


@cache
def _source() -> str:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayplan" / f"axe-{VERSION}"
    script = home / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        home.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(home)]
        subprocess.run([*command, f"axe-core@{VERSION}"], check=True, timeout=120)
    return script.read_text(encoding="utf-8")


async def violations(page: Page) -> list[str]:
    """Each broken rule with the elements that break it; empty for a page without fault."""
    await page.evaluate(_source())
    found: list[dict[str, Any]] = await page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{rule['id']}: {node['html'][:120]} ({node.get('failureSummary', '').splitlines()[-1]})"
        for rule in found
        for node in rule["nodes"]
    ]
