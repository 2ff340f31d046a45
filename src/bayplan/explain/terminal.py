"""Explanations on a terminal: the verdict, what was decided then, what holds now, what would change it.

Only layout. Every string that comes from a cluster goes through `plain`, which makes control characters visible, and is
handed to Rich as text, never as markup: a node's name cannot colour, move or clear anything. Sections about then and
about now have titles and colours of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.api.quantity import format_quantity
from bayplan.explain.device_report import DeviceReport, NodeDevice
from bayplan.explain.device_wording import DEVICE_WORDS
from bayplan.explain.evaluating import Evaluated
from bayplan.explain.model import Changes, Decided, NodeExplanation, Now, PodExplanation, Suggestion
from bayplan.explain.pages.decision_log import template_of
from bayplan.explain.pending import PendingBoard
from bayplan.explain.phrases import listed
from bayplan.explain.whatif import Placement, WhatIf
from bayplan.loop.record import DecisionRecord, PluginTook, Preemption, Refused, ScoredNode, Step

__all__ = [
    "draw_best_change",
    "draw_changes",
    "draw_evaluated",
    "draw_node",
    "draw_pending",
    "draw_pod",
    "draw_summary",
    "draw_whatif",
    "plain",
    "simple_table",
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
_LONGEST_NAME = 28
_MOST_TIMES = 4
_MOST_STEPS = 8
_MOST_TIED = 12
_MOST_DEVICE_NODES = 3
_MOST_NODE_DEVICES = 32
_MOST_COMMANDS = 8


def plain(text: str) -> str:
    """The text with control characters written out, so that it cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


# A pod of a running scheduler


def draw_pod(explanation: PodExplanation, *, top: int = 5, width: int = 120) -> Iterator[RenderableType]:
    now = explanation.now
    is_waiting = explanation.state in ("pending", "gated")
    fits = is_waiting and now is not None and bool(now.node)
    style = "bold green" if fits else _STYLES.get(explanation.state, "bold")
    yield Text(plain(explanation.verdict), style=style)
    if explanation.decision is not None and not is_waiting:
        yield from _then(explanation.decision)
    if now is not None and is_waiting and explanation.state != "gated":
        yield from _now(now, top=top, width=width)
    elif now is not None and explanation.state == "placed" and explanation.decision is None:
        yield Padding(Text(plain(explanation.note), style="dim"), (0, 2), expand=False)
        yield from _now(now, top=top, width=width)
    if explanation.devices:
        yield _list("devices", [DEVICE_WORDS[type(claim)](claim) for claim in explanation.devices])
    if explanation.attempts:
        yield _attempts(explanation.attempts)
    yield from _queue(explanation)
    if now is not None and is_waiting and now.phases:
        yield _took(now.phases, now.times)


def _then(decided: Decided) -> Iterator[RenderableType]:
    yield _title(f"decided {_moment(decided.time)} UTC", _THEN)
    if decided.nodes and decided.chosen_by != "nomination":
        yield _indent(_funnel(decided.nodes, decided.funnel, decided.node))
    if decided.points:
        chosen = ScoredNode(node=decided.node, total=decided.total, points=decided.points)
        others = [decided.runner_up] if decided.runner_up is not None else []
        yield _scores([chosen, *others], decided.node, decided.feasible)
    if decided.preemption is not None:
        yield from _preemption(decided.preemption, "left")
    if decided.refused and not decided.node:
        yield _refused(decided.refused, decided.nodes)
    if decided.permit is not None:
        yield _indent(_permit(decided))
    if decided.stopped_at:
        by = f" by {decided.stopped_by}" if decided.stopped_by else ""
        yield _indent(Text(plain(f"refused at {decided.stopped_at}{by}: {decided.error}"), style="red"))


def _permit(decided: Decided) -> Text:
    permit = decided.permit
    assert permit is not None  # the caller checked
    who = ", ".join(f"{plugin} ({seconds:g} s at most)" for plugin, seconds in permit.plugins.items())
    waited = f"; left after {_duration(permit.seconds)}: {permit.result}" if permit.result else ""
    return Text(plain(f"held at Permit by {who}{waited}"))


