"""The page of a comparison: what matters by variant, curves over time, heat maps, and where decisions parted."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

from bayplan.sim.compare import Choice, Divergence
from bayplan.sim.experiment import RunOutcome
from bayplan.sim.report.svg import Line, Plot, heat_map, line_plot, time_label

__all__ = ["SHOWN_MEASURES", "STYLE", "comparison_page", "comparison_plots", "format_measure", "measures_of", "page"]

SHOWN_MEASURES = {
    "pods.arrived": "pods that came",
    "pods.bound": "pods that got a node",
    "pods.pending": "pods waiting at the end",
    "pods.withdrawn": "pods withdrawn",
    "wait.p50": "wait, median (s)",
    "wait.p99": "wait, 99 % (s)",
    "wait.max": "wait, longest (s)",
    "pending.mean": "pods waiting, mean",
    "preemptions": "preemptions",
    "evictions": "pods evicted by them",
    "imbalance": "imbalance of cpu",
    "nodes.empty": "empty nodes, mean",
    "cost": "cost",
}
"""Measure to its words; those of resources follow them."""

_STYLE = """
:root{--ink:#1c2430;--soft:#667085;--paper:#fff;--grid:#e4e7ec;--heat:#c2410c}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--paper:#12161c;--grid:#2a313c;--heat:#fb923c}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:70rem;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse}td,th{padding:.25rem .75rem;text-align:right;border-bottom:1px solid var(--grid)}
td:first-child,th:first-child{text-align:left}.wide{overflow-x:auto}.wide td{white-space:nowrap}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(28rem,100%),1fr));gap:1rem}
figure{margin:0}figcaption{color:var(--soft)}svg{width:100%;height:auto}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
.grid{stroke:var(--grid)}.dot{stroke:none;fill-opacity:.55}.mean{stroke:var(--ink);stroke-width:2}.line{fill:none;stroke-width:1.8}.heat{fill:var(--heat)}
.better{color:#15803d}.worse{color:#b91c1c}.key{display:inline-block;width:.8em;height:.8em;margin-right:.4em}
"""
_MOST_REASONS = 6
_COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#d97706", "#0891b2", "#be185d", "#4b5563")
_RULES = [
    f".v{index}{{stroke:{colour}}}.d{index}{{fill:{colour}}}.k{index}{{background:{colour}}}"
    for index, colour in enumerate(_COLOURS)
]
# The first curve is seen beneath others that coincide with it.
STYLE = f"{_STYLE}{''.join(_RULES)}path.v0{{stroke-width:3.2;stroke-opacity:.65}}"
"""What plots need, inside the page or without it."""


def comparison_page(outcomes: Sequence[RunOutcome], divergences: Sequence[Divergence], *, title: str) -> str:
    """The whole page, with no reference to anything outside it."""
    body = [f"<h1>{escape(title)}</h1>", _legend(outcomes), _table(outcomes)]
    for heading, plots in comparison_plots(outcomes).items():
        figures = "".join(plot.figure for plot in plots)
        body.append(f'<h2>{escape(heading)}</h2><div class="plots">{figures}</div>')
    body += [_divergence(each) for each in divergences]
    body.append(_reasons(outcomes))
    return page(title, "".join(body))


def page(title: str, body: str) -> str:
    """A document with the style of plots and tables."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def comparison_plots(outcomes: Sequence[RunOutcome]) -> dict[str, list[Plot]]:
    """The plots of the page by heading."""
    found = {
        "Over time": _curves(outcomes),
        "What pods wait for": _waiting_by_reason(outcomes),
        "Nodes": _heat_maps(outcomes),
        "Divergence": _parting(outcomes),
    }
    return {heading: plots for heading, plots in found.items() if plots}


class Measured(Protocol):
    """What has measures."""

    @property
    def measures(self) -> dict[str, float]: ...


def measures_of(outcomes: Sequence[Measured]) -> dict[str, str]:
    """The measures worth a row, with their words, of all outcomes."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.measures)
    found = {name: words for name, words in SHOWN_MEASURES.items() if _matters(name, outcomes)}
    for name in names:
        for part, words in (("allocated.", "allocated"), ("stranded.", "free but stranded")):
            if name.startswith(part) and _matters(name, outcomes):
                resource = name.removeprefix(part)
                when = "at the end" if resource.endswith(".end") else "mean"
                found[name] = f"{resource.removesuffix('.end')} {words}, {when} (%)"
        if name.startswith("pending.by.") and _matters(name, outcomes):
            found[name] = f"waiting, refused by {name.removeprefix('pending.by.')}, mean"
        if name.startswith("plugin.") and _matters(name, outcomes):
            when = "at the end" if name.endswith(".end") else "mean"
            found[name] = f"{name.removeprefix('plugin.').removesuffix('.end')}, {when}"
    return found


def _matters(name: str, outcomes: Sequence[Measured]) -> bool:
    return any(outcome.measures.get(name) for outcome in outcomes)


def format_measure(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name.startswith(("allocated.", "stranded.")):
        return f"{100.0 * value:.2f}"
    if value == round(value) or abs(value) >= 100.0:
        return f"{value:,.0f}"
    return f"{value:,.3g}" if abs(value) >= 0.001 else "< 0.001"


def _legend(outcomes: Sequence[RunOutcome]) -> str:
    items = [
        f'<span class="key k{index % 8}"></span>{escape(outcome.variant)}&emsp;'
        for index, outcome in enumerate(outcomes)
    ]
    seconds = max(outcome.seconds for outcome in outcomes)
    return f"<p>{''.join(items)}<br>{time_label(seconds)} simulated, seed {outcomes[0].seed}</p>"


def _table(outcomes: Sequence[RunOutcome]) -> str:
    head = "".join(f"<th>{escape(outcome.variant)}</th>" for outcome in outcomes)
    rows = []
    for name, words in measures_of(outcomes).items():
        cells = "".join(f"<td>{escape(format_measure(name, outcome.measures.get(name)))}</td>" for outcome in outcomes)
        rows.append(f'<tr title="{escape(name)}"><td>{escape(words)}</td>{cells}</tr>')
    return f"<h2>What matters</h2><table><tr><th></th>{head}</tr>{''.join(rows)}</table>"


def _curves(outcomes: Sequence[RunOutcome]) -> list[Plot]:
    resources = dict.fromkeys(name for outcome in outcomes for sample in outcome.samples for name in sample.allocated)
    plots = []
    for resource in resources:
        lines = [
            Line(o.variant, index, [(s.time, 100.0 * s.allocated.get(resource, 0.0)) for s in o.samples])
            for index, o in enumerate(outcomes)
        ]
        if any(value for line in lines for _, value in line.points):
            title = f"{resource} allocated (%)"
            plots.append(line_plot(lines, title=title, y_label=_number, top=100.0))
    plots += [_over_demand(outcomes, resource) for resource in resources if _is_filling(outcomes, resource)]
    waiting = [Line(o.variant, i, [(s.time, s.pending) for s in o.samples]) for i, o in enumerate(outcomes)]
    plots.append(line_plot(waiting, title="pods waiting", y_label=_number))
    empty = [Line(o.variant, i, [(s.time, s.empty_nodes) for s in o.samples]) for i, o in enumerate(outcomes)]
    plots.append(line_plot(empty, title="empty nodes", y_label=_number))
    return plots


def _is_filling(outcomes: Sequence[RunOutcome], resource: str) -> bool:
    """Whether pods only come, so that what they asked for so far is the demand."""
    return all(
        not outcome.measures.get("pods.finished")
        and outcome.samples
        and 0.5 < outcome.samples[-1].demand.get(resource, 0.0) < 3.0
        for outcome in outcomes
    )


def _over_demand(outcomes: Sequence[RunOutcome], resource: str) -> Plot:
    lines = [
        Line(o.variant, i, [(100.0 * s.demand.get(resource, 0.0), 100.0 * s.allocated[resource]) for s in o.samples])
        for i, o in enumerate(outcomes)
    ]
    title = f"{resource} allocated (%) over what pods asked for so far (%)"
    return line_plot(lines, title=title, y_label=_number, x_label=_number, top=100.0)


def _waiting_by_reason(outcomes: Sequence[RunOutcome]) -> list[Plot]:
    """A plot for each plugin, or plugins, that refused pods."""
    names = sorted(dict.fromkeys(name for o in outcomes for sample in o.samples for name in sample.pending_by))
    plots = []
    for name in names[:_MOST_REASONS]:
        lines = [
            Line(o.variant, i, [(s.time, s.pending_by.get(name, 0)) for s in o.samples]) for i, o in enumerate(outcomes)
        ]
        plots.append(line_plot(lines, title=f"pods waiting, refused by {name}", y_label=_number))
    return plots


def _heat_maps(outcomes: Sequence[RunOutcome]) -> list[Plot]:
    plots = []
    for outcome in outcomes:
        samples = outcome.samples[:: max(len(outcome.samples) // 80, 1)]
        if samples and samples[-1].time:
            title = f"{outcome.variant}: cpu in use by node, the fullest on top"
            columns = [sample.node_use for sample in samples]
            plots.append(heat_map(columns, samples[-1].time, title=title))
    return plots


def _parting(outcomes: Sequence[RunOutcome]) -> list[Plot]:
    """How many pods were placed otherwise than by the first policy, over time."""
    first, *others = outcomes
    places = {line.pod: line.node for line in first.decisions if line.node}
    lines = []
    for index, outcome in enumerate(others, start=1):
        points, differ = [(0.0, 0.0)], 0
        for line in outcome.decisions:
            if line.node and line.node != places.get(line.pod):
                differ += 1
                points.append((line.time, float(differ)))
        step = max(len(points) // 400, 1)
        lines.append(Line(outcome.variant, index, [*points[::step], (outcome.seconds, float(differ))]))
    if not any(line.points[-1][1] for line in lines):
        return []
    return [line_plot(lines, title=f"pods on another node than by {first.variant}, so far", y_label=_number)]


def _divergence(found: Divergence) -> str:
    first, second = found.choices
    parts = [
        f"<h2>Where {escape(second.variant)} parts from {escape(first.variant)}</h2>",
        f"<p>After {found.number:,} equal decisions, {time_label(first.line.time)} from the start.</p>",
    ]
    return "".join([*parts, *(_choice(each) for each in found.choices)])


def _choice(choice: Choice) -> str:
    line = choice.line
    said = f"to {line.node}" if line.node else f"no node: {line.message}"
    fits = f" ({choice.feasible} nodes fit, {choice.ties} best)" if line.node else ""
    text = f"<p><b>{escape(choice.variant)}</b>: {escape(line.pod)} {escape(said)}{fits}</p>"
    if not choice.nodes:
        return text
    plugins = list(dict.fromkeys(name for _, _, points in choice.nodes for name, share in points.items() if share))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("node", "total", *plugins))
    rows = [
        "<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in (n, t, *(p.get(x, 0) for x in plugins))) + "</tr>"
        for n, t, p in choice.nodes
    ]
    return f'{text}<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _reasons(outcomes: Sequence[RunOutcome]) -> str:
    parts = []
    for outcome in outcomes:
        rows = [f"<tr><td>{escape(why)}</td><td>{count}</td></tr>" for why, count in list(outcome.reasons.items())[:10]]
        if rows:
            parts.append(f"<h2>Why pods wait at the end: {escape(outcome.variant)}</h2><table>{''.join(rows)}</table>")
    return "".join(parts)


def _number(value: float) -> str:
    return f"{value:,.10g}"
