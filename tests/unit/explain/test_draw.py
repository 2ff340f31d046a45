"""Explanations on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.changes import Changes, Suggestion, Without
from bayplan.explain.draw import draw_changes, draw_explanation, draw_node, draw_pending, draw_whatif
from bayplan.explain.explanation import Explanation, Step
from bayplan.explain.moves import Move, Moves
from bayplan.explain.nearest import Miss
from bayplan.explain.whatif import Scenario


def text_of(pieces: Iterable[RenderableType]) -> str:
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - closed with the console
    for piece in pieces:
        console.print(piece)
    console.file.close()
    return console.export_text()


async def test_everything_about_a_running_cluster_can_be_drawn() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"), raw_pod("big", cpu="900"))
        await stage.settled(bound=1, failed=1)
        service = stage.explaining.service
        placed, pending = service.explain_pod("default/web"), service.explain_pod("default/big")
        node = service.explain_node(placed.node)
        board = await service.pending(with_change=True)
        played = await service.whatif(Scenario(drain=[placed.node]))

    assert "default/web runs on" in text_of(draw_explanation(placed))
    assert "NodeResourcesBalancedAllocation" in text_of(draw_explanation(placed))
    assert "→ 0 after NodeResourcesFit" in text_of(draw_explanation(pending))
    assert "refused by NodeResourcesFit" in text_of(draw_node(node))
    assert "would be freed by one change" in text_of(draw_pending(board))
    assert "would stay pending" in text_of(draw_whatif(played))


def test_a_funnel_reads_from_many_to_one() -> None:
    steps = [Step(plugin="TaintToleration", rejected=790, left=4210), Step(plugin="Fit", rejected=4173, left=37)]
    explanation = Explanation(
        pod="a/b", state="placed", verdict="v", node="n", node_count=5000, feasible=37, funnel=steps
    )

    assert "5,000 nodes → 4,210 after TaintToleration → 37 after Fit → 1 chosen" in text_of(
        draw_explanation(explanation)
    )


def test_changes_and_moves_are_lists() -> None:
    changes = Changes(
        pod="a/b",
        suggestions=[Suggestion(sentence="It would fit if so.", edits=[], node="n")],
        nearest=[Miss(node="n17", lacks={"cpu": "500m"}, also=["TaintToleration"])],
        without=[Without(plugin="NodeAffinity", nodes=3)],
    )
    text = text_of(draw_changes(changes))

    assert "It would fit if so." in text
    assert "n17 lacks 500m cpu (and TaintToleration object)" in text
    assert "without NodeAffinity: 3 nodes" in text
    assert "elsewhere" in text_of(draw_changes(Moves(pod="a/b", moves=[Move(sentence="elsewhere", node="n")])))


def test_hostile_names_cannot_steer_the_terminal() -> None:
    explanation = Explanation(pod="a/\x1b[2J", state="pending", verdict="a/\x1b[2J [bold]x[/bold]")

    assert "\x1b[2J" not in text_of(draw_explanation(explanation))
    assert "[bold]x[/bold]" in text_of(draw_explanation(explanation))
