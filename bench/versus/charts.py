"""Plots as SVG, made by hand so that nothing has to be installed. They follow the reader's light or dark scheme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_STYLE = """
text{font-family:system-ui,sans-serif;font-size:12px;fill:#24292f}
.small{font-size:11px;fill:#57606a}.title{font-size:14px;font-weight:600}
.axis{stroke:#8c959f;fill:none}.grid{stroke:#d0d7de;stroke-width:.6}.line{fill:none;stroke-width:1.8}
rect.kube-scheduler{fill:#8c959f}rect.bayplan{fill:#0969da}.raw{stroke:#cf222e;stroke-width:2}
.line.kube-scheduler{stroke:#8c959f}.line.bayplan{stroke:#0969da}.line.created{stroke:#bf8700;stroke-dasharray:4 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9da7b3}.axis{stroke:#6e7681}.grid{stroke:#30363d}
rect.kube-scheduler{fill:#6e7681}rect.bayplan{fill:#4493f8}.raw{stroke:#f85149}
.line.kube-scheduler{stroke:#9da7b3}.line.bayplan{stroke:#4493f8}.line.created{stroke:#d29922}}
"""
_PALETTE = ("#0969da", "#1a7f37", "#bf8700", "#cf222e", "#8250df", "#0a7ea4", "#8c959f", "#bc4c00")
_STEPS = 5
Series = tuple[str, str, list[tuple[float, float]]]
"""(class or colour, label, points)."""


def bars(rows: Sequence[tuple[str, dict[str, float], float]], title: str) -> str:
    """(workload, pods a second by scheduler, raw rate): two bars a workload, the raw rate as a tick."""
    left, right, top, each = 168, 72, 56, 42
    width, height = 760, top + each * len(rows) + 34
    most = max((max([*values.values(), raw]) for _, values, raw in rows), default=1.0) or 1.0
    across = (width - left - right) / most
    body = [_text(12, 22, title, "title"), *_legend(["kube-scheduler", "bayplan"], 12, 40)]
    body.append(f'<path class="raw" d="M252,30 V42"/>{_text(260, 40, "raw binding rate of the API server", "small")}')
    for place, (name, values, raw) in enumerate(rows):
        y = top + each * place
        body.append(_text(left - 8, y + 22, name, anchor="end"))
        for line, scheduler in enumerate(("kube-scheduler", "bayplan")):
            value = values.get(scheduler, 0.0)
            body.append(_bar(scheduler, left, y + 4 + 15 * line, across * value))
            label = f"{value:,.0f}" if value else "not measured"
            body.append(_text(max(_after(value, raw) * across, 0) + left + 5, y + 15 + 15 * line, label, "small"))
        if raw:
            body.append(f'<path class="raw" d="M{left + across * raw:.1f},{y + 2} v30"/>')
    body.append(_text(left, height - 12, "pods bound a second, from the first to the last binding", "small"))
    return _svg(width, height, title, body)


def _after(value: float, raw: float) -> float:
    """Where a label may begin without the tick of the raw rate going through it."""
    return max(value, raw) if value <= raw < value * 1.25 else value


def _bar(name: str, x: float, y: float, length: float) -> str:
    return f'<rect class="{name}" x="{x}" y="{y}" width="{max(length, 0.5):.1f}" height="13" rx="2"/>'


def over_time(series: Sequence[Series], title: str) -> str:
    """Created and scheduled pods over the seconds."""
    return _lines(series, title, across="seconds", up="pods")


def against_nodes(series: Sequence[Series], title: str, up: str = "µs a decision") -> str:
    """Cost against nodes, both axes from zero, so that straight through the origin means proportional."""
    return _lines(series, title, across="nodes", up=up)


def _lines(series: Sequence[Series], title: str, *, across: str, up: str) -> str:
    width, height, left, top, bottom, right = 760, 380, 64, 54, 44, 210
    step_x = tidy_step(max((x for _, _, points in series for x, _ in points), default=1.0))
    step_y = tidy_step(max((y for _, _, points in series for _, y in points), default=1.0))
    scale_x, scale_y = (width - left - right) / (_STEPS * step_x), (height - top - bottom) / (_STEPS * step_y)
    body = [_text(12, 22, title, "title")]
    for step in range(_STEPS + 1):
        x, y = left + scale_x * step_x * step, height - bottom - scale_y * step_y * step
        body.append(f'<path class="grid" d="M{left},{y:.1f} H{width - right}"/>')
        body.append(_text(left - 6, y + 4, _number(step_y * step), "small", anchor="end"))
        body.append(_text(x, height - bottom + 16, _number(step_x * step), "small", anchor="middle"))
    body.append(f'<path class="axis" d="M{left},{top} V{height - bottom} H{width - right}"/>')
    body.append(_text((left + width - right) / 2, height - 10, across, "small", anchor="middle"))
    body.append(_text(left, top - 6, up, "small", anchor="end"))
    labels: dict[str, str] = {}
    for look, label, points in series:
        path = " ".join(f"{left + scale_x * x:.1f},{height - bottom - scale_y * y:.1f}" for x, y in points)
        body.append(f'<polyline {_look(look)} points="{path}"/>')
        labels.setdefault(label, look)
    for number, (label, look) in enumerate(labels.items()):
        y = top + 8 + 18 * number
        body.append(f'<polyline {_look(look)} points="{width - right + 14},{y} {width - right + 34},{y}"/>')
        body.append(_text(width - right + 40, y + 4, label, "small"))
    return _svg(width, height, title, body)


def tidy_step(most: float) -> float:
    """A round number of which five reach as far as `most`."""
    least = max(most, 1e-9) / _STEPS
    power = 10.0 ** math.floor(math.log10(least))
    return next(each * power for each in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if each * power >= least * 0.999)


def colour(number: int) -> str:
    return _PALETTE[number % len(_PALETTE)]


def _look(look: str) -> str:
    return f'class="line" stroke="{look}"' if look.startswith("#") else f'class="line {look}"'


def _legend(names: Sequence[str], x: float, y: float) -> list[str]:
    found = []
    for number, name in enumerate(names):
        at = x + 120 * number
        found.append(f'<rect class="{name}" x="{at}" y="{y - 10}" width="12" height="12" rx="2"/>')
        found.append(_text(at + 17, y, name, "small"))
    return found


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _text(x: float, y: float, text: str, look: str = "", *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{look}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: int, height: int, title: str, body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>{escape(title)}</title><style>{_STYLE}</style>\n{chr(10).join(body)}\n</svg>\n'
    )
