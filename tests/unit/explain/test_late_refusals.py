"""Pods that got a node and were refused or held after it: at Reserve, and at Permit."""

from __future__ import annotations

from pathlib import Path

from tests.unit.explain.stage import JsonObject, raw_pod, staged

PLUGIN = """
from bayplan.framework import Plugin, Unschedulable, Wait


class Seats(Plugin):
    def reserve(self, state, pod, node_name):
        return Unschedulable("no seat left") if pod.labels.get("ends") == "reserve" else None

    def permit(self, state, pod, node_name):
        return Wait(300) if pod.labels.get("ends") == "permit" else None
"""


def labelled(name: str, ends: str) -> JsonObject:
    pod = raw_pod(name)
    pod["metadata"]["labels"] = {"ends": ends}
    return pod


async def test_who_refused_or_holds_a_pod_after_the_choice_is_named(tmp_path: Path) -> None:
    file = tmp_path / "seats.py"
    file.write_text(PLUGIN)
    async with staged(2, plugins=[str(file)]) as stage:
        await stage.create(labelled("refused", "reserve"), labelled("held", "permit"))
        live, recorder = stage.local.live, stage.explaining.recorder
        await stage.until(lambda: recorder.failed_count >= 1 and len(list(live.held_pods)) == 1)
        service = stage.explaining.service
        board = await service.pending()
        refused, held = service.explain_pod("default/refused"), service.explain_pod("default/held")

    assert {cause.title: cause.plugin for cause in board.causes} == {
        "Seats at Reserve: no seat left": "Seats",
        "held at Permit by Seats": "Seats",
    }
    assert "refused at Reserve by Seats: no seat left" in refused.verdict
    assert "held at Permit by Seats, for" in held.verdict and "s at most" in held.verdict


async def test_a_pod_never_goes_to_the_node_that_would_be_cordoned_for_it() -> None:
    async with staged(2) as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(bound=1)
        service = stage.explaining.service
        home = service.explain_pod("default/web").node
        changes = await service.changes("default/web")

    sentences = [each.sentence for each in changes.suggestions]
    assert [text for text in sentences if f"if {home} were cordoned" in text]
    assert [text for text in sentences if f"go to {home}" in text] == []


async def test_a_filter_that_gives_no_reason_is_said_to_give_none(tmp_path: Path) -> None:
    file = tmp_path / "mute.py"
    answer = "    def filter(self, state, pod, node):\n        return Unschedulable()\n"
    file.write_text(f"from bayplan.framework import Plugin, Unschedulable\n\n\nclass Mute(Plugin):\n{answer}")
    async with staged(2, plugins=[str(file)]) as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(failed=1)
        verdict = stage.explaining.service.explain_pod("default/web").verdict
        board = await stage.explaining.service.pending()

    assert verdict == "default/web is pending: Mute refuses 2 of 2 nodes: no reason given."
    assert [cause.title for cause in board.causes] == ["Mute: no reason given"]
