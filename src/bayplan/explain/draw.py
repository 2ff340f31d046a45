"""Explanations on a terminal: the verdict, the funnel, tables of nodes and reasons, what would change it.

Only layout. Every string that comes from a cluster goes through `plain` and is handed to Rich as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.api.quantity import format_quantity
from bayplan.explain.changes import Changes
from bayplan.explain.explanation import Explanation, NodeExplanation
from bayplan.explain.moves import Moves
from bayplan.explain.pending import PendingBoard
from bayplan.explain.table import plain
from bayplan.explain.whatif import WhatIf
from bayplan.loop.record import DecisionRecord

__all__ = ["draw_changes", "draw_explanation", "draw_node", "draw_pending", "draw_whatif"]

_STYLES = {
    "placed": "bold green",
    "binding": "bold green",
    "pending": "bold red",
    "gated": "bold yellow",
    "gone": "bold",
}
_MOST_ROWS = 12
_LONGEST_NAME = 28
_MOST_TIMES = 4
_MOST_STEPS = 8


def draw_explanation(explanation: Explanation, *, top: int = 5, width: int = 120) -> Iterator[RenderableType]:
    style = "bold green" if explanation.fits else _STYLES.get(explanation.state, "bold")
    yield Text(plain(explanation.verdict), style=style)
    if explanation.node_count:
        yield Padding(_funnel(explanation), (0, 2), expand=False)
    if explanation.best:
        yield _scores(explanation, top=top, width=width)
    if explanation.refused:
        yield _refused(explanation)
    if explanation.victims is not None and explanation.victims.pods:
        yield _list(f"would leave {explanation.victims.node}", explanation.victims.pods[:_MOST_ROWS])
    if explanation.attempts:
        yield _attempts(explanation.attempts)
    yield from _queue(explanation)
    if explanation.phases:
        yield from _times(explanation)


def _queue(explanation: Explanation) -> Iterator[RenderableType]:
    """active 0.2 s (PodAdd) → unschedulable 31 s → backoff 1.0 s (NodeAdd)."""
    story = explanation.queue.story if explanation.queue is not None else []
    story = story or (list(explanation.attempts[0].history) if explanation.attempts else [])
    if not story:
        return
    text = Text("in the queue: " if len(story) <= _MOST_STEPS else "in the queue: … → ", style="dim")
    story = story[-_MOST_STEPS:]
    ends = [time for time, _, _ in story[1:]]
    for place, (time, where, cause) in enumerate(story):
        took = f" {_duration(ends[place] - time)}" if place < len(ends) else f" since {_moment(time)}"
        text.append(" → " if place else "", style="dim").append(plain(where), style="bold")
        text.append(f"{took} ({plain(cause)})" if cause else took)
    yield Padding(text, (1, 2, 0, 2), expand=False)


def _times(explanation: Explanation) -> Iterator[RenderableType]:
    """What each extension point took, and the plugins that took most of it."""
    text = Text("took: ", style="dim")
    text.append(", ".join(f"{plain(phase)} {_duration(seconds)}" for phase, seconds in explanation.phases))
    slowest = sorted(explanation.times, key=lambda time: -time.seconds)[:_MOST_TIMES]
    if slowest:
        text.append("; most of it ", style="dim")
        text.append(", ".join(f"{plain(t.plugin)} {plain(t.point)} {_duration(t.seconds)}" for t in slowest))
    yield Padding(text, (0, 2), expand=False)


def _funnel(explanation: Explanation) -> Text:
    """5,000 nodes → 4,210 after TaintToleration → 37 after NodeResourcesFit → 1 chosen."""
    text = Text(f"{explanation.node_count:,} node{'' if explanation.node_count == 1 else 's'}")
    for step in explanation.funnel:
        text.append(" → ", style="dim").append(f"{step.left:,}", style="bold")
        text.append(f" after {plain(step.plugin)}", style="dim")
    if explanation.node:
        text.append(" → ", style="dim").append("1", style="bold").append(" chosen", style="dim")
    return text


def _scores(explanation: Explanation, *, top: int, width: int) -> RenderableType:
    """A row for each plugin, a column for each of the best nodes."""
    room = max(2, (width - 46) // 16)
    shown = explanation.best[: min(top, room)]
    table = _table("score by plugin", "weight")
    table.columns[1].justify = "right"
    for node in shown:
        style = "bold green" if node.node == explanation.node else ""
        table.add_column(Text(_shortened(plain(node.node)), style=style), justify="right", overflow="fold")
    for plugin in dict.fromkeys(plugin for node in shown for plugin in node.points):
        points = [str(node.points[plugin].weighted) if plugin in node.points else "" for node in shown]
        if any(point not in ("", "0") for point in points):
            table.add_row(plain(plugin), f"×{explanation.weights.get(plugin, 1)}", *points)
    table.add_section()
    table.add_row(Text("total", style="bold"), "", *(Text(str(node.total), style="bold") for node in shown))
    more = explanation.feasible - len(shown)
    if more > 0:
        table.caption = f"and {more:,} more that fit{'s' if more == 1 else ''}"
        table.caption_justify = "left"
    return _indented(table)


def _refused(explanation: Explanation) -> RenderableType:
    table = _table("nodes", "refused by", "because", "such as")
    table.columns[0].justify = "right"
    for group in explanation.refused[:_MOST_ROWS]:
        reasons, sample = plain("; ".join(group.reasons)), plain(", ".join(group.sample))
        table.add_row(f"{group.count:,}", plain(group.plugin or "PreFilter"), Text(reasons), Text(sample))
    return _indented(table)


def _attempts(attempts: Sequence[DecisionRecord]) -> RenderableType:
    table = _table("attempt", "when", "woken by", "fit on", "outcome", "took")
    table.columns[3].justify = table.columns[5].justify = "right"
    for record in attempts[:_MOST_ROWS]:
        outcome = f"{record.outcome} {record.node or record.nominated}".strip()
        table.add_row(
            str(record.attempt),
            _moment(record.time),
            plain(record.woken_by),
            f"{record.feasible:,}/{record.nodes:,}",
            Text(plain(outcome)),
            f"{record.seconds * 1000:.2f} ms",
        )
    return _indented(table)


def draw_changes(changes: Changes | Moves) -> Iterator[RenderableType]:
    if isinstance(changes, Moves):
        if changes.moves:
            yield _list("what would move it", [move.sentence for move in changes.moves])
        if changes.note:
            yield Padding(Text(plain(changes.note), style="dim"), (0, 2), expand=False)
        return
    if changes.suggestions:
        yield _list("what would let it run", [suggestion.sentence for suggestion in changes.suggestions])
    misses = [
        f"{miss.node} lacks {' and '.join(f'{amount} {name}' for name, amount in miss.lacks.items())}"
        + (f" (and {', '.join(miss.also)} object)" if miss.also else "")
        for miss in changes.nearest
    ]
    if misses:
        yield _list("nearest misses", misses)
    if changes.note:
        yield Padding(Text(plain(changes.note), style="dim"), (0, 2), expand=False)
    if changes.without:
        yield _list("without a plugin", [f"without {entry.plugin}: {entry.nodes:,} nodes" for entry in changes.without])


def draw_node(node: NodeExplanation) -> Iterator[RenderableType]:
    yield Text(plain(node.verdict), style="bold")
    facts = [part for part in (node.zone, *node.taints) if part]
    if facts:
        yield Padding(Text(plain(", ".join(facts)), style="dim"), (0, 2), expand=False)
    table = _table("resource", "requested", "of", "full")
    for fill in node.resources:
        share = f"{fill.requested * 100 // fill.allocatable} %" if fill.allocatable else ""
        amounts = [format_quantity(amount, fill.resource) for amount in (fill.requested, fill.allocatable)]
        table.add_row(plain(fill.resource), *amounts, share)
    yield _indented(table)
    if node.pending:
        pending = _table("pending", "such as", "here", "because")
        pending.columns[0].justify = "right"
        for group in node.pending[:_MOST_ROWS]:
            here = f"fits, place {group.place:,}" if group.fits else f"refused by {group.plugin or 'PreFilter'}"
            reasons = Text(plain("; ".join(group.reasons)))
            pending.add_row(f"{group.count:,}", Text(plain(group.pod)), Text(plain(here)), reasons)
        yield _indented(pending)
    if node.attempts:
        yield _attempts(node.attempts)


def draw_pending(board: PendingBoard) -> Iterator[RenderableType]:
    yield Text(plain(board.verdict), style="bold red" if board.total else "bold green")
    if board.causes:
        table = _table("pods", "because of", "such as")
        table.columns[0].justify = "right"
        for cause in board.causes[:50]:
            sample = plain(", ".join(waiting.pod for waiting in cause.pods[:3]))
            table.add_row(f"{cause.count:,}", Text(plain(cause.title)), Text(sample))
        yield _indented(table)
    if board.change is not None:
        text = f"{board.frees:,} of them would be freed by one change. {board.change.sentence}"
        yield Padding(Text(plain(text), style="bold"), (1, 2, 0, 2), expand=False)


def draw_whatif(answer: WhatIf, *, most: int = 40) -> Iterator[RenderableType]:
    yield Text(plain(answer.verdict), style="bold")
    for title, entries in (("placed", answer.placed), ("pending", answer.pending)):
        if not entries:
            continue
        table = _table(title, "was", "node" if title == "placed" else "because")
        for entry in entries[:most]:
            table.add_row(Text(plain(entry.pod)), Text(plain(entry.origin)), Text(plain(entry.node or entry.message)))
        hidden = (answer.placed_count if title == "placed" else answer.pending_count) - min(len(entries), most)
        if hidden > 0:
            table.add_row(f"and {hidden:,} more", "", "")
        yield _indented(table)
    if answer.evicted:
        evicted = _table("evicted", "from", "for")
        for gone in answer.evicted[:most]:
            evicted.add_row(Text(plain(gone.pod)), Text(plain(gone.node)), Text(plain(gone.by)))
        yield _indented(evicted)
    if answer.note:
        yield Padding(Text(plain(answer.note), style="dim"), (0, 2), expand=False)


def _list(title: str, lines: Sequence[str]) -> RenderableType:
    table = _table(title)
    for line in lines:
        table.add_row(Text(plain(line)))
    return _indented(table)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _indented(table: Table) -> RenderableType:
    return Padding(table, (1, 2, 0, 2), expand=False)


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _duration(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{seconds * 1000:.2g} ms" if seconds >= 0.001 else f"{seconds * 1e6:.0f} µs"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S")
