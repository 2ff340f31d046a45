"""Explanations on a terminal: the verdict, what was decided then, what holds now, what would change it.

Only layout. Every string that comes from a cluster goes through `plain`, which makes control characters visible, and is
handed to Rich as text, never as markup: a node's name cannot colour, move or clear anything. Sections about then and
about now have titles and colours of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.api.quantity import format_quantity
from bayplan.explain.claims.device_wording import DEVICE_WORDS
from bayplan.explain.claims.phrases import error_itself, listed, stopped
from bayplan.explain.model import (
    Changes,
    Decided,
    DeviceReport,
    NodeDevice,
    NodeExplanation,
    Now,
    PendingBoard,
    PodExplanation,
    Suggestion,
)
from bayplan.explain.terminal.tables import (
    NARROW,
    below,
    indent,
    keep_words,
    plain,
    prose_and_sample,
    sample_of,
    simple_table,
)
from bayplan.loop.record import UNDER_WAY, DecisionRecord, PluginTook, Preemption, Refused, ScoredNode, Step

if TYPE_CHECKING:
    from bayplan.explain.offline.evaluating import Evaluated

__all__ = [
    "draw_best_change",
    "draw_changes",
    "draw_evaluated",
    "draw_node",
    "draw_pending",
    "draw_pod",
    "draw_summary",
]

_STYLES = {
    "placed": "bold green",
    "binding": "bold green",
    "scheduled": "bold green",
    "pending": "bold red",
    "failed": "bold red",
    "gated": "bold yellow",
    "held": "bold yellow",
    "preempts": "bold yellow",
    "gone": "bold",
}
_THEN, _NOW = "cyan", "magenta"
_MOST_ROWS = 12
_MOST_CAUSES = 50
_LONGEST_NAME = 28
_MOST_TIMES = 4
_MOST_STEPS = 8
_MOST_TIED = 12
_MOST_DEVICE_NODES = 3
_MOST_NODE_DEVICES = 32
_MOST_COMMANDS = 8


# A pod of a running scheduler


def draw_pod(explanation: PodExplanation, *, top: int = 5, width: int = 120) -> Iterator[RenderableType]:
    now = explanation.now
    today = now.time if now is not None else 0.0
    is_waiting = explanation.state in ("pending", "gated")
    fits = is_waiting and now is not None and bool(now.node)
    style = "bold green" if fits else _STYLES.get(explanation.state, "bold")
    yield Text(plain(explanation.verdict), style=style)
    if explanation.note:
        yield Padding(Text(plain(explanation.note), style="dim"), (0, 2), expand=False)
    if explanation.decision is not None and not is_waiting:
        yield from _then(explanation.decision, today=today, width=width)
    is_unrecorded = explanation.state == "placed" and explanation.decision is None
    if now is not None and (explanation.state == "pending" or is_unrecorded):
        yield from _now(now, top=top, width=width)
    if explanation.devices:
        yield _list("devices", [DEVICE_WORDS[type(claim)](claim) for claim in explanation.devices])
    if explanation.attempts:
        yield _attempts(explanation.attempts, today=today)
    yield from _queue(explanation, today=today)


def _then(decided: Decided, *, today: float, width: int) -> Iterator[RenderableType]:
    yield _title(f"decided {_moment(decided.time, today)} UTC", _THEN)
    if decided.nodes and decided.chosen_by != "nomination":
        yield indent(_funnel(decided.nodes, decided.funnel, decided.node))
    if decided.points:
        chosen = ScoredNode(node=decided.node, total=decided.total, points=decided.points)
        others = [decided.runner_up] if decided.runner_up is not None else []
        yield _scores([chosen, *others], decided.node, decided.feasible)
    if decided.preemption is not None:
        yield from _preemption(decided.preemption, "left")
    if decided.refused and not decided.node:
        yield _refused(decided.refused, width=width)
    if decided.permit is not None:
        yield indent(_permit(decided))
    if decided.stopped_at:
        how = stopped(decided.stopped_at, decided.stopped_by, has_failed=decided.outcome == "error")
        error = error_itself(decided.stopped_at, decided.stopped_by, decided.error)
        yield indent(Text(plain(f"{how}: {error}"), style="red"))


def _permit(decided: Decided) -> Text:
    permit = decided.permit
    assert permit is not None  # the caller checked
    who = ", ".join(f"{plugin} ({seconds:g} s at most)" for plugin, seconds in permit.plugins.items())
    waited = f"; left after {_duration(permit.seconds)}: {permit.result}" if permit.result else ""
    return Text(plain(f"held at Permit by {who}{waited}"))


def _now(now: Now, *, top: int, width: int) -> Iterator[RenderableType]:
    yield _title("on the cluster as it is now", _NOW)
    yield from _now_parts(now, top=top, width=width, chosen_ends=True)
    if now.phases:
        yield _took(now.phases, now.times)


def _now_parts(now: Now, *, top: int, width: int, chosen_ends: bool) -> Iterator[RenderableType]:
    if now.nodes:
        yield indent(_funnel(now.nodes, now.funnel, now.node if chosen_ends else ""))
    if now.best:
        yield _scores(_fitting(now.best, top=top, width=width), now.node, now.feasible)
    if len(now.tied) > 1:
        yield indent(Text.assemble(("tie set: ", "dim"), plain(sample_of(now.tied, most=_MOST_TIED))))
    if now.refused:
        yield _refused(now.refused, width=width)
    if now.devices is not None:
        yield from _devices(now.devices)
    if now.preemption is not None:
        yield from _preemption(now.preemption, "would leave")
    if now.message:
        yield indent(Text.assemble(("kube-scheduler would say: ", "dim"), plain(now.message)), is_apart=True)


def _queue(explanation: PodExplanation, *, today: float) -> Iterator[RenderableType]:
    """active 0.2 s (PodAdd) → unschedulable 31 s → backoff 1.0 s (NodeAdd)."""
    history, outcome, ended = explanation.queue.history if explanation.queue is not None else [], "", 0.0
    if not history and explanation.attempts:
        # The pod has left the queue: the outcome of its attempt is the last step.
        record = explanation.attempts[0]
        history, outcome = list(record.history), record.outcome if record.outcome != UNDER_WAY else ""
        ended = history[-1][0] + record.outcome_seconds if history else 0.0
    if not history:
        return
    text = Text("in the queue: " if len(history) <= _MOST_STEPS else "in the queue: … → ", style="dim")
    history = history[-_MOST_STEPS:]
    ends = [*(time for time, _, _ in history[1:]), *([ended] if outcome else [])]
    for place, (time, where, cause) in enumerate(history):
        took = f" {_duration(ends[place] - time)}" if place < len(ends) else f" since {_moment(time, today)}"
        text.append(" → " if place else "", style="dim").append(plain(where), style="bold")
        text.append(f"{took} ({plain(cause)})" if cause else took)
    if outcome:
        text.append(" → ", style="dim").append(plain(outcome), style="bold").append(f" at {_moment(ended, today)}")
    yield Padding(text, (1, 2, 0, 2), expand=False)


def _took(phases: Sequence[tuple[str, float]], times: Sequence[PluginTook]) -> RenderableType:
    """What each extension point took, and the slowest plugins."""
    text = Text("worked out now in: ", style="dim")
    text.append(", ".join(f"{plain(phase)} {_duration(seconds)}" for phase, seconds in phases))
    slowest = sorted(times, key=lambda time: -time.seconds)[:_MOST_TIMES]
    if slowest:
        text.append("; slowest: ", style="dim")
        text.append(", ".join(f"{plain(t.plugin)} {plain(t.point)} {_duration(t.seconds)}" for t in slowest))
    return indent(text)


def draw_changes(changes: Changes) -> Iterator[RenderableType]:
    if changes.suggestions:
        yield _list("what would move it" if changes.is_placed else "what would let it run", [])
    for suggestion in changes.suggestions:
        yield indent(Text(plain(suggestion.sentence)))
        yield from _steps(suggestion)
    for head, entries in (("nearest misses", changes.nearest), ("without a plugin", changes.without)):
        if entries:
            yield _list(head, [entry.sentence for entry in entries])
    if changes.note:
        yield indent(Text(plain(changes.note), style="dim"))


def _steps(suggestion: Suggestion, *, most: int = _MOST_COMMANDS) -> Iterator[RenderableType]:
    """How it is done, in lines that can be copied into a shell."""
    for command in suggestion.commands[:most]:
        yield Text(f"      {plain(command)}", style="cyan", no_wrap=True)
    left = len(suggestion.commands) - most
    words = [f"and {left:,} more such commands (-o json)"] if left > 0 else []
    for line in (*words, *filter(None, [suggestion.how])):
        yield Text(f"      {plain(line)}", style="dim")


# Manifests


def draw_evaluated(found: Evaluated, *, top: int = 5, width: int = 120) -> Iterator[RenderableType]:
    """What to print about one pod, piece by piece."""
    yield Text(plain(found.verdict), style=_STYLES[found.outcome])
    if found.outcome not in ("gated", "failed"):
        yield from _now_parts(found.now, top=top, width=width, chosen_ends=False)
    granted = [line for claim, entry in found.result.get("allocations", {}).items() for line in _granted(claim, entry)]
    if granted:
        yield _list(f"devices on {plain(found.result['allocatedOn'])}", granted)


def _granted(claim: str, entry: dict[str, Any]) -> Iterator[str]:
    for each in entry["allocation"].get("devices", {}).get("results", ()):
        yield f"{each['driver']}/{each['pool']}/{each['device']} for {claim}/{each['request']}"


def draw_summary(found: Sequence[Evaluated]) -> Table:
    """One line a pod, in the order in which they were decided."""
    table = simple_table("pod", "node", "points", "fits on", "why not")
    table.columns[2].justify = table.columns[3].justify = "right"
    for each in found:
        points = str(each.now.best[0].total) if each.now.best else ""
        node = Text(plain(each.now.node) or each.outcome, style=_STYLES[each.outcome])
        share = f"{each.now.feasible}/{each.now.nodes}"
        table.add_row(Text(plain(each.pod)), node, points, share, Text(plain(each.now.message)))
    return table


# Nodes, pending pods


def draw_node(node: NodeExplanation, *, width: int = 120) -> Iterator[RenderableType]:
    yield Text(plain(node.verdict), style="bold")
    facts = [*([f"zone {node.zone}"] if node.zone else []), *(f"taint {taint}" for taint in node.taints)]
    if facts:
        yield indent(Text(plain(", ".join(facts)), style="dim"))
    table = simple_table("resource", "requested", "of", "full", figures=("requested", "of", "full"))
    for fill in node.resources:
        share = f"{fill.requested * 100 // fill.allocatable} %" if fill.allocatable else ""
        amounts = [format_quantity(amount, fill.resource) for amount in (fill.requested, fill.allocatable)]
        table.add_row(plain(fill.resource), *amounts, share)
    yield below(table)
    if node.devices:
        yield _node_devices(node.devices)
    if node.pending:
        heads = ("because", "such as") if width >= NARROW else ("because, such as",)
        pending = simple_table("pending", "here", *heads, figures=("pending",))
        keep_words(pending, 1, (group.plugin for group in node.pending[:_MOST_ROWS]))
        for group in node.pending[:_MOST_ROWS]:
            here = f"fits, place {group.place:,}" if group.fits else f"refused by {group.plugin or 'PreFilter'}"
            cells = prose_and_sample(plain("; ".join(group.reasons)), plain(group.pod), width=width)
            pending.add_row(f"{group.count:,}", Text(plain(here)), *cells)
        hidden = node.pending[_MOST_ROWS:]
        if hidden:
            pending.add_row(f"{sum(group.count for group in hidden):,}", f"{len(hidden):,} more kinds")
        yield below(pending)
    if node.attempts:
        yield _attempts_here(node.attempts, is_narrow=width < NARROW)


def draw_pending(board: PendingBoard, *, most_named: int | None = 3, width: int = 120) -> Iterator[RenderableType]:
    """`most_named` pods of each cause, or all that came with the board; the change is drawn by `draw_best_change`."""
    yield Text(plain(board.verdict), style="bold red" if board.total else "bold green")
    if board.causes:
        heads = ("because of", "such as") if width >= NARROW else ("because of, such as",)
        table = simple_table("pods", *heads, figures=("pods",))
        for cause in board.causes[:_MOST_CAUSES]:
            sample = plain(sample_of([waiting.pod for waiting in cause.pods], most=most_named or len(cause.pods)))
            table.add_row(f"{cause.count:,}", *prose_and_sample(plain(cause.title), sample, width=width))
        hidden = board.causes[_MOST_CAUSES:]
        if hidden:
            pods = sum(cause.count for cause in hidden)
            table.add_row(f"{pods:,}", f"{len(hidden):,} other causes")
        yield below(table)


def draw_best_change(board: PendingBoard) -> Iterator[RenderableType]:
    if board.change is not None:
        yield Padding(Text(plain(_capital(board.change)), style="bold"), (1, 2, 0, 2), expand=False)
        yield from _steps(board.change, most=3)


def _capital(suggestion: Suggestion) -> str:
    return suggestion.sentence[:1].upper() + suggestion.sentence[1:]


# Pieces


def _title(text: str, colour: str) -> RenderableType:
    return Padding(Text(text, style=colour), (1, 2, 0, 0), expand=False)


def _funnel(nodes: int, steps: Sequence[Step], chosen: str) -> Text:
    """5,000 nodes → 4,210 after TaintToleration → 37 after NodeResourcesFit → 1 chosen."""
    text = Text(f"{nodes:,} node{'' if nodes == 1 else 's'}")
    for step in steps:
        text.append(" → ", style="dim").append(f"{step.left:,}", style="bold")
        text.append(f" after {plain(step.plugin)}", style="dim")
    if not steps:
        text.append(", all of which fit" if nodes > 1 else ", which fits", style="dim")
    if chosen:
        text.append(" → ", style="dim").append("1", style="bold").append(" chosen", style="dim")
    return text


def _fitting(best: Sequence[ScoredNode], *, top: int, width: int) -> list[ScoredNode]:
    """As many of the best as the width holds, two at least."""
    room = width - 46
    shown: list[ScoredNode] = []
    for entry in best[: max(top, 1)]:
        room -= min(len(entry.node), _LONGEST_NAME) + 2
        if room < 0 and len(shown) >= 2:
            break
        shown.append(entry)
    return shown


def _scores(shown: Sequence[ScoredNode], chosen: str, feasible: int) -> RenderableType:
    """A row for each plugin, a column for each of some nodes."""
    table = simple_table("score by plugin", "weight")
    table.columns[1].justify = "right"
    for node in shown:
        style = "bold green" if node.node == chosen else ""
        table.add_column(Text(_shortened(plain(node.node)), style=style), justify="right", overflow="fold")
    weights = {plugin: points.weight for node in shown for plugin, points in node.points.items()}
    for plugin, weight in weights.items():
        points = [str(node.points[plugin].weighted) if plugin in node.points else "" for node in shown]
        if any(point not in ("", "0") for point in points):
            table.add_row(plain(plugin), f"×{weight}", *points)
    table.add_section()
    best = max(node.total for node in shown)
    totals = [Text(str(node.total), style="bold green" if node.total == best else "bold") for node in shown]
    table.add_row(Text("total", style="bold"), "", *totals)
    more = feasible - len(shown)
    if more > 0:
        table.caption = f"and {more:,} more node{'s' if more > 1 else ''} that fit{'' if more > 1 else 's'}"
        table.caption_justify = "left"
    return below(table)


def _refused(groups: Sequence[Refused], *, width: int) -> RenderableType:
    heads = ("because", "such as") if width >= NARROW else ("because, such as",)
    table = simple_table("nodes", "refused by", *heads, figures=("nodes",))
    keep_words(table, 1, (group.plugin for group in groups[:_MOST_ROWS]))
    for group in groups[:_MOST_ROWS]:
        cells = prose_and_sample(plain("; ".join(group.reasons)), plain(sample_of(group.sample)), width=width)
        table.add_row(f"{group.count:,}", plain(group.plugin or "PreFilter"), *cells)
    hidden = groups[_MOST_ROWS:]
    if hidden:
        table.add_row(f"{sum(group.count for group in hidden):,}", "", f"for {len(hidden)} other reasons")
    return below(table)


def _devices(report: DeviceReport) -> Iterator[RenderableType]:
    """What the devices of the nearest nodes are to each request; those that are the same to it in one row."""
    for node in report.nodes[:_MOST_DEVICE_NODES]:
        table = simple_table(f"devices on {plain(node.node)}", "for", "")
        for request in node.requests:
            alike: dict[str, list[str]] = {}
            for fact in request.devices:
                alike.setdefault(fact.phrase, []).append(fact.device)
            for phrase, devices in list(alike.items())[:_MOST_ROWS]:
                table.add_row(*(Text(plain(text)) for text in (listed(devices, "devices"), request.request, phrase)))
        for text in (*(fact.sentence for fact in node.facts), node.error):
            if text:
                table.add_row("", "", Text(plain(text)))
        yield below(table)
    hidden = report.refused - min(len(report.nodes), _MOST_DEVICE_NODES)
    if hidden > 0:
        yield indent(Text(f"and {hidden:,} more node{'s' if hidden > 1 else ''} without the devices", style="dim"))


def _node_devices(devices: Sequence[NodeDevice]) -> RenderableType:
    table = simple_table("device", "state", "claim", "pod")
    for each in devices[:_MOST_NODE_DEVICES]:
        state = f"{each.state} {', '.join(each.taints)}" if each.taints else each.state
        row = (each.device, state, ", ".join(each.owners), ", ".join(each.users))
        table.add_row(*(Text(plain(text)) for text in row))
    return below(table)


def _preemption(preemption: Preemption, verb: str) -> Iterator[RenderableType]:
    """Who leaves, and what decided between the nodes where that was possible."""
    table = simple_table(f"{verb} {plain(preemption.node)}", "priority")
    table.columns[1].justify = "right"
    for victim in preemption.victims[:_MOST_ROWS]:
        table.add_row(Text(plain(victim.pod)), f"{victim.priority:,}")
    hidden = preemption.victim_count - min(len(preemption.victims), _MOST_ROWS)
    if hidden > 0:
        table.add_row(f"and {hidden:,} more", "")
    yield below(table)
    if preemption.keys:
        nodes = f"{preemption.candidates:,} candidate node{'' if preemption.candidates == 1 else 's'}"
        before = [preemption.candidates, *(key.left for key in preemption.keys)]
        pairs = zip(preemption.keys, before, strict=False)
        told = [f"{key.left:,} by {key.key}" for key, was in pairs if key.left < was]
        further = "every further criterion" if told else "every criterion"
        equal = f", equal by {further}" if preemption.ties > 1 else ""
        yield indent(Text.assemble(("why there: ", "dim"), " → ".join([nodes, *told]), equal))


def _attempts(attempts: Sequence[DecisionRecord], *, today: float) -> RenderableType:
    shown = attempts[:_MOST_ROWS]
    woken = ["woken by"] if any(record.woken_by for record in shown) else []
    figures = ("attempt", "when", "fit on", "took")
    table = simple_table("attempt", "when", *woken, "fit on", "outcome", "took", figures=figures)
    keep_words(table, len(table.columns) - 2, (record.outcome for record in shown))
    for record in shown:
        stopped = f" at {record.stopped_at}" if record.stopped_at else ""
        where = f" {record.node}" if record.node else f", nominated {record.nominated}" if record.nominated else ""
        outcome = f"{record.outcome}{stopped}{where}"
        table.add_row(
            str(record.attempt),
            _moment(record.time, today),
            *(plain(record.woken_by) for _ in woken),
            f"{record.feasible:,}/{record.nodes:,}",
            Text(plain(outcome)),
            f"{record.seconds * 1000:.2f} ms",
        )
    return below(table)


def _attempts_here(attempts: Sequence[DecisionRecord], *, is_narrow: bool) -> RenderableType:
    """Decisions for one node."""
    heads = ["when", "pod", "outcome", *([] if is_narrow else ["fit on"]), "took"]
    table = simple_table(*heads, figures=("when", "fit on", "took"))
    keep_words(table, 2, (record.outcome for record in attempts[:_MOST_ROWS]))
    for record in attempts[:_MOST_ROWS]:
        stopped = f" at {record.stopped_at}" if record.stopped_at else ""
        fitting = [] if is_narrow else [f"{record.feasible:,}/{record.nodes:,}"]
        words = Text(plain(record.pod)), Text(plain(f"{record.outcome}{stopped}"))
        table.add_row(_moment(record.time, attempts[0].time), *words, *fitting, f"{record.seconds * 1000:.2f} ms")
    return below(table)


def _list(title: str, lines: Sequence[str]) -> RenderableType:
    table = simple_table(title)
    for line in lines:
        table.add_row(Text(plain(line)))
    return below(table)


def _shortened(name: str) -> str:
    """A long name without its middle; what tells nodes apart is usually at one of the ends."""
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _duration(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{seconds * 1000:.2g} ms" if seconds >= 0.001 else f"{seconds * 1e6:.0f} µs"
    if seconds < 100:
        return f"{seconds:.1f} s"
    unit, size = ("min", 60) if seconds < 5_400 else ("h", 3_600) if seconds < 172_800 else ("d", 86_400)
    return f"{seconds / size:.0f} {unit}"


def _moment(time: float, today: float) -> str:
    """With its date where that is another one than today's."""
    then = datetime.fromtimestamp(time, UTC)
    is_today = then.date() == datetime.fromtimestamp(today, UTC).date()
    return then.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")
