"""`bayplan plan`: how many nodes a workload needs, how to empty nodes, which nodes are worth emptying."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from bayplan.cli.options import Names, counting_option, named_path, option, path_of
from bayplan.cli.output import CommandError, Format, escaped, note, print_value, progress, result_console
from bayplan.cli.simulation_inputs import (
    Cluster,
    Config,
    Context,
    Demand,
    Kubeconfig,
    Output,
    Plugins,
    Seed,
    Until,
    live_objects,
    require_cluster,
    run_plan,
)

if TYPE_CHECKING:
    from bayplan.plan.bound import Bound
    from bayplan.plan.capacity import CapacityPlan
    from bayplan.plan.emptying import MovePlan
    from bayplan.plan.moves import MovableCluster

__all__ = ["app", "capacity", "defrag", "drain"]

app = App(help="Plan nodes and moves by what the scheduler would do. Nothing is changed anywhere.", version_flags=())
NOT_POSSIBLE = 1
_MOST_ROWS = 40

Force = Annotated[bool, option("--force", about="also pods that nothing makes again, or that are marked to stay")]
WithBound = Annotated[bool, option("--bound", about="say how far this is from the best possible (bayplan[plan])")]


@app.command
def capacity(
    workload: str,
    /,
    *,
    pools: Annotated[str, option("--pools", metavar="FILE", about="node pools; the count is the most of each")],
    cluster: Cluster = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    plugin: Plugins = None,
    accept: Annotated[
        str | None, option("--accept", metavar="CONDITION", about="what a run has to fulfil; see below")
    ] = None,
    seed: Seed = 0,
    until: Until = None,
    demand: Demand = None,
    most_runs: Annotated[int, counting_option("--most-runs", about="simulations (60)")] = 60,
    bound: WithBound = False,
    output: Output = None,
) -> int:
    """Say how many nodes of which pool are enough for a workload, the cheapest mix that a simulation accepts.

    The price of a node is its annotation or label bayplan.dev/price-per-hour. A run is accepted if
    `pods.pending == 0 and wait.p99 <= 60`, or by --accept, in the words of `simulate --fail-if`.
    Nodes of --cluster are there in any case, at no price. Exit status: 0 found, 1 no mix is enough, 2 bad input.
    """
    from bayplan.app.settings import load_settings
    from bayplan.cli.stderr_log import log_to_stderr
    from bayplan.plan.capacity import ACCEPTED, CapacityQuestion, plan_capacity
    from bayplan.sim.compare import parse_condition
    from bayplan.sim.workloads.loading import read_pools

    log_to_stderr()
    question = CapacityQuestion(
        plan=run_plan(
            workload, cluster=cluster, kubeconfig=kubeconfig, context=context, seed=seed, until=until, demand=demand
        ),
        settings=load_settings(path_of(config), plugin or (), enable=True),
        pools=read_pools(named_path(pools)),
        accept=parse_condition(accept or ACCEPTED, source="--accept"),
        most_runs=most_runs,
        wants_bound=bound,
    )
    with progress("simulating mixes of nodes") as state:
        found = plan_capacity(question, step=state.step)
    if output in ("json", "yaml"):
        _print_struct(found, output)
    else:
        _print_capacity(found)
    return 0 if found.best is not None else NOT_POSSIBLE


@app.command
def drain(
    nodes: list[str],
    /,
    *,
    cluster: Cluster = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    plugin: Plugins = None,
    force: Force = False,
    output: Output = None,
) -> int:
    """Say how to empty nodes: one eviction after the other, each with the node that the replacement gets.

    Each move was decided by the scheduler on the state that the moves before it leave. Disruption budgets are
    respected. The commands are printed for you to run; nothing is evicted.
    Exit status: 0 every pod has a place, 1 some pod cannot be moved, 2 bad input.
    """
    from bayplan.plan.emptying import plan_drain

    found = _movable(cluster, kubeconfig, context, config, plugin)
    with progress("planning moves"):
        plan = plan_drain(found, nodes, force=force)
    _print_moves(plan, output)
    return NOT_POSSIBLE if plan.stuck else 0


@app.command
def defrag(
    *,
    cluster: Cluster = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    plugin: Plugins = None,
    move_price: Annotated[
        float, option("--move-price", metavar="NUMBER", about="of one eviction, in the unit of node prices (0.1)")
    ] = 0.1,
    hours: Annotated[
        float, option("--hours", metavar="NUMBER", about="for which an emptied node is not paid for (720)")
    ] = 720.0,
    most_moves: Annotated[int, option("--most-moves", metavar="NUMBER", about="in one plan (1000)")] = 1000,
    force: Force = False,
    bound: WithBound = False,
    output: Output = None,
) -> int:
    """Say which nodes are worth emptying and how, until the gain is below the price of the moves.

    The gain is the price of the emptied nodes (bayplan.dev/price-per-hour; 1 where no node has one) for --hours.
    Each move was decided by the scheduler on the state that the moves before it leave. Disruption budgets are
    respected. The commands are printed for you to run; nothing is evicted. Exit status: 0 planned, 2 bad input.
    """
    from bayplan.plan.emptying import DefragTerms, plan_defrag

    for name, value in (("--move-price", move_price), ("--hours", hours), ("--most-moves", most_moves)):
        if not 0.0 <= value < 1e12:
            raise CommandError(f"{name} is {value}, expected a number of 0 or more")
    found = _movable(cluster, kubeconfig, context, config, plugin)
    terms = DefragTerms(move_price=move_price, hours=hours, most_moves=most_moves, force=force, wants_bound=bound)
    with progress("planning moves") as state:
        plan = plan_defrag(found, terms, step=state.step)
    _print_moves(plan, output)
    return 0


def _movable(
    cluster: Names, kubeconfig: str | None, context: str | None, config: str | None, plugins: Names
) -> MovableCluster:
    from bayplan.api.decode import decode_object
    from bayplan.app.settings import load_settings
    from bayplan.cli.stderr_log import log_to_stderr
    from bayplan.framework.resources import object_kinds
    from bayplan.plan.moves import MovableCluster
    from bayplan.sim.workloads.loading import check_identities, read_cluster

    log_to_stderr()
    require_cluster(cluster, kubeconfig, context, purpose="plan for")
    settings = load_settings(path_of(config), plugins or (), enable=True)
    kinds = object_kinds(settings.watched)
    objects = read_cluster([named_path(name) for name in cluster], kinds) if cluster else []
    for document in live_objects(kubeconfig, context):
        decoded = decode_object(document, source="cluster", ignore_unread=True, more_kinds=kinds)
        objects += [] if decoded is None else [decoded]
    check_identities(objects, source="the cluster with --cluster" if cluster else "the cluster")
    return MovableCluster(objects, settings)


def _print_struct(value: Any, form: Any) -> None:
    import msgspec

    print_value(msgspec.to_builtins(value), form)


def _print_moves(plan: MovePlan, output: Format | None) -> None:
    from bayplan.plan.commands import kubectl_commands

    plan.commands = kubectl_commands(plan)
    if output in ("json", "yaml"):
        _print_struct(plan, output)
        return
    print(plan.verdict)
    if plan.stopped:
        print(f"Then {plan.stopped}.")
    _print_bound(plan.bound, plan.price_per_hour, "The nodes in use afterwards cost")
    if plan.moves:
        _print_table(
            ("pod", "from", "to", "nodes that fit"),
            [(move.pod, move.source, move.target, str(move.feasible_nodes)) for move in plan.moves],
        )
    for move in plan.moves:
        if move.with_those:
            note(f"{move.pod} has a place again only once {move.with_those[-1]} is evicted: do not wait between them")
    for each in plan.stuck[:_MOST_ROWS]:
        print(escaped(f"stays: {each.pod} on {each.node}: {each.reason}"))
    if plan.pending:
        note(f"{len(plan.pending)} pods fit nowhere already, before the first move")
    if plan.commands:
        print("\n" + "\n".join(plan.commands))


def _print_capacity(found: CapacityPlan) -> None:
    print(found.verdict)
    if not found.is_complete:
        print("Not every cheaper mix was tried (--most-runs).")
    if found.best is not None:
        _print_bound(found.bound, found.best.price, "They cost")
    rows = []
    for trial in found.trials[:_MOST_ROWS]:
        mix = ", ".join(f"{count} x {name}" for name, count in trial.nodes.items() if count) or "none"
        why = "accepted" if trial.is_accepted else f"refused: {trial.reason}" if trial.reason else "refused"
        rows.append((mix, f"{trial.price:,.2f}", str(trial.pending), f"{trial.wait_p99:,.3g}", why))
    _print_table(("nodes", "price an hour", "pending", "wait, 99 % (s)", ""), rows)


def _print_bound(bound: Bound | None, price: float, words: str) -> None:
    if bound is None:
        return
    above = f", {100.0 * (price / bound.price - 1.0):.0f} % above it" if bound.price else ""
    best = "the best possible" if bound.is_best else "a bound that nothing is below"
    print(f"{words} {price:,.2f} an hour; {best} is {bound.price:,.2f} ({bound.method}){above}.")
    if bound.method == "totals" and find_spec("ortools") is None:
        note("by totals of resources; install OR-Tools for a closer bound: pip install 'bayplan[plan]'")


def _print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.table import Table

    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(escaped, row))
    result_console().print(table)
