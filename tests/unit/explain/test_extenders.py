"""Extenders have their say in explanations as they have it in decisions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.unit.explain.stage import raw_pod, staged
from tests.unit.loop.extender_server import ExtenderServer, serving


def config(server: ExtenderServer, folder: Path) -> Path:
    extender = {"urlPrefix": server.url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 3}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender | {"nodeCacheCapable": True}],
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(document))
    return path


async def test_verdicts_and_points_of_extenders_are_explained(tmp_path: Path) -> None:
    favourite = "node-2"

    def kept(question: Any) -> dict[str, object]:
        left = [] if question["Pod"]["metadata"]["name"] == "refused" else question["NodeNames"][1:]
        return {"NodeNames": left, "FailedNodes": {n: "no card" for n in question["NodeNames"] if n not in left}}

    server = ExtenderServer(
        filter=kept, prioritize=lambda q: [{"Host": n, "Score": 10 * (n == favourite)} for n in q["NodeNames"]]
    )
    async with serving(server), staged(4, config=config(server, tmp_path)) as stage:
        service = stage.explaining.service
        await stage.create(raw_pod("placed"), raw_pod("refused"))
        await stage.settled(bound=1, failed=1)
        await stage.until(lambda: stage.local.live.queue.get("default/refused") is not None)
        placed = service.explain_pod("default/placed")
        decision = await service.ask_extenders("default/refused")
        refused = service.explain_pod("default/refused", decision=decision)
        # The pod may be on its next attempt at the moment; nothing tells when that is over.
        while not (board := await service.pending()).causes:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        changes = await service.changes("default/refused")

    assert placed.decision is not None and refused.now is not None
    assert (placed.node, placed.decision.points["Extender"].weighted) == (favourite, 300)
    assert [(step.plugin, step.rejected) for step in placed.decision.funnel] == [("Extender", 1)]
    assert not refused.now.node
    groups = [(group.plugin, group.reasons, group.count) for group in refused.now.refused]
    assert groups == [("Extender", ("no card",), 4)]
    assert board.causes[0].plugin == "Extender"
    assert server.url in changes.note
