"""Reload on save: which files are watched, and what happens when they change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bayplan.app.settings import Settings
from bayplan.observe.clock import VirtualClock
from bayplan.sim.reloading import Reloader

PLUGIN = "from bayplan.framework import Plugin\nfrom .points import POINTS\n\n\nclass ByPoints(Plugin):\n"
SCORE = "    def score(self, state, pod, node):\n        return POINTS\n"


async def test_every_module_of_a_package_is_watched_and_new_ones_too(tmp_path: Path) -> None:
    package = tmp_path / "by_points_on_save"
    package.mkdir()
    (package / "__init__.py").write_text(PLUGIN + SCORE)
    (package / "points.py").write_text("POINTS = 1\n")
    loaded: list[Settings] = []
    reports: list[tuple[str, Any]] = []
    clock = VirtualClock()
    reloader = Reloader(
        None,
        [str(package)],
        put_to_work=loaded.append,
        report=lambda what, problems: reports.append((what, problems)),
        clock=clock,
    )

    polling = asyncio.create_task(reloader.run())
    for name, text in (("points.py", "POINTS = 22\n"), ("more.py", ""), ("points.py", "POINTS = \n")):
        (package / name).write_text(text)
        await clock.run_for(1)
    polling.cancel()

    assert [plugin.registry.get("ByPoints")().score(None, None, None) for plugin in loaded] == [22, 22]  # type: ignore[arg-type]
    assert [what for what, _ in reports] == [
        "reloaded by_points_on_save",
        "reloaded by_points_on_save",
        "by_points_on_save did not load; the last good version stays in use",
    ]
