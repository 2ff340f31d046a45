"""`bayplan sweep`: policies by seeds by workloads, on all cores or on a Dask cluster, resumable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bayplan.cli.options import named_path, option
from bayplan.cli.output import Format, note, print_value, progress, result_console
from bayplan.cli.simulation_inputs import (
    Cluster,
    Config,
    Context,
    Demand,
    FailIf,
    Html,
    Kubeconfig,
    NoRetry,
    Output,
    Plugins,
    Processes,
    Until,
    Variants,
    check_policies,
    read_variants,
    require_cluster,
    run_plan,
    writable,
)

if TYPE_CHECKING:
    from bayplan.sim.compare import Condition
    from bayplan.sim.sweep import CellResult

__all__ = ["sweep"]

EXAMPLES = """\
{program} sweep workload.yaml --cluster cluster.yaml --variant packed=packed.yaml --seeds 10
{program} sweep monday.yaml tuesday.yaml --cluster dump.yaml --seeds 1-20 --results week --html week.html
{program} sweep pods.csv --cluster nodes.csv --demand 130 --no-retry --seeds 42-51 --dask tcp://10.0.0.5:8786
"""
CONDITION_HOLDS = 1


def sweep(
    workloads: list[str],
    /,
    *,
    cluster: Cluster = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    plugin: Plugins = None,
    variant: Variants = None,
    seeds: Annotated[str, option("--seeds", metavar="SEEDS", about="10 (0 to 9), 3-7 or 1,5,9 (10)")] = "10",
    until: Until = None,
    demand: Demand = None,
    no_retry: NoRetry = False,
    results: Annotated[
        str, option("--results", metavar="FOLDER", about="a file for each result (sweep-results)")
    ] = "sweep-results",
    processes: Processes = None,
    dask: Annotated[
        str | None, option("--dask", metavar="ADDRESS", about="run on this Dask cluster (bayplan[dask])")
    ] = None,
    fail_if: FailIf = None,
    html: Html = None,
    output: Output = None,
) -> int:
    """Simulate every policy by every seed on every workload, and say what each measure is on average.

    Results are kept in a folder: a sweep that was interrupted goes on where it stopped, and a result is computed again
    if one of its inputs has changed. They are the same wherever they are computed. Conditions are about the means.
    Exit status: 0 done, 1 a condition of --fail-if holds, 2 bad input.
    """
    from bayplan.cli.stderr_log import log_to_stderr
    from bayplan.sim.compare import parse_condition
    from bayplan.sim.report.files import write_whole
    from bayplan.sim.report.sweep_page import sweep_page
    from bayplan.sim.sweep import Sweep, means, parse_seeds, run_sweep

    log_to_stderr()
    conditions = [(text, parse_condition(text)) for text in fail_if or ()]
    require_cluster(cluster, kubeconfig, context, purpose="run on")
    shared = run_plan(
        workloads[0],
        cluster=cluster,
        kubeconfig=kubeconfig,
        context=context,
        until=until,
        demand=demand,
        no_retry=no_retry,
    )
    plans = [replace(shared, workload=Path(name)) for name in workloads]
    for plan in plans:
        plan.check()
    variants = read_variants(config, plugin or (), variant or ())
    check_policies(variants)
    asked = Sweep(
        plans=plans,
        variants=variants,
        seeds=parse_seeds(seeds),
        folder=named_path(results),
    )
    files, known = writable(html=html), 0
    with progress("sweeping", total=len(plans) * len(asked.variants) * len(asked.seeds)) as state:

        def done(_: CellResult, was_there: bool) -> None:
            nonlocal known
            known += was_there
            state.step()

        found = run_sweep(asked, processes=processes, dask=dask, done=done)
    if known:
        note(f"{known} of {len(found)} results were in {results} already")
    summary = means(found)
    _print(found, summary, output or "table")
    if "html" in files:
        write_whole(files["html"], sweep_page(found, title=f"{', '.join(workloads)} swept").encode())
    held = _conditions_that_hold(summary, asked.variants[0].name, conditions)
    for line in held:
        note(line)
    return CONDITION_HOLDS if held else 0


Means = dict[tuple[str, str], dict[str, tuple[float, float]]]


def _conditions_that_hold(summary: Means, first: str, conditions: Sequence[tuple[str, Condition]]) -> list[str]:
    found = []
    for (workload, name), measures in summary.items():
        own = {measure: mean for measure, (mean, _) in measures.items()}
        base = {measure: mean for measure, (mean, _) in summary[workload, first].items()}
        found += [
            f"condition `{text}` holds for {name} on {workload}" for text, holds in conditions if holds(own, base)
        ]
    return found


def _print(found: Sequence[CellResult], summary: Means, form: Format) -> None:
    import msgspec

    if form != "table":
        said = [
            {
                "workload": workload,
                "variant": name,
                "measures": {measure: {"mean": mean, "sd": sd} for measure, (mean, sd) in measures.items()},
            }
            for (workload, name), measures in summary.items()
        ]
        print_value({"results": msgspec.to_builtins(found), "means": said}, form)
        return
    from rich.table import Table

    from bayplan.sim.report.page import measures_of
    from bayplan.sim.report.sweep_page import format_mean

    console = result_console()
    for workload in dict.fromkeys(place[0] for place in summary):
        own = {name: measures for (each, name), measures in summary.items() if each == workload}
        count = sum(1 for each in found if each.workload == workload) // len(own)
        table = Table(f"{workload}, {count} seeds", *own, box=None, pad_edge=False)
        for column in table.columns[1:]:
            column.justify = "right"
        for measure, words in measures_of([each for each in found if each.workload == workload]).items():
            table.add_row(words, *(format_mean(measure, measures.get(measure)) for measures in own.values()))
        console.print(table)
