"""Simulations from Python: `bayplan.simulate(...)`, and what it returns, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bayplan.sim.compare import Divergence, PolicyVariant, RunPlan, find_divergence, run_variants
from bayplan.sim.experiment import RunOutcome
from bayplan.sim.report.page import comparison_page

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
        rows = [
            {"variant": name, **_flat(msgspec.to_builtins(sample))}
            for name, outcome in self.outcomes.items()
            for sample in outcome.samples
        ]
        return _frame(rows)

    def decisions(self) -> Any:
        """Every decision as a DataFrame."""
        fields = msgspec.structs.fields(next(iter(self.outcomes.values())).decisions[0].__class__)
        rows = [
            {"variant": name, **{field.name: getattr(line, field.name) for field in fields}}
            for name, outcome in self.outcomes.items()
            for line in outcome.decisions
        ]
        return _frame(rows)

    def page(self) -> str:
        """One self-contained HTML page."""
        others = [self.divergence(each.name) for each in self._variants[1:]]
        found = [each for each in others if each is not None]
        return comparison_page(list(self.outcomes.values()), found, title=f"{self._plan.workload.name} simulated")

    _repr_html_ = page


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
    variants = [_variant(name, policy) for name, policy in (policies or {"default": None}).items()]
    return Comparison(plan, variants, run_variants(plan, variants, processes=processes))


def _variant(name: str, policy: Policy) -> PolicyVariant:
    if policy is None:
        return PolicyVariant(name=name)
    if isinstance(policy, str | Path):
        return PolicyVariant(name=name, config=Path(policy))
    return PolicyVariant(name=name, plugins=tuple(policy))


def _flat(sample: dict[str, Any]) -> dict[str, Any]:
    """Nested maps with dotted names; what is no number is left out."""
    found: dict[str, Any] = {}
    for name, value in sample.items():
        if isinstance(value, dict):
            found.update({f"{name}.{key}": number for key, number in value.items()})
        elif isinstance(value, int | float):
            found[name] = value
    return found


def _frame(rows: list[dict[str, Any]]) -> Any:
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(rows)
        except ImportError:
            continue
    raise ImportError("install pandas or polars for DataFrames; `outcomes` has the same values without them")
