"""What a benchmark found: a table for people, JSON for programs, plots as SVG."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.versus.measure import Run
from bench.versus.workload import Workload

_COLOURS = {"kube-scheduler": "#888888", "bayplan": "#1f6feb"}


def medians(runs: Iterable[Run]) -> dict[str, float]:
    runs = list(runs)
    fields = ("pods_per_second", "p50_ms", "p99_ms", "cpu_seconds_per_1000", "peak_mib", "decision_ms")
    return {name: statistics.median(getattr(run, name) for run in runs) for name in fields}


def markdown(runs: list[Run], workloads: list[Workload], raw: float, about: str) -> str:
    lines = [
        "# Side by side with kube-scheduler",
        "",
        about,
        "",
        f"Raw binding rate of the same API server, 48 requests in flight: **{raw:.0f}/s**.",
        "",
        "| workload | mode | kube-scheduler pods/s | bayplan pods/s | ratio | target | of raw | decision ms (ks / bp) "
        "| CPU s per 1,000 pods (ks / bp) | peak MiB (ks / bp) | p99 ms (ks / bp) |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for workload in workloads:
        modes = dict.fromkeys(run.mode for run in runs if run.workload == workload.name)
        lines += [_row(workload, mode, runs, raw) for mode in modes]
    return "\n".join(lines) + "\n"


def _row(workload: Workload, mode: str, runs: list[Run], raw: float) -> str:
    here = [run for run in runs if run.workload == workload.name and run.mode == mode]
    ks = [run for run in here if run.scheduler == "kube-scheduler"]
    bp = [run for run in here if run.scheduler == "bayplan"]
    a, b = medians(ks) if ks else None, medians(bp) if bp else None
    ratio = b["pods_per_second"] / a["pods_per_second"] if a and b and a["pods_per_second"] else 0.0
    of_raw = b["pods_per_second"] / raw if b and raw else 0.0

    def pair(name: str, form: str) -> str:
        return f"{format(a[name], form) if a else '-'} / {format(b[name], form) if b else '-'}"

    cells = [
        workload.name,
        mode,
        f"{a['pods_per_second']:.0f}" if a else "-",
        f"{b['pods_per_second']:.0f}" if b else "-",
        f"{ratio:.1f}",
        f"{workload.ratio:g}",
        f"{of_raw:.0%}",
        pair("decision_ms", ".2f"),
        pair("cpu_seconds_per_1000", ".2f"),
        pair("peak_mib", ".0f"),
        pair("p99_ms", ".0f"),
    ]
    return f"| {' | '.join(cells)} |"


def save(folder: Path, runs: list[Run], workloads: list[Workload], raw: float, about: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "versus.md").write_text(markdown(runs, workloads, raw, about))
    document: dict[str, Any] = {"about": about, "rawBindingsPerSecond": raw, "runs": [run.as_json() for run in runs]}
    (folder / "versus.json").write_text(json.dumps(document, indent=1) + "\n")
    for workload in workloads:
        (folder / f"{workload.name}.svg").write_text(plot([run for run in runs if run.workload == workload.name]))


def plot(runs: list[Run]) -> str:
    """Bound pods over time, one line a run."""
    width, height, margin = 640, 360, 48
    longest = max((run.timeline[-1][0] for run in runs if run.timeline), default=1.0) or 1.0
    most = max((run.bound for run in runs), default=1) or 1
    body = []
    for run in runs:
        across, up = (width - 2 * margin) / longest, (height - 2 * margin) / most
        points = " ".join(f"{margin + across * t:.1f},{height - margin - up * n:.1f}" for t, n in run.timeline)
        colour = _COLOURS[run.scheduler]
        body.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
    for place, (name, colour) in enumerate(_COLOURS.items()):
        body.append(f'<text x="{margin + 8}" y="{margin + 16 * place}" fill="{colour}">{name}</text>')
    axis = f"M{margin},{margin / 2} V{height - margin} H{width - margin / 2}"
    title = f"{runs[0].workload}: bound pods over seconds ({runs[0].nodes} nodes)" if runs else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12"><title>{title}</title><path d="{axis}" fill="none" stroke="#444"/>'
        f'<text x="{width / 2}" y="{height - 12}" text-anchor="middle">{title}</text>'
        f'<text x="{width - margin}" y="{height - margin + 16}">{longest:.1f} s</text>'
        f'<text x="4" y="{margin}">{most}</text>{"".join(body)}</svg>\n'
    )
