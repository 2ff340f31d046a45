"""What-ifs on a terminal: what was placed, what stays pending and why, who had to leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from bayplan.explain.claims.phrases import template_of
from bayplan.explain.model import Placement, WhatIf
from bayplan.explain.terminal.tables import below, indent, plain, simple_table

__all__ = ["draw_whatif"]

_MOST_NODES = 12


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
        yield below(table)
    if answer.evicted:
        evicted = simple_table("evicted", "from", "for")
        for gone in answer.evicted[:most]:
            evicted.add_row(Text(plain(gone.pod)), Text(plain(gone.node)), Text(plain(gone.by)))
        if len(answer.evicted) > most:
            evicted.add_row(f"and {len(answer.evicted) - most:,} more", "", "")
        yield below(evicted)
    if answer.note:
        yield indent(Text(plain(answer.note), style="dim"))


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
    named = [f"{node} ({count})" if count > 1 else node for node, count in counts[:_MOST_NODES]]
    return ", ".join(named) + (f", … {len(counts):,} nodes in all" if len(counts) > _MOST_NODES else "")
