"""`bayplan simulate`: a workload on a cluster, on a virtual clock, by one policy or several side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bayplan.cli.options import option
from bayplan.cli.output import CommandError, Format, note, print_value, progress, result_console
from bayplan.cli.recordings import print_divergence, replay_then
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
    Seed,
    Until,
    Variants,
    check_policies,
    read_variants,
    require_cluster,
    run_plan,
    writable,
)

if TYPE_CHECKING:
    from bayplan.sim.compare import Divergence, PolicyVariant, RunPlan
    from bayplan.sim.experiment import RunOutcome

__all__ = ["simulate"]

EXAMPLES = """\
{program} simulate workload.yaml --cluster cluster.yaml
{program} simulate workload.yaml --cluster dump.yaml --variant packed=packed.yaml --html report.html
{program} simulate workload.yaml --cluster c.yaml --variant new=new.yaml --fail-if 'wait.p99 > 1.05 * base.wait.p99'
{program} simulate cluster.recording
{program} simulate cluster.recording --variant packed=packed.yaml
{program} simulate pods.csv --cluster nodes.csv --demand 130 --no-retry --config fgd.yaml
"""
CONDITION_HOLDS = 1
_MOST_REASONS = 3
"""Why pods wait at the end, in notes."""


def simulate(
    workload: str,
    /,
    *,
    cluster: Cluster = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    plugin: Plugins = None,
    variant: Variants = None,
    seed: Seed = 0,
    until: Until = None,
    demand: Demand = None,
    no_retry: NoRetry = False,
    fail_if: FailIf = None,
    html: Html = None,
    csv: Annotated[str | None, option("--csv", metavar="FILE", about="write the samples over time")] = None,
    parquet: Annotated[
        str | None, option("--parquet", metavar="FILE", about="the same as Parquet (needs polars or pyarrow)")
    ] = None,
    decisions: Annotated[
        str | None, option("--decisions", metavar="FILE", about="write every decision, one JSON value a line")
    ] = None,
    processes: Processes = None,
    output: Output = None,
) -> int:
    """Run a workload on a virtual clock with the real scheduler, by one policy or several side by side.

    The workload is a file of `kind: Workload`, an openb pod list (CSV), or a recording. A recording is replayed with
    the policy of then, up to the first decision that differs; with --config, --plugin or --variant, its pods come
    again and the policies are compared. Equal input and seed give equal decisions.
    Exit status: 0 done, 1 a condition of --fail-if holds or a replay differs, 2 bad input.
    """
    from bayplan.cli.stderr_log import log_to_stderr
    from bayplan.sim.compare import find_divergence, parse_condition, run_variants
    from bayplan.sim.recording.file import is_recording
    from bayplan.sim.report.svg import time_label

    log_to_stderr()
    conditions = [(text, parse_condition(text)) for text in fail_if or ()]
    recording = Path(workload) if is_recording(Path(workload)) else None
    if recording is not None and not (config or plugin or variant):
        _refuse_for_replays(
            {"--cluster": cluster, "--kubeconfig": kubeconfig, "--context": context, "--demand": demand}
            | {"--seed": seed, "--until": until, "--no-retry": no_retry, "--processes": processes}
            | {"--fail-if": fail_if, "--html": html, "--csv": csv, "--parquet": parquet}
        )
        writable(decisions=decisions)
        return replay_then(recording, output=output or "table", decisions=decisions)
    if recording is None:
        _require_recording_or_cluster(workload, cluster, kubeconfig, context)
    variants = read_variants(config, plugin or (), variant or (), recording)
    plan = run_plan(
        workload,
        cluster=cluster,
        kubeconfig=kubeconfig,
        context=context,
        seed=seed,
        until=until,
        demand=demand,
        no_retry=no_retry,
    )
    plan.check()
    check_policies(variants)
    files = writable(html=html, csv=csv, parquet=parquet, decisions=decisions)
    with progress("simulating", total=len(variants)) as state:

        def watch(seconds: Sequence[float]) -> None:
            state.detail = lambda: f"{time_label(sum(seconds))} simulated"

        outcomes = run_variants(plan, variants, processes=processes, done=lambda _: state.step(), watch=watch)
        divergences = _divergences(plan, variants, outcomes, find_divergence)
    _print(outcomes, divergences, output or "table")
    _write_files(outcomes, divergences, files, title=f"{workload} simulated")
    base = outcomes[0].measures
    broken = [(text, o.variant) for o in outcomes for text, holds in conditions if holds(o.measures, base)]
    for text, name in broken:
        note(f"condition `{text}` holds for {name}")
    return CONDITION_HOLDS if broken else 0


def _require_recording_or_cluster(workload: str, cluster: Cluster, kubeconfig: str | None, context: str | None) -> None:
    """Refuse a command that says nothing of nodes: what was meant as a recording may be none, or no longer one."""
    path = Path(workload)
    if not path.exists():
        raise CommandError(f"{workload}: cannot be read: No such file or directory")
    require_cluster(
        cluster, kubeconfig, context, purpose="run on", instead=f"only a recording needs none, and {workload} is none"
    )


def _refuse_for_replays(options: Mapping[str, object]) -> None:
    """A replay by the policy of then has no use for them; they must not be believed to be in effect."""
    given = [name for name, value in options.items() if value]
    if given:
        hint = "compare the recording with another policy: --variant NAME=FILE, --config or --plugin"
        raise CommandError(f"{', '.join(given)}: a recording is replayed as it was, without these", hint=hint)


def _divergences(
    plan: RunPlan, variants: Sequence[PolicyVariant], outcomes: Sequence[RunOutcome], find: Any
) -> list[Divergence]:
    pairs = zip(variants[1:], outcomes[1:], strict=True)
    found = [find(plan, (variants[0], each), (outcomes[0], outcome)) for each, outcome in pairs]
    return [each for each in found if each is not None]


def _write_files(
    outcomes: Sequence[RunOutcome], divergences: Sequence[Divergence], files: dict[str, Path], *, title: str
) -> None:
    from bayplan.sim.report.files import write_decisions, write_parquet, write_samples, write_whole
    from bayplan.sim.report.page import comparison_page

    if "html" in files:
        write_whole(files["html"], comparison_page(outcomes, divergences, title=title).encode())
    if "csv" in files:
        write_samples(files["csv"], outcomes)
    if "parquet" in files:
        write_parquet(files["parquet"], outcomes)
    if "decisions" in files:
        write_decisions(files["decisions"], outcomes)


def _print(outcomes: Sequence[RunOutcome], divergences: Sequence[Divergence], form: Format) -> None:
    import msgspec

    if form != "table":
        found = [_without_bulk(msgspec.to_builtins(outcome)) for outcome in outcomes]
        print_value({"runs": found, "divergences": msgspec.to_builtins(divergences)}, form)
        return
    from rich.table import Table

    from bayplan.sim.report.page import format_measure, measures_of

    table = Table("", *(outcome.variant for outcome in outcomes), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, words in measures_of(outcomes).items():
        table.add_row(words, *(format_measure(name, outcome.measures.get(name)) for outcome in outcomes))
    console = result_console()
    console.print(table)
    for each in divergences:
        print_divergence(console, each)
    for outcome in outcomes:
        for failure, count in outcome.failures.items():
            note(f"{outcome.variant}: {count} times {failure}")
        _say_who_waits(outcome)


def _say_who_waits(outcome: RunOutcome) -> None:
    from bayplan.sim.report.svg import time_label

    if not outcome.measures["pods.arrived"]:
        note(f"{outcome.variant}: no pod came in {time_label(outcome.seconds)}")
    reasons = list(outcome.reasons.items())
    for reason, count in reasons[:_MOST_REASONS]:
        waiting = f"{count} pods wait" if count != 1 else "1 pod waits"
        note(f"{outcome.variant}: {waiting} at the end: {reason}")
    if len(reasons) > _MOST_REASONS:
        others = sum(count for _, count in reasons[_MOST_REASONS:])
        note(f"{outcome.variant}: {others} wait for other reasons; `-o json` has all")


def _without_bulk(outcome: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in outcome.items() if name != "decisions"}
