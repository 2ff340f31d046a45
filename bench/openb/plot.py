"""The curves of runs beside the published ones, as an SVG file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import NamedTuple

from bench.openb.runs import Curve

__all__ = ["Panel", "panels_svg"]

_COLOURS = ("#4b5563", "#2563eb", "#0891b2", "#9333ea", "#d97706", "#16a34a")
_WIDTH, _HEIGHT = 772, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 162, 50, 44
_FIRST, _LAST = 80, 130
"""Percent of demand: below, every policy allocates what is asked for."""
_STEP = 4
"""Points between two lines of the vertical axis."""
_LABEL_HEIGHT = 15.0
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#475467}line{stroke:#e4e7ec}path{fill:none;stroke-width:2}"
    "rect{fill:#fff}.name{font-weight:600}"
)


class Panel(NamedTuple):
    """What was measured on one trace, and what was published, by policy."""

    title: str
    curves: Mapping[str, Curve]
    published: Mapping[str, Curve]


def panels_svg(panels: list[Panel]) -> str:
    """A chart for each trace, two in a row: a line for each policy, and a dot for each published mean."""
    columns = min(len(panels), 2)
    width, height = columns * _WIDTH, math.ceil(len(panels) / columns) * _HEIGHT
    charts = [
        f'<g transform="translate({place % columns * _WIDTH},{place // columns * _HEIGHT})">{_Chart(panel).drawn()}</g>'
        for place, panel in enumerate(panels)
    ]
    inside = f'<style>{_STYLE}</style><rect width="{width}" height="{height}"/>{"".join(charts)}'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{inside}</svg>\n'


class _Chart:
    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        shown = [
            curve[percent]
            for curves in (panel.curves, panel.published)
            for curve in curves.values()
            for percent in _percents(curve)
        ]
        self._lowest = math.floor(min(shown) / _STEP) * _STEP
        self._highest = math.ceil(max(shown) / _STEP) * _STEP

    def drawn(self) -> str:
        return "".join([*self._axes(), *self._policies()])

    def _axes(self) -> list[str]:
        title = f"{self._panel.title}: GPUs allocated (%), lines are this scheduler, dots the published means"
        parts = [f'<text x="{_LEFT}" y="24">{escape(title)}</text>']
        for value in range(self._lowest, self._highest + 1, _STEP):
            y = self._y(value)
            parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
        parts += [
            f'<text x="{_x(percent):.1f}" y="{_HEIGHT - 24}" text-anchor="middle">{percent}</text>'
            for percent in range(_FIRST, _LAST + 1, 10)
        ]
        middle = _x((_FIRST + _LAST) / 2)
        return [*parts, f'<text x="{middle:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">GPUs asked for (%)</text>']

    def _policies(self) -> list[str]:
        curves, parts = self._panel.curves, list[str]()
        ends = sorted(curves, key=lambda policy: -curves[policy][_LAST])
        heights = _spread([self._y(curves[policy][_LAST]) for policy in ends])
        labels = dict(zip(ends, heights, strict=True))
        for place, (policy, curve) in enumerate(curves.items()):
            colour, steps = _COLOURS[place % len(_COLOURS)], _percents(curve)
            path = " ".join(f"{'L' if i else 'M'}{_x(p):.1f},{self._y(curve[p]):.1f}" for i, p in enumerate(steps))
            parts.append(f'<path d="{path}" stroke="{colour}"/>')
            wanted = self._panel.published[policy]
            parts += [
                f'<circle cx="{_x(p):.1f}" cy="{self._y(wanted[p]):.1f}" r="4" fill="{colour}" fill-opacity=".5"/>'
                for p in steps
            ]
            x, y = _WIDTH - _RIGHT + 10, labels[policy] + 4
            label = f"{escape(policy)} {curve[_LAST]:.2f}"
            parts.append(f'<text class="name" x="{x}" y="{y:.1f}" style="fill:{colour}">{label}</text>')
        return parts

    def _y(self, value: float) -> float:
        share = (self._highest - value) / (self._highest - self._lowest)
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * share


def _percents(curve: Curve) -> list[int]:
    return [percent for percent in curve if _FIRST <= percent <= _LAST]


def _spread(heights: list[float]) -> list[float]:
    """The same from the top down, far enough apart to be read."""
    found: list[float] = []
    for height in heights:
        found.append(max(height, found[-1] + _LABEL_HEIGHT) if found else height)
    return found


def _x(percent: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (percent - _FIRST) / (_LAST - _FIRST)