def _now(now: Now, *, top: int, width: int) -> Iterator[RenderableType]:
    yield _title("on the cluster as it is now", _NOW)
    yield from _now_parts(now, top=top, width=width, chosen_ends=True)


def _now_parts(now: Now, *, top: int, width: int, chosen_ends: bool) -> Iterator[RenderableType]:
    if now.nodes:
        yield _indent(_funnel(now.nodes, now.funnel, now.node if chosen_ends else ""))
    if now.best:
        yield _scores(_fitting(now.best, top=top, width=width), now.node, now.feasible)
    if len(now.tied) > 1:
        yield _indent(Text.assemble(("tie set: ", "dim"), plain(_sample(now.tied, most=_MOST_TIED))))
    if now.refused:
        yield _refused(now.refused, now.nodes)
    if now.devices is not None:
        yield from _devices(now.devices)
    if now.preemption is not None:
        yield from _preemption(now.preemption, "would leave")
    if now.message:
        yield _indent(Text.assemble(("kube-scheduler would say: ", "dim"), plain(now.message)))


def _queue(explanation: PodExplanation) -> Iterator[RenderableType]:
    """active 0.2 s (PodAdd) → unschedulable 31 s → backoff 1.0 s (NodeAdd)."""
    history = explanation.queue.history if explanation.queue is not None else []
    history = history or (list(explanation.attempts[0].history) if explanation.attempts else [])
    if not history:
        return
    text = Text("in the queue: " if len(history) <= _MOST_STEPS else "in the queue: … → ", style="dim")
    history = history[-_MOST_STEPS:]
    ends = [time for time, _, _ in history[1:]]
    for place, (time, where, cause) in enumerate(history):
        took = f" {_duration(ends[place] - time)}" if place < len(ends) else f" since {_moment(time)}"
        text.append(" → " if place else "", style="dim").append(plain(where), style="bold")
        text.append(f"{took} ({plain(cause)})" if cause else took)
    yield Padding(text, (1, 2, 0, 2), expand=False)


def _took(phases: Sequence[tuple[str, float]], times: Sequence[PluginTook]) -> RenderableType:
    """What each extension point took, and the plugins that took most of it."""
    text = Text("took: ", style="dim")
    text.append(", ".join(f"{plain(phase)} {_duration(seconds)}" for phase, seconds in phases))
    slowest = sorted(times, key=lambda time: -time.seconds)[:_MOST_TIMES]
    if slowest:
        text.append("; most of it ", style="dim")
        text.append(", ".join(f"{plain(t.plugin)} {plain(t.point)} {_duration(t.seconds)}" for t in slowest))
    return _indent(text)


def draw_changes(changes: Changes) -> Iterator[RenderableType]:
    if changes.suggestions:
        yield _list("what would move it" if changes.is_placed else "what would let it run", [])
    for suggestion in changes.suggestions:
        yield _indent(Text(plain(suggestion.sentence)))
        yield from _steps(suggestion)
    for head, entries in (("nearest misses", changes.nearest), ("without a plugin", changes.without)):
        if entries:
            yield _list(head, [entry.sentence for entry in entries])
    if changes.note:
        yield _indent(Text(plain(changes.note), style="dim"))


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


# Nodes, pending pods, what-ifs


def draw_node(node: NodeExplanation) -> Iterator[RenderableType]:
    yield Text(plain(node.verdict), style="bold")
    facts = [part for part in (node.zone, *node.taints) if part]
    if facts:
        yield _indent(Text(plain(", ".join(facts)), style="dim"))
    table = simple_table("resource", "requested", "of", "full")
    for fill in node.resources:
        share = f"{fill.requested * 100 // fill.allocatable} %" if fill.allocatable else ""
        amounts = [format_quantity(amount, fill.resource) for amount in (fill.requested, fill.allocatable)]
        table.add_row(plain(fill.resource), *amounts, share)
    yield _below(table)
    if node.devices:
        yield _node_devices(node.devices)
    if node.pending:
        pending = simple_table("pending", "such as", "here", "because")
        pending.columns[0].justify = "right"
        for group in node.pending[:_MOST_ROWS]:
            here = f"fits, place {group.place:,}" if group.fits else f"refused by {group.plugin or 'PreFilter'}"
            reasons = Text(plain("; ".join(group.reasons)))
            pending.add_row(f"{group.count:,}", Text(plain(group.pod)), Text(plain(here)), reasons)
        yield _below(pending)
    if node.attempts:
        yield _attempts(node.attempts)


