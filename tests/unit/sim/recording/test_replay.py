"""Replays of what a scheduler recorded: every decision as it was, or the first one that is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from tests.unit.sim.recording.recorded import ROOM, record_busy_cluster, recording_cluster, settings_with, write_lines
from tests.waiting import until

from bayplan.api.pod import Pod
from bayplan.app.settings import load_settings
from bayplan.client.errors import Conflict
from bayplan.framework import CycleState, NodeInfo, Plugin, PodInfo, Status, Wait
from bayplan.sim.recording.entries import AttemptEnded, NewConfiguration, ObjectChanged, PodDecided
from bayplan.sim.recording.file import RecordingError, read_recording
from bayplan.sim.recording.replay import ReplayOutcome, replay_recording
from bayplan.testing import node, pod


async def replayed(path: Path, **options: object) -> ReplayOutcome:
    """The replay has an event loop of its own, hence the thread."""
    return await asyncio.to_thread(replay_recording, path, **options)  # type: ignore[arg-type]


async def test_every_decision_of_a_busy_cluster_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "r"
    places = await record_busy_cluster(path)
    outcome = await replayed(path)
    recorded = [placed.entry for placed in read_recording(path) if isinstance(placed.entry, PodDecided)]

    assert outcome.difference is None
    assert outcome.notes == []
    assert outcome.decisions == len(recorded) > 120
    assert any(entry.victims for entry in recorded)
    last = {line.pod: line.node for line in outcome.lines if line.node}
    assert {key: last.get(key, "") for key in places} == places, "pods may wait still"


async def test_the_first_decision_that_differs_is_named_with_both_explanations(tmp_path: Path) -> None:
    path = tmp_path / "r"
    async with recording_cluster(path, nodes=[node("small", cpu=2), node("large", cpu=64)]) as local:
        await local.create(pod("first", cpu="500m"))
        assert await local.node_of("first") == "large"
    outcome = await replayed(path, settings=settings_with(PrefersSmall))
    difference = outcome.difference

    assert difference is not None
    assert difference.number == 0
    then, now = difference.choices
    assert (then.variant, then.line.node, then.feasible) == ("then", "large", 2)
    assert (now.variant, now.line.node) == ("now", "small")
    assert [name for name, _, _ in then.nodes] == ["large", "small"]
    assert all(total == sum(points.values()) > 0 for _, total, points in then.nodes)
    assert then.nodes[0][2]["NodeResourcesFit"] > then.nodes[1][2]["NodeResourcesFit"]
    assert {name: points.get("PrefersSmall") for name, _, points in now.nodes} == {"small": 100, "large": 0}


class PrefersSmall(Plugin):
    name = "PrefersSmall"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.name == "small" else 0


class Gang(Plugin):
    """Holds pods at Permit until the third one comes; the bindings of some fail once."""

    name = "Gang"
    failed: ClassVar[set[str]] = set()

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        others = [held for held in self.handle.waiting_pods if held.info.name[0] == pod.name[0]]
        if len(others) < 2:
            return Wait(timeout_seconds=0.05 if pod.name[0] == "x" else 60.0)
        for held in others:
            held.allow(self.name)
        return None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if pod.name.endswith("1") and pod.name not in self.failed:
            self.failed.add(pod.name)
            raise Conflict("something else was quicker", code=409)
        return None


async def test_waits_at_permit_and_bindings_that_fail_end_where_they_ended(tmp_path: Path) -> None:
    path = tmp_path / "r"
    Gang.failed.clear()
    nodes = [node(f"n{number}", cpu=3) for number in range(3)]
    async with recording_cluster(path, nodes=nodes, settings=settings_with(Gang)) as local:
        names = [f"{letter}{number}" for letter in "abc" for number in range(3)]
        await local.create(pod("x0", cpu="1"), *(pod(name, cpu="900m") for name in names))
        live = local.scheduler

        def lines() -> list[Pod]:
            return [each for each in live.watching.pods() if each.spec.node_name]

        await until(lambda: len(lines()) >= 6, what="gangs with nodes")
        await local.delete(pod("x0"))
    recorded = [placed.entry for placed in read_recording(path)]
    outcome = await replayed(path, settings=settings_with(Gang))

    assert any(isinstance(entry, AttemptEnded) and "quicker" in entry.error for entry in recorded)
    assert outcome.difference is None
    assert outcome.decisions == sum(isinstance(entry, PodDecided) for entry in recorded)


async def test_a_file_with_two_sessions_is_replayed_as_two(tmp_path: Path) -> None:
    path = tmp_path / "r"
    for seed in (1, 2):
        async with recording_cluster(path, nodes=[node(f"n{number}") for number in range(5)], seed=seed) as local:
            for number in range(5):
                await local.create(pod(f"p{number}"))
                await local.node_of(f"p{number}")
    outcome = await replayed(path)

    assert outcome.difference is None
    assert outcome.decisions == 10


async def test_a_configuration_that_is_reloaded_counts_from_then_on(tmp_path: Path) -> None:
    path, config = tmp_path / "r", tmp_path / "packed.yaml"
    config.write_text(PACKED)
    async with recording_cluster(path, nodes=[node("small", cpu=2), node("large", cpu=64)]) as local:
        await local.create(pod("before", cpu="100m"))
        assert await local.node_of("before") == "large"
        local.local.reload(load_settings(config, ()))
        await local.create(pod("after", cpu="100m"))
        assert await local.node_of("after") == "small"
    outcome = await replayed(path)

    assert any(isinstance(placed.entry, NewConfiguration) for placed in read_recording(path))
    assert outcome.difference is None
    assert outcome.decisions == 2


PACKED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


async def test_no_secret_and_no_environment_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "r"
    async with recording_cluster(path, nodes=[node("n1")]) as local:
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "env": [{"name": "PASSWORD", "value": "hunter2"}],
                        "args": ["--token=hunter2"],
                    }
                ]
            },
        }
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hunter2"}}
        await local.request("POST", "/api/v1/namespaces/default/secrets", secret)
        await local.create(document)
        await local.node_of("web")
    text = b"".join(bytes(e.object) for _, e in read_recording(path) if isinstance(e, ObjectChanged))

    assert b'"web"' in text
    assert b"hunter2" not in text


async def test_a_pod_that_the_replay_does_not_have_is_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "r"
    header = b'{"format":"bayplan-recording","version":1,"by":"scheduler","time":5.0,"config":%s}'
    config = msgspec.json.encode({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"})
    write_lines(path, header % config, b'["d",6.0,"default/web","u",1,"n1"]')
    outcome = await replayed(path)

    assert outcome.difference is not None
    assert outcome.difference.choices[1].line.message == "not tried: it does not wait"


@pytest.mark.parametrize("metadata", [b"7", b'{"namespace":"defa\x90ult"}'], ids=["wrong type", "not UTF-8"])
async def test_objects_that_make_no_sense_are_an_error_with_the_place(tmp_path: Path, metadata: bytes) -> None:
    path = tmp_path / "r"
    header = b'{"format":"bayplan-recording","version":1,"by":"scheduler","config":%s}'
    config = msgspec.json.encode({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"})
    write_lines(path, header % config, b'["+",6.0,"Pod",{"metadata":%s}]' % metadata)

    with pytest.raises(RecordingError, match="block 1, line 2: cannot be replayed: "):
        await replayed(path)


async def test_an_amount_that_is_none_is_an_error_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "r"
    header = b'{"format":"bayplan-recording","version":1,"by":"scheduler","config":%s}'
    config = msgspec.json.encode({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"})
    spec = b'{"containers":[{"name":"c","resources":{"requests":{"cpu":"much"}}}]}'
    arrived = b'["+",6.0,"Pod",{"metadata":{"name":"a","namespace":"b","uid":"u"},"spec":%s}]' % spec
    write_lines(path, header % config, arrived, b'["d",7.0,"b/a","u",1,""]')

    with pytest.raises(RecordingError, match="block 1, line 3: cannot be replayed: `much` is not a quantity"):
        await replayed(path)


async def test_scheduling_goes_on_after_the_recording_reached_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "r"
    async with recording_cluster(path, nodes=[node("n1")], limit=3_000) as local:
        for number in range(40):
            await local.create(pod(f"p{number}"))
            await local.node_of(f"p{number}")

    assert path.stat().st_size <= 3_000 < ROOM
