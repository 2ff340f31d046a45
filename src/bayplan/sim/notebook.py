"""Simulations from Python: `bayplan.simulate(...)`, and what it returns, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from bayplan.sim.compare import Divergence, PolicyVariant, RunPlan, find_divergence, run_variants
from bayplan.sim.experiment import RunOutcome
from bayplan.sim.report.files import parquet_bytes, sample_rows, write_whole
from bayplan.sim.report.page import STYLE, comparison_page, comparison_plots
from bayplan.sim.report.svg import Plot

__all__ = ["Comparison", "simulate"]

Policy = str | Path | Sequence[str] | None
"""A configuration file; plugins to load; None for the default policy."""


class Comparison:
    """The outcomes of one or several policies. In a notebook it shows itself as the page of `--html`."""

    def __init__(self, plan: RunPlan, variants: Sequence[PolicyVariant], outcomes: Sequence[RunOutcome]) -> None:
        self._plan = plan
        self._variants = variants
        self.outcomes = {outcome.variant: outcome for outcome in outcomes}
        """By variant, the first being the one that others are compared with."""

    def __getitem__(self, variant: str) -> RunOutcome:
        return self.outcomes[variant]

    @property
    def measures(self) -> dict[str, dict[str, float]]:
        """By variant and measure."""
        return {name: outcome.measures for name, outcome in self.outcomes.items()}

    def divergence(self, variant: str) -> Divergence | None:
        """The first decision of a variant that differs from the first variant's, with the points of both."""
        first = self._variants[0]
        other = next(each for each in self._variants if each.name == variant)
        return find_divergence(self._plan, (first, other), (self.outcomes[first.name], self.outcomes[variant]))

    def samples(self) -> Any:
        """The cluster over time as a DataFrame of pandas or polars, whichever is installed."""
        return _frame(self._sample_rows())

    def decisions(self) -> Any:
        """Every decision as a DataFrame."""
        return _frame(self._decision_rows())

    def _sample_rows(self) -> list[dict[str, Any]]:
        return sample_rows(list(self.outcomes.values()))

    def _decision_rows(self) -> list[dict[str, Any]]:
        return [
            {"variant": name, **{field: getattr(line, field) for field in line.__struct_fields__}}
            | {"victims": list(line.victims)}
            for name, outcome in self.outcomes.items()
            for line in outcome.decisions
        ]

    def page(self) -> str:
        """One self-contained HTML page."""
        others = [self.divergence(each.name) for each in self._variants[1:]]
        found = [each for each in others if each is not None]
        return comparison_page(list(self.outcomes.values()), found, title=f"{self._plan.workload.name} simulated")

    def plots(self) -> dict[str, NotebookPlot]:
        """The plots of the page by title; a notebook shows each."""
        groups = comparison_plots(list(self.outcomes.values())).values()
        return {plot.title: NotebookPlot(plot) for plots in groups for plot in plots}

    def write_parquet(self, path: str | Path, *, what: str = "samples") -> None:
        """Write the samples, or the `decisions`, as a Parquet file; needs polars or pyarrow."""
        rows = self._decision_rows() if what == "decisions" else self._sample_rows()
        write_whole(Path(path), parquet_bytes(rows))

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style stays in there."""
        return f'<iframe srcdoc="{escape(self.page())}" style="width:100%;height:48rem;border:0"></iframe>'


class NotebookPlot:
    def __init__(self, plot: Plot) -> None:
        self.plot = plot

    @property
    def svg(self) -> str:
        """An image file: the plot with its style."""
        return self.plot.svg.replace(">", f' xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>', 1)

    def _repr_html_(self) -> str:
        page = f"<!doctype html><style>{STYLE}</style>{self.plot.figure}"
        return f'<iframe srcdoc="{escape(page)}" style="width:100%;height:24rem;border:0"></iframe>'


def simulate(
    workload: str | Path,
    *,
    cluster: str | Path | Iterable[str | Path],
    policies: Mapping[str, Policy] | None = None,
    seed: int = 0,
    until: str | None = None,
    demand_percent: float | None = None,
    retries: bool = True,
    processes: int | None = 1,
) -> Comparison:
    """Run a workload on a virtual clock by one policy or several; see `bayplan simulate --help`.

    `policies` are named configurations (a path) or lists of plugins; the default policy alone where none are given.
    Raises InputError and SettingsError for what cannot be used.
    """
    files = [cluster] if isinstance(cluster, str | Path) else list(cluster)
    plan = RunPlan(
        workload=Path(workload),
        cluster=tuple(map(Path, files)),
        seed=seed,
        until=until,
        demand_percent=demand_percent,
        retries=retries,
    )
    plan.check()
    variants = [_variant(name, policy) for name, policy in (policies or {"default": None}).items()]
    return Comparison(plan, variants, run_variants(plan, variants, processes=processes))


def _variant(name: str, policy: Policy) -> PolicyVariant:
    if policy is None:
        return PolicyVariant(name=name)
    if isinstance(policy, str | Path):
        return PolicyVariant(name=name, config=Path(policy))
    return PolicyVariant(name=name, plugins=tuple(policy))


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        return import_module("pandas").DataFrame(rows)
    except ImportError:
        pass
    try:
        return import_module("polars").DataFrame(rows, infer_schema_length=None)
    except ImportError:
        raise ImportError("install pandas or polars for DataFrames; `outcomes` has the same values without") from None