def draw_pending(board: PendingBoard, *, most_named: int | None = 3) -> Iterator[RenderableType]:
    """`most_named` pods of each cause, or all that came with the board; the change is drawn by `draw_best_change`."""
    yield Text(plain(board.verdict), style="bold red" if board.total else "bold green")
    if board.causes:
        table = simple_table("pods", "because of", "such as")
        table.columns[0].justify = "right"
        for cause in board.causes[:50]:
            sample = plain(_sample([waiting.pod for waiting in cause.pods], most=most_named or len(cause.pods)))
            table.add_row(f"{cause.count:,}", Text(plain(cause.title)), Text(sample))
        yield _below(table)


def draw_best_change(board: PendingBoard) -> Iterator[RenderableType]:
    if board.change is not None:
        yield Padding(Text(plain(_capital(board.change)), style="bold"), (1, 2, 0, 2), expand=False)
        yield from _steps(board.change, most=3)


def _capital(suggestion: Suggestion) -> str:
    return suggestion.sentence[:1].upper() + suggestion.sentence[1:]


def draw_whatif(answer: WhatIf, *, is_wide: bool = False, most: int = 40) -> Iterator[RenderableType]:
    """Pods of one template from one place are one row; `is_wide` gives each pod its own."""
    yield Text(plain(answer.verdict), style="bold")
    for title, entries in (("placed", answer.placed), ("pending", answer.pending)):
        if not entries:
            continue
        table = simple_table(title, "was", "node" if title == "placed" else "because")
        rows = [(each.pod, each.origin, each.node or each.message) for each in entries]
        rows = rows if is_wide else _grouped(entries)
        for row in rows[:most]:
            table.add_row(*(Text(plain(cell)) for cell in row))
        unlisted = (answer.placed_count if title == "placed" else answer.pending_count) - len(entries)
        hidden = len(rows) - most
        if hidden > 0 or unlisted > 0:
            more = f"and {hidden:,} more {'pods' if is_wide else 'groups'}" if hidden > 0 else ""
            table.add_row(more or f"and {unlisted:,} more pods", "", "")
        yield _below(table)
    if answer.evicted:
        evicted = simple_table("evicted", "from", "for")
        for gone in answer.evicted[:most]:
            evicted.add_row(Text(plain(gone.pod)), Text(plain(gone.node)), Text(plain(gone.by)))
        if len(answer.evicted) > most:
            evicted.add_row(f"and {len(answer.evicted) - most:,} more", "", "")
        yield _below(evicted)
    if answer.note:
        yield _indent(Text(plain(answer.note), style="dim"))


def _grouped(entries: Sequence[Placement]) -> list[tuple[str, str, str]]:
    """(template, where from, nodes with counts or the reason), the largest group first."""
    groups: dict[tuple[str, str, str], list[Placement]] = {}
    for each in entries:
        namespace, _, name = each.pod.rpartition("/")
        groups.setdefault((f"{namespace}/{template_of(name)}", each.origin, each.message), []).append(each)
    rows = []
    for (template, origin, message), pods in sorted(groups.items(), key=lambda item: -len(item[1])):
        name = pods[0].pod if len(pods) == 1 else f"{len(pods):,} × {template}"
        rows.append((name, origin, message or _counted([each.node for each in pods])))
    return rows


