"""Recordings of a follower: the state that it saw before each binding, and where that is not certain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from tests.unit.sim.recording.recorded import ROOM, settings_with
from tests.waiting import until

from bayplan.app.watching import served_kinds
from bayplan.framework import CycleState, NodeInfo, Plugin, PodInfo
from bayplan.observe.clock import SystemClock
from bayplan.sim.recording.bindings import OTHER, SAME, TIE, BindingReport, judge_bindings
from bayplan.sim.recording.file import RecordingFile
from bayplan.sim.recording.follower import Follower
from bayplan.sim.recording.writing import RecordingWriter
from bayplan.testing import cluster, node, pod


async def follow(path: Path, *, is_sequential: bool) -> None:
    """Record twelve pods from outside, one after the other or all at once."""
    file = RecordingFile(path, limit_bytes=ROOM)
    async with cluster(nodes=[node(f"n{number}", cpu=4 + number) for number in range(4)]) as local:
        transport, clock = local.local.transport(), SystemClock()
        kinds = await served_kinds(transport)
        writer = RecordingWriter(file, clock)
        follower = Follower(transport, settings_with(), kinds, writer, clock=clock, draw=Random(1).random)
        task = asyncio.create_task(follower.run())
        await follower.is_ready.wait()
        seen = follower._watching
        for number in range(12):
            await local.create(pod(f"p{number}", cpu="700m"))
            if is_sequential:
                await local.node_of(f"p{number}")
                await until(lambda: all(each.spec.node_name and each.status.phase == "Running" for each in seen.pods()))
        await until(lambda: sum(bool(each.spec.node_name) for each in seen.pods()) == 12, what="all bindings seen")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    file.close()


async def judged(path: Path, *plugins: type[Plugin]) -> BindingReport:
    return await asyncio.to_thread(judge_bindings, path, settings=settings_with(*plugins))


async def test_bindings_of_the_same_policy_go_to_nodes_that_are_as_good(tmp_path: Path) -> None:
    path = tmp_path / "r"
    await follow(path, is_sequential=True)
    report = await judged(path)

    assert len(report.bindings) == 12
    certain = [each for each in report.bindings if each.is_certain]
    assert certain
    assert {each.verdict for each in certain} <= {SAME, TIE}
    assert report.first_difference is None


async def test_another_policy_differs_and_its_points_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "r"
    await follow(path, is_sequential=True)
    report = await judged(path, AlwaysFirst)

    assert report.count(OTHER) > 0
    assert report.first_difference is not None
    assert report.first_difference.line.node == "n0"
    assert report.first_difference.nodes[0][2]["AlwaysFirst"] > 0


async def test_where_pods_came_together_the_state_is_not_certain(tmp_path: Path) -> None:
    path = tmp_path / "r"
    await follow(path, is_sequential=False)
    report = await judged(path)

    assert len(report.bindings) == 12
    assert any(each.changes_between for each in report.bindings)


class AlwaysFirst(Plugin):
    name = "AlwaysFirst"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.name == "n0" else 0
