"""The page of a sweep: means over the seeds by variant, and what each seed came to."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bayplan.sim.report.page import format_measure, measures_of, page
from bayplan.sim.report.svg import Plot, dot_plot
from bayplan.sim.sweep import CellResult, means

__all__ = ["format_mean", "sweep_page"]


def sweep_page(results: Sequence[CellResult], *, title: str) -> str:
    """The whole page, with no reference to anything outside it."""
    workloads = dict.fromkeys(result.workload for result in results)
    parts = [_of_workload(each, [result for result in results if result.workload == each]) for each in workloads]
    return page(title, "".join([f"<h1>{escape(title)}</h1>", *parts]))


def _of_workload(workload: str, results: Sequence[CellResult]) -> str:
    variants = list(dict.fromkeys(result.variant for result in results))
    seeds = list(dict.fromkeys(result.seed for result in results))
    summary = means(results)
    head = "".join(f"<th>{escape(name)}</th>" for name in variants)
    rows, plots = [], list[Plot]()
    for measure, words in measures_of(results).items():
        means_of_variants = [format_mean(measure, summary[workload, name].get(measure)) for name in variants]
        cells = "".join(f"<td>{escape(mean)}</td>" for mean in means_of_variants)
        rows.append(f'<tr title="{escape(measure)}"><td>{escape(words)}</td>{cells}</tr>')
        values = [[_shown(measure, r) for r in results if r.variant == name] for name in variants]
        if len({value for each in values for value in each}) > 1:
            plots.append(dot_plot(list(zip(variants, values, strict=True)), title=words))
    table = f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"
    figures = "".join(plot.figure for plot in plots)
    said = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''} ({seeds[0]} to {seeds[-1]})" if seeds else ""
    parts = [f"<h2>{escape(workload)}</h2><p>Means and standard deviations over {said}.</p>", table]
    return "".join([*parts, f'<h2>Each seed of {escape(workload)}</h2><div class="plots">{figures}</div>'])


def _shown(measure: str, result: CellResult) -> float:
    """In the unit of the table: shares are percentages there."""
    value = result.measures.get(measure, 0.0)
    return 100.0 * value if measure.startswith(("allocated.", "stranded.")) else value


def format_mean(measure: str, value: tuple[float, float] | None) -> str:
    """A mean with its standard deviation."""
    if value is None:
        return "–"
    mean, deviation = value
    shown = format_measure(measure, mean)
    return f"{shown} ± {format_measure(measure, deviation)}" if deviation else shown
