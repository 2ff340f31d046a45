"""Several policies on the same cluster and workload: runs in processes, the first decision that differs, conditions.

A `RunPlan` names everything by file, so that a process can read it again; runs are equal wherever they run.
"""

from __future__ import annotations

import ast
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bayplan.api.decode import InputError, decode_object
from bayplan.api.node import Node
from bayplan.app.settings import Settings, load_settings
from bayplan.framework.queued import QueuedPod
from bayplan.framework.resources import object_kinds
from bayplan.loop.decide import Decision, decide
from bayplan.loop.observer import Observer
from bayplan.sim.engine.simulation import Simulation, SimulationOptions
from bayplan.sim.experiment import MEASURE_FAMILIES, MEASURES, Experiment, RunOutcome, SimulatedWorkload
from bayplan.sim.ledger import DecisionLine
from bayplan.sim.processes import CONTEXT, run_pool
from bayplan.sim.recording.file import is_recording
from bayplan.sim.recording.sessions import first_header, recorded_settings
from bayplan.sim.recording.workload import RecordedWorkload
from bayplan.sim.workloads.loading import check_identities, read_cluster, read_workload
from bayplan.sim.workloads.openb import MILLI, OpenbWorkload, milli_of, read_pods
from bayplan.sim.workloads.running import FileWorkload
from bayplan.sim.workloads.units import seconds_of

__all__ = [
    "Choice",
    "Condition",
    "Divergence",
    "PolicyVariant",
    "RunPlan",
    "choice_of",
    "find_divergence",
    "parse_condition",
    "run_variants",
]

_SHOWN_NODES = 3


