"""Reports as tables."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from bayplan.explain.report import Context, PodReport, report_of
from bayplan.explain.table import draw_report, draw_summary, plain


def report(result: dict[str, Any], **context: Any) -> PodReport:
    settings = {"pod": "default/web", "node_count": 9, "weights": {"Fit": 1, "Taints": 3, "Idle": 1}, **context}
    return report_of({"nodes": {}, "scores": {}, "best": []} | result, Context(**settings))


def drawn(report: PodReport, *, top: int = 5, width: int = 120) -> list[str]:
    console = Console(file=StringIO(), width=width, highlight=False, markup=False)
    for piece in draw_report(report, top=top, width=width):
        console.print(piece)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def many(count: int, *, prefix: str = "node-") -> dict[str, Any]:
    return {f"{prefix}{n:02}": {"Fit": 90 - n, "Taints": 300, "total": 390 - n} for n in range(count)}


def test_scores_are_a_row_a_plugin_and_a_column_a_node() -> None:
    lines = drawn(report({"scores": many(2), "best": ["node-00"]}, chosen="node-00"))

    assert ["score", "by", "plugin", "weight", "node-00", "node-01"] in [line.split() for line in lines]
    assert ["Fit", "×1", "90", "89"] in [line.split() for line in lines]
    assert ["Taints", "×3", "300", "300"] in [line.split() for line in lines]
    assert ["total", "390", "389"] in [line.split() for line in lines]


def test_plugins_that_gave_nothing_are_left_out() -> None:
    assert not any("Idle" in line for line in drawn(report({"scores": many(2), "best": ["node-00"]}, chosen="node-00")))


def test_nodes_that_are_not_shown_are_counted() -> None:
    lines = drawn(report({"scores": many(9), "best": ["node-00"]}, chosen="node-00"), top=3)

    assert any("and 6 more nodes that fit" in line for line in lines)


def test_a_narrow_terminal_gets_fewer_columns_but_two() -> None:
    scores = many(9, prefix="a-rather-long-name-for-a-node-in-a-cluster-")
    first = min(scores)
    lines = drawn(report({"scores": scores, "best": [first]}, chosen=first), width=80)

    assert max(map(len, lines)) <= 80
    assert any("and 7 more nodes that fit" in line for line in lines)


def test_the_chosen_node_leads_though_others_have_more_points() -> None:
    lines = drawn(report({"scores": many(3), "best": ["node-02"]}, chosen="node-02", nominated="node-02"), top=2)

    assert any(line.split()[-2:] == ["node-02", "node-00"] for line in lines)


def test_the_funnel_is_one_line() -> None:
    nodes = {"n1": {"code": "Unschedulable", "plugin": "Fit", "reasons": ["full"]}}

    assert "9 nodes → 8 after Fit" in [line.strip() for line in drawn(report({"nodes": nodes}, filters=("Fit",)))]


def test_ties_are_listed() -> None:
    scores = {"a": {"total": 1}, "b": {"total": 1}}

    assert any(
        line.strip() == "tie set: a, b" for line in drawn(report({"scores": scores, "best": ["a", "b"]}, chosen="a"))
    )


def test_many_reasons_are_cut_with_a_count() -> None:
    nodes = {f"n{n:02}": {"code": "Unschedulable", "plugin": "Fit", "reasons": [f"reason {n}"]} for n in range(20)}

    assert any("for 8 other reasons" in line for line in drawn(report({"nodes": nodes})))


def test_many_candidates_are_cut_with_a_count() -> None:
    victims = {f"n{n}": ["default/a"] for n in range(7)}
    shown = drawn(report({"preemption": {"victims": victims, "pdbViolations": {}, "nominatedNodes": ["n3"]}}))

    assert any(line.split()[:1] == ["n3"] for line in shown)
    assert any("and 2 more" in line for line in shown)


def test_the_summary_has_a_line_for_each_pod() -> None:
    console = Console(file=StringIO(), width=100)
    console.print(
        draw_summary([report({"scores": many(1), "best": ["node-00"]}, chosen="node-00"), report({"message": "full"})])
    )
    text: str = console.file.getvalue()  # type: ignore[attr-defined]

    assert [line.split() for line in text.splitlines()[2:]] == [
        ["default/web", "node-00", "390", "1/9"],
        ["default/web", "pending", "0/9", "full"],
    ]


def test_control_characters_are_written_out() -> None:
    assert plain("a\x1b]0;x\x07b") == "a\\x1b]0;x\\x07b"
    assert plain("ok → ü") == "ok → ü"
