"""The curves of a run beside the published ones, as an SVG file that needs nothing else."""

from __future__ import annotations

from html import escape

from bench.openb.runs import Curve

__all__ = ["curves_svg"]

_COLOURS = ("#4b5563", "#2563eb", "#0891b2", "#9333ea", "#d97706", "#16a34a")
_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 150, 34, 44
_FIRST, _LAST = 80, 130
"""Percent of demand: below, every policy allocates what is asked for."""
_LOWEST, _HIGHEST = 78, 98
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#475467}line{stroke:#e4e7ec}path{fill:none;stroke-width:2}"
    "rect{fill:#fff}.name{font-weight:600}"
)


def curves_svg(curves: dict[str, Curve], published: dict[str, Curve]) -> str:
    """A line for each policy, and a dot for each published mean."""
    parts = [f"<style>{_STYLE}</style>", f'<rect width="{_WIDTH}" height="{_HEIGHT}"/>', *_axes()]
    ends = sorted(curves, key=lambda policy: -curves[policy][_LAST])
    heights = _spread([_y(curves[policy][_LAST]) for policy in ends])
    labels = dict(zip(ends, heights, strict=True))
    for place, (policy, curve) in enumerate(curves.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        steps = [percent for percent in curve if _FIRST <= percent <= _LAST]
        path = " ".join(f"{'L' if i else 'M'}{_x(p):.1f},{_y(curve[p]):.1f}" for i, p in enumerate(steps))
        parts.append(f'<path d="{path}" stroke="{colour}"/>')
        parts += [
            f'<circle cx="{_x(p):.1f}" cy="{_y(published[policy][p]):.1f}" r="4" fill="{colour}" fill-opacity=".5"/>'
            for p in steps
        ]
        said = f"{escape(policy)} {curve[_LAST]:.2f}"
        x, y = _WIDTH - _RIGHT + 10, labels[policy] + 4
        parts.append(f'<text class="name" x="{x}" y="{y:.1f}" style="fill:{colour}">{said}</text>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(parts)}</svg>\n'


def _axes() -> list[str]:
    parts = [f'<text x="{_LEFT}" y="18">GPUs allocated (%): lines are this scheduler, dots the published means</text>']
    for value in range(_LOWEST + 2, _HIGHEST + 1, 4):
        y = _y(value)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    parts += [
        f'<text x="{_x(percent):.1f}" y="{_HEIGHT - 24}" text-anchor="middle">{percent}</text>'
        for percent in range(_FIRST, _LAST + 1, 10)
    ]
    middle = _x((_FIRST + _LAST) / 2)
    return [*parts, f'<text x="{middle:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">GPUs asked for (%)</text>']


def _spread(heights: list[float]) -> list[float]:
    """The same from the top down, far enough apart to be read."""
    found: list[float] = []
    for height in heights:
        found.append(max(height, found[-1] + 15.0) if found else height)
    return found


def _x(percent: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (percent - _FIRST) / (_LAST - _FIRST)


def _y(value: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (_HIGHEST - value) / (_HIGHEST - _LOWEST)
