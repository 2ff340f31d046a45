"""Reload on save: which files are watched, and what happens when they change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE_SECONDS

from bayplan.app.settings import Settings, load_settings
from bayplan.observe.clock import VirtualClock
from bayplan.sim.reloading import Reloader
from bayplan.testing import cluster, pod

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


TEAMS = """
import msgspec
from bayplan.framework import CustomResource, Plugin, Unschedulable

class Spec(msgspec.Struct):
    most: int = 1

class Team(CustomResource, group="example.org", version="v1", plural="teams", owned=True):
    spec: Spec

class Teams(Plugin):
    watches = (Team,)

    def filter(self, state, pod, node):
        found = self.handle.resources(Team).get("blue", "default")
        return None if found is None else Unschedulable("{reason}")
"""


async def test_after_a_reload_no_pod_is_decided_on_before_custom_resources_are_read(tmp_path: Path) -> None:
    file = tmp_path / "teams.py"
    file.write_text(TEAMS.replace("{reason}", "full"))
    blue = {
        "apiVersion": "example.org/v1",
        "kind": "Team",
        "metadata": {"name": "blue", "namespace": "default"},
        "spec": {"most": 1},
    }
    async with cluster(nodes=1, plugins=[str(file)], objects=[blue]) as local:
        await local.create(pod("web"))
        assert "full" in await local.pending_message("web", within=PATIENCE_SECONDS)
        file.write_text(TEAMS.replace("{reason}", "still occupied"))
        local.local.reload(load_settings(None, [str(file)], enable=True))
        message = ""
        while "still occupied" not in message:
            web = await local.pod("web")
            assert "nodeName" not in web["spec"]
            message = await local.pending_message("web", within=PATIENCE_SECONDS)


def test_a_folder_that_is_named_by_a_point_is_reported_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "by_points_here"
    package.mkdir()
    (package / "__init__.py").write_text(PLUGIN + SCORE)
    (package / "points.py").write_text("POINTS = 1\n")
    monkeypatch.chdir(package)
    reports: list[str] = []
    reloader = Reloader(
        None,
        ["."],
        put_to_work=lambda settings: None,
        report=lambda what, problems: reports.append(what),
        clock=VirtualClock(),
    )

    assert reloader.reload()
    assert reports == ["reloaded by_points_here"]
