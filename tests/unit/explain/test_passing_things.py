"""Pods and nodes that are about to be gone, or have just gone: nothing is said as if they were there to stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.explain.stage import JsonObject, Stage, raw_pod, staged

from bayplan.explain.claims.pods import NothingHelps
from bayplan.explain.whatif.scenario import Scenario

PODS = "/api/v1/namespaces/default/pods"
HOLDING = """
from bayplan.framework import Plugin, Wait


class Hold(Plugin):
    def permit(self, state, pod, node_name):
        return Wait(600)
"""


def kept(name: str, **spec: Any) -> JsonObject:
    """A pod that ends only when its finalizer is taken away."""
    made = raw_pod(name, **spec)
    made["metadata"]["finalizers"] = ["example.com/hold"]
    return made


async def delete(stage: Stage, path: str) -> None:
    response = await stage.local.transport().request("DELETE", path)
    assert response.status < 300, response.body


def is_ending(stage: Stage, name: str) -> bool:
    found = stage.local.live.watching.pod("default", name)
    return found is not None and found.is_terminating


async def test_a_pending_pod_that_is_being_deleted_is_not_said_to_be_tried_or_helped() -> None:
    async with staged(1) as stage:
        await stage.create(kept("web", cpu="99"), raw_pod("other", cpu="99"))
        await stage.settled(failed=2)
        await delete(stage, f"{PODS}/web")
        await stage.until(lambda: is_ending(stage, "web"))
        service = stage.explaining.service
        explained, changes = service.explain_pod("default/web"), await service.changes("default/web")
        board, node = await service.pending(with_change=True), service.explain_node("node-1")
        played = await service.whatif(Scenario())

    assert explained.verdict == "default/web is pending: it is being deleted, and not tried any more."
    assert explained.now is None
    assert isinstance(changes.suggestions[0].claim, NothingHelps) and "being deleted" in changes.suggestions[0].sentence
    assert {cause.title: cause.count for cause in board.causes} == {
        "NodeResourcesFit: Insufficient cpu": 1,
        "nothing: being deleted, and not tried any more": 1,
    }
    assert board.change is not None and "default/web" not in board.change.sentence and board.frees == 1
    assert [here.pod for here in node.pending] == ["default/other"]
    assert [each.pod for each in played.pending] == ["default/other"]


async def test_a_pod_that_is_ending_is_not_said_to_go_elsewhere() -> None:
    async with staged(2) as stage:
        await stage.create(kept("web"))
        await stage.settled(bound=1)
        home = stage.explaining.service.explain_pod("default/web").node
        await delete(stage, f"{PODS}/web")
        await stage.until(lambda: is_ending(stage, "web"))
        service = stage.explaining.service
        changes, drained = await service.changes("default/web"), await service.whatif(Scenario(drain=[home]))

    assert (changes.suggestions, changes.note) == ([], "It is being deleted.")
    assert drained.placed == [] and drained.pending == []


async def test_a_pod_that_is_held_at_permit_is_said_to_be_held_and_not_to_be_on_its_node(tmp_path: Path) -> None:
    (tmp_path / "hold.py").write_text(HOLDING)
    async with staged(1, plugins=[str(tmp_path / "hold.py")]) as stage:
        await stage.create(raw_pod("web"))
        await stage.until(lambda: len(list(stage.local.live.held_pods)) == 1)
        changes = await stage.explaining.service.changes("default/web")

    said = "Nothing that was tried would let it run: it has node-1, and is held at Permit."
    assert [each.sentence for each in changes.suggestions] == [said]


async def test_a_node_that_is_gone_is_said_to_be_and_nothing_is_suggested_with_it() -> None:
    async with staged(2) as stage:
        await stage.create(kept("low", cpu="6", nodeSelector={"kubernetes.io/hostname": "node-2"}))
        await stage.create(raw_pod("large", cpu="99"))
        await stage.settled(bound=1, failed=1)
        service = stage.explaining.service
        before = json.dumps([each.sentence for each in (await service.changes("default/large")).suggestions])
        await delete(stage, "/api/v1/nodes/node-1")
        await stage.until(lambda: stage.local.live.cache.cluster.node("node-1") is None)
        after = json.dumps([each.sentence for each in (await service.changes("default/large")).suggestions])
        await delete(stage, "/api/v1/nodes/node-2")
        await stage.until(lambda: stage.local.live.cache.cluster.node("node-2") is None)
        explained, moves = service.explain_pod("default/low"), await service.changes("default/low")

    assert "node-1" in before and "node-1" not in after and "node-2" in after
    assert explained.note == "There is no node node-2 any more."
    assert [each.sentence for each in moves.suggestions] == []
