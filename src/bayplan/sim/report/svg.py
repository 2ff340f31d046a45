"""Plots as SVG text: curves over time, and a heat map over time. Colours come from the style sheet of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

__all__ = ["Line", "Plot", "dot_plot", "heat_map", "line_plot", "ticks", "time_label"]

_WIDTH, _HEIGHT = 640.0, 260.0
_UNITS = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0))
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 12.0, 12.0, 34.0
_ROW, _NAMES, _MOST_LETTERS = 30.0, 130.0, 18
"""Of dot plots: the height of a row, and the width and letters of its name."""


class Line(NamedTuple):
    """A named curve; `colour` numbers its colour."""

    name: str
    colour: int
    points: Sequence[tuple[float, float]]


class Plot(NamedTuple):
    """A picture; its colours come from the style sheet of the page."""

    title: str
    svg: str

    @property
    def figure(self) -> str:
        return f"<figure><figcaption>{escape(self.title)}</figcaption>{self.svg}</figure>"


def line_plot(
    lines: Sequence[Line],
    *,
    title: str,
    y_label: Callable[[float], str],
    x_label: Callable[[float], str] | None = None,
    top: float | None = None,
) -> Plot:
    """Curves with axes and a grid, over time where `x_label` states nothing else.

    Steps are drawn as steps: values hold until the next sample.
    """
    last = max([point[0] for line in lines for point in line.points], default=0.0) or 1.0
    highest = top or max([point[1] for line in lines for point in line.points], default=0.0) or 1.0
    parts = [_grid(last, highest, y_label, x_label)]
    for line in lines:
        path = _steps(line.points, last, highest)
        parts.append(f'<path class="line v{line.colour % 8}" d="{path}"><title>{escape(line.name)}</title></path>')
    return _figure(title, "".join(parts))


def heat_map(columns: Sequence[Sequence[float]], last: float, *, title: str) -> Plot:
    """One column a sample, each with shares from 0 to 1 from the bottom up."""
    parts = [_grid(last, 1.0, None)]
    width = (_WIDTH - _LEFT - _RIGHT) / max(len(columns), 1)
    for place, values in enumerate(columns):
        height = (_HEIGHT - _TOP - _BOTTOM) / max(len(values), 1)
        for step, value in enumerate(values):
            x, y = _LEFT + place * width, _HEIGHT - _BOTTOM - (step + 1) * height
            shade = min(max(value, 0.0), 1.0)
            parts.append(
                f'<rect class="heat" x="{x:.1f}" y="{y:.1f}" width="{width + 0.3:.1f}" height="{height + 0.3:.1f}"'
                f' fill-opacity="{shade:.2f}"/>'
            )
    return _figure(title, "".join(parts))


def dot_plot(rows: Sequence[tuple[str, Sequence[float]]], *, title: str) -> Plot:
    """A row for each name with a dot for each of its values, and a mark at their mean."""
    height = _TOP + _BOTTOM + _ROW * len(rows)
    highest = max([value for _, values in rows for value in values], default=0.0) or 1.0
    parts = []
    for number in ticks(highest):
        x = _x_of_dot(number, highest)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - _BOTTOM:.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 12:.1f}" text-anchor="middle">{number:,.10g}</text>')
    for place, (name, values) in enumerate(rows):
        y = _TOP + _ROW * (place + 0.5)
        parts.append(f'<text x="{_NAMES - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(name[:_MOST_LETTERS])}</text>')
        parts += [
            f'<circle class="dot d{place % 8}" cx="{_x_of_dot(value, highest):.1f}" cy="{y:.1f}" r="4"/>'
            for value in values
        ]
        if values:
            x = _x_of_dot(math.fsum(values) / len(values), highest)
            parts.append(f'<line class="mean" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 9:.1f}" y2="{y + 9:.1f}"/>')
    return _figure(title, "".join(parts), height)


def _x_of_dot(value: float, highest: float) -> float:
    return _NAMES + (_WIDTH - _NAMES - 2.0 * _RIGHT) * max(value, 0.0) / highest


def _figure(title: str, inside: str, height: float = _HEIGHT) -> Plot:
    box = f"0 0 {_WIDTH:g} {height:g}"
    return Plot(title, f'<svg viewBox="{box}" role="img" aria-label="{escape(title)}">{inside}</svg>')


def _grid(
    last: float,
    highest: float,
    y_label: Callable[[float], str] | None,
    x_label: Callable[[float], str] | None = None,
) -> str:
    parts = []
    for value in ticks(highest) if y_label is not None else ():
        y = _y(value, highest)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if y_label is not None:
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(y_label(value))}</text>')
    unit = 1.0 if x_label is not None else next((length for _, length in _UNITS if last >= 2.0 * length), 1.0)
    for number in ticks(last / unit):
        x = _x(number * unit, last)
        label = escape(x_label(number)) if x_label is not None else time_label(number * unit)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 12}" text-anchor="middle">{label}</text>')
    return "".join(parts)


def _steps(points: Sequence[tuple[float, float]], last: float, highest: float) -> str:
    path, before = [], 0.0
    for place, (x, y) in enumerate(points):
        if place:
            path.append(f"L{_x(x, last):.1f},{_y(before, highest):.1f}")
        path.append(f"{'L' if place else 'M'}{_x(x, last):.1f},{_y(y, highest):.1f}")
        before = y
    return "".join(path)


def _x(value: float, last: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / last


def _y(value: float, highest: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(value / highest, 1.0)


def ticks(highest: float) -> list[float]:
    """Round numbers from 0 up to the highest, five or so."""
    if highest <= 0.0:
        return [0.0]
    step = 10.0 ** math.floor(math.log10(highest))
    for share in (0.1, 0.2, 0.25, 0.5, 1.0):
        if highest / (step * share) <= 6.0:
            step *= share
            break
    return [round(number * step, 10) for number in range(int(highest / step + 1e-9) + 1)]


def time_label(seconds: float) -> str:
    """A time on an axis, in the largest unit that fits."""
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
