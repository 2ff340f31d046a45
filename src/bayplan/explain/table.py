"""A report as Rich tables: verdict, funnel, scores by plugin, reasons, victims.

Only layout lives here. Every string that comes from a cluster goes through `plain`, which makes control characters
visible, and is handed to Rich as text, never as markup: a node's name cannot colour, move or clear anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.explain.report import Outcome, PodReport, RankedNode
from bayplan.explain.verdict import verdict

__all__ = ["draw_report", "draw_summary", "plain"]

_STYLES = {
    Outcome.SCHEDULED: "bold green",
    Outcome.PREEMPTS: "bold yellow",
    Outcome.GATED: "bold yellow",
    Outcome.PENDING: "bold red",
    Outcome.FAILED: "bold red",
}
_SAMPLE = 3
_MOST_REFUSALS = 12
_MOST_CANDIDATES = 5
_LONGEST_NAME = 28


def plain(text: str) -> str:
    """The text with control characters written out, so that it cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def draw_report(report: PodReport, *, top: int = 5, width: int = 120) -> Iterator[RenderableType]:
    """What to print about one pod, piece by piece."""
    yield Text(plain(verdict(report)), style=_STYLES[report.outcome])
    if report.funnel or report.ranking:
        yield Padding(_funnel(report), (0, 2), expand=False)
    if report.ranking:
        yield _scores(report, top=top, width=width)
    if len(report.ties) > 1:
        yield Padding(_line("tie set", _sample(report.ties, most=12)), (0, 2), expand=False)
    if report.refusals:
        yield _refusals(report)
    if report.candidates:
        yield _candidates(report)


def draw_summary(reports: Sequence[PodReport]) -> Table:
    """One line a pod, in the order in which they were decided."""
    table = _table("pod", "node", "points", "fits on", "why not")
    table.columns[2].justify = table.columns[3].justify = "right"
    for report in reports:
        share = f"{len(report.ranking)}/{report.context.node_count}"
        points = str(report.total) if report.is_scheduled else ""
        node = Text(plain(report.context.chosen) or report.outcome.value, style=_STYLES[report.outcome])
        table.add_row(Text(plain(report.pod)), node, points, share, Text(plain(report.message)))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _indented(table: Table) -> RenderableType:
    return Padding(table, (1, 2, 0, 2), expand=False)


def _line(label: str, text: str) -> Text:
    return Text.assemble((f"{label}: ", "dim"), plain(text))


def _funnel(report: PodReport) -> Text:
    """25 nodes → 21 after NodeUnschedulable → 12 after TaintToleration."""
    count = report.context.node_count
    text = Text(f"{count} node{'' if count == 1 else 's'}")
    for step in report.funnel:
        text.append(" → ", style="dim")
        text.append(str(step.left), style="bold")
        text.append(f" after {plain(step.plugin)}", style="dim")
    if not report.funnel:
        text.append(", all of which fit" if count > 1 else ", which fits", style="dim")
    return text


def _scores(report: PodReport, *, top: int, width: int) -> RenderableType:
    """A row for each plugin, a column for each of the best nodes."""
    shown = _best(report, top=top, width=width)
    plugins = [name for name in report.context.weights if any(entry.shares.get(name) for entry in shown)]
    more = len(report.ranking) - len(shown)
    table = _table("score by plugin", "weight")
    table.columns[1].justify = "right"
    for entry in shown:
        style = "bold green" if entry.node == report.context.chosen else ""
        table.add_column(Text(_shortened(plain(entry.node)), style=style), justify="right", overflow="fold")
    for name in plugins:
        points = [str(entry.shares.get(name, 0)) for entry in shown]
        table.add_row(plain(name), f"×{report.context.weights[name]}", *points)
    table.add_section()
    totals = [Text(str(entry.total), style=_total_style(report, entry)) for entry in shown]
    table.add_row(Text("total", style="bold"), "", *totals)
    if more > 0:
        table.caption = f"and {more} more node{'s' if more > 1 else ''} that fit{'' if more > 1 else 's'}"
        table.caption_justify = "left"
    return _indented(table)


def _best(report: PodReport, *, top: int, width: int) -> list[RankedNode]:
    """As many of the best as the width holds, two at least; the chosen node is always the first."""
    first = [entry for entry in report.ranking if entry.node == report.context.chosen]
    ordered = first + [entry for entry in report.ranking if entry.node != report.context.chosen]
    room = width - 46
    shown: list[RankedNode] = []
    for entry in ordered[: max(top, 1)]:
        room -= min(len(entry.node), _LONGEST_NAME) + 2
        if room < 0 and len(shown) >= 2:
            break
        shown.append(entry)
    return shown


def _shortened(name: str) -> str:
    """A long name without its middle; what tells nodes apart is usually at one of the ends."""
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _total_style(report: PodReport, entry: RankedNode) -> str:
    return "bold green" if entry.node in report.ties else "bold"


def _refusals(report: PodReport) -> RenderableType:
    table = _table("nodes", "refused by", "because", "such as")
    table.columns[0].justify = "right"
    for refusal in report.refusals[:_MOST_REFUSALS]:
        count = len(refusal.nodes) or report.context.node_count
        reasons = Text(plain("; ".join(refusal.reasons)))
        table.add_row(str(count), plain(refusal.plugin), reasons, Text(plain(_sample(refusal.nodes))))
    hidden = report.refusals[_MOST_REFUSALS:]
    if hidden:
        table.add_row(str(sum(len(refusal.nodes) for refusal in hidden)), "", f"for {len(hidden)} other reasons", "")
    return _indented(table)


def _sample(names: Sequence[str], *, most: int = _SAMPLE) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _candidates(report: PodReport) -> RenderableType:
    table = _table("preempting on", "victims", "budgets broken")
    table.columns[2].justify = "right"
    for candidate in report.candidates[:_MOST_CANDIDATES]:
        mark = "bold yellow" if candidate.is_chosen else ""
        victims = Text(plain(_sample(candidate.victims, most=6)))
        table.add_row(Text(plain(candidate.node), style=mark), victims, str(candidate.budget_violations))
    hidden = len(report.candidates) - _MOST_CANDIDATES
    if hidden > 0:
        table.add_row(f"and {hidden} more", "", "")
    return _indented(table)