@dataclass(frozen=True, kw_only=True)
class PolicyVariant:
    """A policy by name: a configuration and plugins to load."""

    name: str
    config: Path | None = None
    plugins: tuple[str, ...] = ()
    recording: Path | None = None
    """A recording whose own policy it is."""

    def settings(self) -> Settings:
        """Raises SettingsError."""
        if self.recording is not None:
            return recorded_settings(first_header(self.recording), source=str(self.recording))
        return load_settings(self.config, self.plugins, enable=True)


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What all variants share."""

    workload: Path
    cluster: tuple[Path, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    """Objects of a cluster that was read already."""
    seed: int = 0
    until: str | None = None
    demand_percent: float | None = None
    retries: bool = True

    def experiment(self, settings: Settings | None = None) -> Experiment:
        """Read everything, with the custom resources that the plugins of `settings` watch. Raises InputError."""
        workload, until = self._workload()
        kinds = object_kinds(settings.watched if settings is not None else ())
        objects = read_cluster(self.cluster, kinds) if self.cluster else []
        decoded = [
            decode_object(document, source="cluster", ignore_unread=True, more_kinds=kinds) for document in self.objects
        ]
        objects += [item for item in decoded if item is not None]
        check_identities(objects, source="the cluster with --cluster" if self.cluster else "the cluster")
        options = SimulationOptions(seed=self.seed, until_seconds=until, retries=self.retries)
        is_recorded = isinstance(workload, RecordedWorkload)
        if isinstance(workload, RecordedWorkload):
            options = replace(options, start=workload.start)
        return Experiment(objects, workload, options, replaces_lost_pods=not is_recorded)

    def check(self) -> None:
        """Raise InputError for what cannot be used, before anything runs."""
        experiment = self.experiment()
        if isinstance(experiment.workload, FileWorkload):
            experiment.workload.check_nodes(item.name for item in experiment.objects if isinstance(item, Node))
        gpus = sum(milli_of(item) for item in experiment.objects if isinstance(item, Node))
        if self.demand_percent is not None and not gpus:
            problem = f"{self.demand_percent:g} percent of no GPUs: no node of the cluster offers {MILLI}"
            raise InputError(f"{problem}\nhint: leave --demand out, and pods come at the times of the list")

    @property
    def reads_workload_file(self) -> bool:
        """Whether the workload is a `kind: Workload`, and neither an openb pod list nor a recording."""
        return not self._is_openb and not is_recording(self.workload)

    @property
    def _is_openb(self) -> bool:
        return self.workload.name.endswith((".csv", ".csv.gz")) and not is_recording(self.workload)

    def _workload(self) -> tuple[SimulatedWorkload, float | None]:
        until = None if self.until is None else _until(self.until)
        if self._is_openb:
            return OpenbWorkload(read_pods(self.workload), demand_percent=self.demand_percent), until
        if self.demand_percent is not None:
            raise InputError("a demand is for openb pod lists; state arrivals in the workload", source="--demand")
        if is_recording(self.workload):
            recorded = RecordedWorkload(self.workload)
            return recorded, recorded.seconds if until is None else until
        given = read_workload(self.workload)
        if until is None and given.until is not None:
            until = seconds_of(given.until)
        return FileWorkload(given, source=self.workload), until


def _until(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError as error:
        raise InputError(str(error), source="--until") from error


def run_variant(
    plan: RunPlan,
    variant: PolicyVariant,
    observers: Sequence[Observer] = (),
    progress: Callable[[float], None] | None = None,
) -> RunOutcome:
    settings = variant.settings()
    experiment = plan.experiment(settings)
    return experiment.run(settings, variant=variant.name, observers=observers, progress=progress)


def run_variants(
    plan: RunPlan,
    variants: Sequence[PolicyVariant],
    *,
    processes: int | None = None,
    done: Callable[[RunOutcome], None] = lambda _: None,
    watch: Callable[[Sequence[float]], None] = lambda _: None,
) -> list[RunOutcome]:
    """Run all, in as many processes as there are cores; `done` is called with each outcome as it is there.

    `watch` is called once with a list that tells at any time how many seconds of each variant are simulated.
    """
    workers = min(len(variants), processes or os.cpu_count() or 1)
    if workers <= 1:
        outcomes, seconds = [], [0.0] * len(variants)
        watch(seconds)
        for place, variant in enumerate(variants):
            outcomes.append(run_variant(plan, variant, progress=partial(seconds.__setitem__, place)))
            done(outcomes[-1])
        return outcomes
    shared = CONTEXT.Array("d", len(variants), lock=False)
    watch(shared)
    with run_pool(workers, initializer=_share, initargs=(shared,)) as pool:
        futures = [pool.submit(_run_shared, plan, variant, place) for place, variant in enumerate(variants)]
        for future in as_completed(futures):
            done(future.result())
        return [future.result() for future in futures]


_shared_seconds: Any = None
"""In a process of the pool: where it writes how far it is."""


def _share(seconds: Any) -> None:
    global _shared_seconds
    _shared_seconds = seconds


def _run_shared(plan: RunPlan, variant: PolicyVariant, place: int) -> RunOutcome:
    return run_variant(plan, variant, progress=partial(_shared_seconds.__setitem__, place))


# The first decision that differs


class Choice(msgspec.Struct, frozen=True):
    """What one variant decided about a pod, and why: the best nodes with their points by plugin."""

    variant: str
    line: DecisionLine
    feasible: int
    ties: int
    nodes: list[tuple[str, int, dict[str, int]]]
    """Name, total and points by plugin; the node that was chosen and the best of the others."""


class Divergence(msgspec.Struct, frozen=True):
    number: int
    """How many decisions were equal before."""
    choices: tuple[Choice, Choice]


def find_divergence(
    plan: RunPlan, variants: tuple[PolicyVariant, PolicyVariant], outcomes: tuple[RunOutcome, RunOutcome]
) -> Divergence | None:
    """The first attempt with another result; both runs are repeated up to it, to see their points."""
    first, second = (outcome.decisions for outcome in outcomes)
    pairs = enumerate(zip(first, second, strict=False))
    found = next((place for place, (one, other) in pairs if one != other), None)
    if found is None:
        return None
    choices = [_explain(plan, variant, found) for variant in variants]
    return Divergence(number=found, choices=(choices[0], choices[1]))


def _explain(plan: RunPlan, variant: PolicyVariant, place: int) -> Choice:
    settings = variant.settings()
    experiment, eye = plan.experiment(settings), _Explaining(variant.name, place)
    experiment.run(settings, observers=[eye], prepare=eye.attach)
    if eye.choice is None:
        raise RuntimeError(f"variant `{variant.name}` did not reach decision {place} again; it is not deterministic")
    return eye.choice


class _Explaining(Observer):
    """Decides once more about the pod of one attempt, with all points, and ends the run."""

    def __init__(self, variant: str, place: int) -> None:
        self._variant = variant
        self._left = place
        self._simulation: Simulation | None = None
        self.choice: Choice | None = None

    def attach(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        self._left -= 1
        if self._left == -1 and self._simulation is not None:
            self.choice = choice_of(self._simulation, self._variant, queued, decision)
            self._simulation.stop()


def choice_of(simulation: Simulation, variant: str, queued: QueuedPod, decision: Decision, *, also: str = "") -> Choice:
    """A decision that was just made, with the points of its best nodes and of the node `also`."""
    line = DecisionLine(simulation.now, queued.key, decision.node_name, decision.message)
    nodes = []
    if decision.is_scheduled:
        profile = simulation.core.profiles[queued.info.scheduler_name]
        decider = replace(profile.decider, explains=True, tie_break=lambda ties: int(ties[0]), sampling=None)
        nodes = _best_nodes(simulation, decide(decider, queued.info), (decision.node_name, also))
    return Choice(variant, line, decision.feasible_nodes, decision.ties, nodes)


def _best_nodes(
    simulation: Simulation, decision: Decision, first: tuple[str, str]
) -> list[tuple[str, int, dict[str, int]]]:
    scores = decision.scores
    if scores is None:
        return []
    infos, totals = simulation.core.cache.cluster.nodes.infos, scores.totals
    names = {place: info.name for place, row in enumerate(scores.rows.tolist()) if (info := infos[row]) is not None}
    order = [int(place) for place in np.argsort(-totals, kind="stable") if int(place) in names]
    shown = sorted(order, key=lambda place: (names[place] != first[0], names[place] != first[1]))[:_SHOWN_NODES]
    return [
        (names[place], int(totals[place]), {name: int(share[place]) for name, share in scores.shares.items()})
        for place in shown
    ]


# Conditions on outcomes, for exit codes

Condition = Callable[[Mapping[str, float], Mapping[str, float]], bool]
"""Whether it holds for the measures of a variant and those of the first one."""
_BY_PLUGIN = "pending.by."
"""Measures that are there only where these plugins refused a pod."""
_MOST_CHARACTERS = 1_000
"""How deep Python's parser goes depends on the version and on what called it."""


