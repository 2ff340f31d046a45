"""The table of an outcome: for every node what kept the pod off it, or what each plugin gave it."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.testing.outcome import Outcome

__all__ = ["verdict_of", "verdict_table"]

_MOST_NODES = 30


def verdict_of(outcome: Outcome) -> str:
    """The outcome in one sentence."""
    pod = f"pod `{outcome.pod.key}`"
    if outcome.is_scheduled:
        ties = f" (one of {len(outcome.best)} that tie)" if len(outcome.best) > 1 else ""
        held = f", held at Permit by {', '.join(outcome.waits_for)}" if outcome.waits_for else ""
        return f"{pod} goes to `{outcome.node_name}`{ties}{held}"
    if outcome.failure is not None:
        return f"{pod} was not decided on: {outcome.message}"
    room = f"; preemption makes room on `{outcome.nominated_node}`" if outcome.nominated_node else ""
    return f"{pod} stays pending: {outcome.message}{room}"


def verdict_table(outcome: Outcome) -> str:
    """The sentence, then a line a node: feasible ones by total, rejected ones with plugin and reasons."""
    plugins = list(dict.fromkeys(plugin for scores in outcome.scores.values() for plugin in scores))
    lines: list[Sequence[str]] = []
    if outcome.totals:
        heads = [f"{plugin} ×{outcome.weights.get(plugin, 1)}" for plugin in plugins]
        lines.append(["node", "total", *heads])
    for name, total in sorted(outcome.totals.items(), key=lambda item: (-item[1], item[0])):
        scores = outcome.scores.get(name, {})
        mark = "→ " if name == outcome.node_name else "  "
        lines.append([f"{mark}{name}", str(total), *(str(scores.get(plugin, "-")) for plugin in plugins)])
    for name, status in sorted(outcome.rejections.items()):
        who = f"{status.plugin}: " if status.plugin else ""
        lines.append([f"× {name}", f"{who}{status.message} ({status.code.label})"])
    return "\n".join([verdict_of(outcome), *_aligned(lines)])


def _aligned(lines: list[Sequence[str]]) -> list[str]:
    """Columns of equal width; the last cell of a line is not padded and does not widen its column."""
    shown = lines[: _MOST_NODES + 1]
    widths: dict[int, int] = {}
    for line in shown:
        for place, cell in enumerate(line[:-1]):
            widths[place] = max(widths.get(place, 0), len(cell))
    text = [
        "  " + "  ".join([*(cell.ljust(widths[place]) for place, cell in enumerate(line[:-1])), line[-1]])
        for line in shown
    ]
    left = len(lines) - len(shown)
    return [*text, f"  and {left} more"] if left else text