def _counted(nodes: Sequence[str]) -> str:
    """node-1 (5), node-2 (3), … of 12 nodes."""
    counts = Counter(nodes).most_common()
    named = [f"{node} ({count})" if count > 1 else node for node, count in counts[:_MOST_TIED]]
    return ", ".join(named) + (f", … {len(counts):,} nodes in all" if len(counts) > _MOST_TIED else "")


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
    return _below(table)


def _refused(groups: Sequence[Refused], nodes: int) -> RenderableType:
    table = simple_table("nodes", "refused by", "because", "such as")
    table.columns[0].justify = "right"
    for group in groups[:_MOST_ROWS]:
        reasons, sample = plain("; ".join(group.reasons)), plain(_sample(group.sample))
        table.add_row(f"{group.count:,}", plain(group.plugin or "PreFilter"), Text(reasons), Text(sample))
    hidden = groups[_MOST_ROWS:]
    if hidden:
        table.add_row(f"{sum(group.count for group in hidden):,}", "", f"for {len(hidden)} other reasons", "")
    return _below(table)


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
        yield _below(table)
    hidden = report.refused - min(len(report.nodes), _MOST_DEVICE_NODES)
    if hidden > 0:
        yield _indent(Text(f"and {hidden:,} more node{'s' if hidden > 1 else ''} without the devices", style="dim"))


def _node_devices(devices: Sequence[NodeDevice]) -> RenderableType:
    table = simple_table("device", "state", "claim", "pod")
    for each in devices[:_MOST_NODE_DEVICES]:
        state = f"{each.state} {', '.join(each.taints)}" if each.taints else each.state
        row = (each.device, state, ", ".join(each.owners), ", ".join(each.users))
        table.add_row(*(Text(plain(text)) for text in row))
    return _below(table)


def _preemption(preemption: Preemption, verb: str) -> Iterator[RenderableType]:
    """Who leaves, and what decided between the nodes where that was possible."""
    table = simple_table(f"{verb} {plain(preemption.node)}", "priority")
    table.columns[1].justify = "right"
    for victim in preemption.victims[:_MOST_ROWS]:
        table.add_row(Text(plain(victim.pod)), f"{victim.priority:,}")
    hidden = preemption.victim_count - min(len(preemption.victims), _MOST_ROWS)
    if hidden > 0:
        table.add_row(f"and {hidden:,} more", "")
    yield _below(table)
    if preemption.keys:
        nodes = f"{preemption.candidates:,} candidate node{'' if preemption.candidates == 1 else 's'}"
        before = [preemption.candidates, *(key.left for key in preemption.keys)]
        pairs = zip(preemption.keys, before, strict=False)
        told = [f"{key.left:,} by {key.key}" for key, was in pairs if key.left < was]
        yield _indent(Text.assemble(("why there: ", "dim"), " → ".join([nodes, *told])))


def _attempts(attempts: Sequence[DecisionRecord]) -> RenderableType:
    table = simple_table("attempt", "when", "woken by", "fit on", "outcome", "took")
    table.columns[3].justify = table.columns[5].justify = "right"
    for record in attempts[:_MOST_ROWS]:
        stopped = f" at {record.stopped_at}" if record.stopped_at else ""
        outcome = f"{record.outcome}{stopped} {record.node or record.nominated}".strip()
        table.add_row(
            str(record.attempt),
            _moment(record.time),
            plain(record.woken_by),
            f"{record.feasible:,}/{record.nodes:,}",
            Text(plain(outcome)),
            f"{record.seconds * 1000:.2f} ms",
        )
    return _below(table)


def _list(title: str, lines: Sequence[str]) -> RenderableType:
    table = simple_table(title)
    for line in lines:
        table.add_row(Text(plain(line)))
    return _below(table)


def simple_table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _below(table: Table) -> RenderableType:
    return Padding(table, (1, 2, 0, 2), expand=False)


def _indent(text: Text) -> RenderableType:
    return Padding(text, (0, 2), expand=False)


def _sample(names: Sequence[str], *, most: int = 3) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _shortened(name: str) -> str:
    """A long name without its middle; what tells nodes apart is usually at one of the ends."""
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