def parse_condition(text: str, *, source: str = "--fail-if") -> Condition:
    """`wait.p99 > 1.05 * base.wait.p99` as a function. Raises InputError.

    Names are measures, with `base.` those of the first variant; names that are no words go into brackets:
    `allocated["example.com/gpu"]`.
    """
    if len(text) > _MOST_CHARACTERS:
        problem = f"it has more than {_MOST_CHARACTERS:,} characters"
        raise InputError(f"`{text:.60}` is no expression: {problem}", source=source)
    rule = _Rule(text, source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # `1or 2` is an expression
            tree = ast.parse(text.strip(), mode="eval").body
        rule.value(tree, _Possible(), _Possible())
    except InputError:
        raise
    except SyntaxError as error:
        raise InputError(f"`{text}` is no expression: {error.msg}", source=source) from None
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        # Python's parser has limits of its own, and answers beyond them in one of these ways.
        problem = str(error) or "it is nested too deeply"
        raise InputError(f"`{text:.60}` is no expression: {problem}", source=source) from None
    return lambda own, base: bool(rule.value(tree, own, base))


_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b if b else _over_zero(a),
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def _over_zero(a: float) -> float:
    """Nothing is neither more nor less than nothing: comparisons with NaN are false."""
    return math.copysign(math.inf, a) if a else math.nan


class _Possible(dict[str, float]):
    """Has every measure that a run may have: a condition on another one is refused before a run of minutes."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(MEASURES, 1.0))

    def __missing__(self, name: str) -> float:
        return 1.0

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith(MEASURE_FAMILIES)


class _Rule:
    """Evaluates the tree of a condition; names it in errors."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source

    def value(self, tree: ast.expr, own: Mapping[str, float], base: Mapping[str, float]) -> Any:
        if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float):
            return float(tree.value)
        if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATIONS:
            return _OPERATIONS[type(tree.op)](self.value(tree.left, own, base), self.value(tree.right, own, base))
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return -self.value(tree.operand, own, base)
        if isinstance(tree, ast.Compare) and all(type(op) in _OPERATIONS for op in tree.ops):
            values = [self.value(each, own, base) for each in (tree.left, *tree.comparators)]
            steps = zip(tree.ops, values, values[1:], strict=False)
            return all(_OPERATIONS[type(op)](left, right) for op, left, right in steps)
        if isinstance(tree, ast.BoolOp):
            found = [self.value(each, own, base) for each in tree.values]
            return all(found) if isinstance(tree.op, ast.And) else any(found)
        name = _name(tree)
        if not name:
            raise self._error("only numbers, measures, + - * / and comparisons can be used")
        measures, name = (base, name.removeprefix("base.")) if name.startswith("base.") else (own, name)
        if name.startswith(_BY_PLUGIN):
            return measures.get(name, 0.0)
        if name not in measures:
            raise self._error(f"there is no measure `{name}`\nhint: {_known(own)}")
        return measures[name]

    def _error(self, problem: str) -> InputError:
        return InputError(f"`{self._text}`: {problem}", source=self._source)


def _known(measures: Mapping[str, float]) -> str:
    named = f"there are {', '.join(sorted(measures))}"
    if not isinstance(measures, _Possible):
        return named
    return f"{named}, and names that begin with {', '.join(MEASURE_FAMILIES)}"


def _name(tree: ast.expr) -> str:
    """A dotted name; empty where it is something else."""
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Attribute):
        inner, last = _name(tree.value), tree.attr
    elif isinstance(tree, ast.Subscript) and isinstance(tree.slice, ast.Constant):
        inner, last = _name(tree.value), str(tree.slice.value)
    else:
        return ""
    return f"{inner}.{last}" if inner else ""
