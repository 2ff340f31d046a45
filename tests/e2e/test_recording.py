"""A scheduler's own recording of a thousand pods on a real API server, replayed: every decision as it was."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bayplan.app.live import LiveOptions
from bayplan.observe.clock import SystemClock
from bayplan.sim.recording.entries import PodDecided
from bayplan.sim.recording.file import RecordingFile, read_recording
from bayplan.sim.recording.replay import replay_recording
from bayplan.sim.recording.writing import RecordingWriter
from tests.e2e.api_session import api_session
from tests.e2e.clusters import Cluster, EmbeddedPlane
from tests.e2e.ledger import keeping_ledger
from tests.e2e.running import RunSettings, all_bound, scheduling
from tests.e2e.volume_controller import binding_volumes
from tests.e2e.workload import base, nodes, pods


async def test_the_recording_of_a_thousand_pods_replays_to_equal_decisions(cluster: Cluster, tmp_path: Path) -> None:
    config, each = cluster.kubeconfig, 20 if isinstance(cluster, EmbeddedPlane) else 100
    node_list = nodes(200)
    file = RecordingFile(tmp_path / "cluster.recording", limit_bytes=2**30)
    options = LiveOptions(recorder=RecordingWriter(file, SystemClock()))
    async with api_session(config) as api, keeping_ledger(config) as ledger:
        await api.create(*node_list, *base([n["metadata"]["name"] for n in node_list], each))
        async with binding_volumes(config), scheduling(config, RunSettings(options=options)) as live:
            await api.create(*pods(each))
            await all_bound(live, ledger, 10 * each)
            places = {pod.key: pod.spec.node_name for pod in live.watching.pods()}
    file.close()
    outcome = await asyncio.to_thread(replay_recording, file.path)
    recorded = sum(isinstance(placed.entry, PodDecided) for placed in read_recording(file.path))

    assert file.ended == ""
    assert outcome.difference is None
    assert outcome.decisions == recorded >= 10 * each
    assert {line.pod: line.node for line in outcome.lines if line.node} == places
