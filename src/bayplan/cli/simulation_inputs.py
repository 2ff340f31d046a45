"""What `simulate`, `sweep` and `plan` read alike: options, named policies, and the objects of a running cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bayplan.cli.options import Names, counting_option, named_path, option, path_of, plugin_option
from bayplan.cli.output import CommandError, Format, progress

if TYPE_CHECKING:
    from bayplan.sim.compare import PolicyVariant, RunPlan

__all__ = [
    "Cluster",
    "Config",
    "Context",
    "Demand",
    "FailIf",
    "Html",
    "Kubeconfig",
    "NoRetry",
    "Output",
    "Plugins",
    "Processes",
    "Seed",
    "Until",
    "Variants",
    "check_policies",
    "live_objects",
    "read_variants",
    "require_cluster",
    "run_plan",
    "writable",
]

_HIGHEST_DEMAND = 10_000.0

Cluster = Annotated[Names, option("--cluster", metavar="FILE", about="nodes, pods and other objects at the start")]
Kubeconfig = Annotated[
    str | None, option("--kubeconfig", metavar="FILE", about="start from a running cluster, which is only read")
]
Context = Annotated[str | None, option("--context", metavar="NAME", about="the same, by a context of the kubeconfig")]
Config = Annotated[str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration")]
Plugins = Annotated[Names, plugin_option("load")]
Variants = Annotated[
    Names, option("--variant", metavar="NAME=FILE[,PLUGIN]", about="another policy to compare with the first")
]
Seed = Annotated[int, option("--seed", metavar="NUMBER", about="of ties and of random arrivals (0)")]
Until = Annotated[str | None, option("--until", metavar="TIME", about="when to end: 90s, 2h, 30d")]
Demand = Annotated[float | None, option("--demand", metavar="PERCENT", about="of openb pods, in percent of the GPUs")]
NoRetry = Annotated[bool, option("--no-retry", about="withdraw pods that fit nowhere when they are tried")]
FailIf = Annotated[Names, option("--fail-if", metavar="CONDITION", about="exit with 1 if it holds for a variant")]
Html = Annotated[str | None, option("--html", metavar="FILE", about="write a page with plots")]
Processes = Annotated[int | None, counting_option("--processes", about="at a time (one a core)")]
Output = Annotated[Format | None, option("--output", "-o", metavar="FORMAT", about="table by default")]


def require_cluster(
    cluster: Names, kubeconfig: str | None, context: str | None, *, purpose: str, instead: str = ""
) -> None:
    """Refuse a command that says nothing of nodes."""
    if not cluster and kubeconfig is None and context is None:
        hint = "name its objects with --cluster FILE, a --kubeconfig or a --context"
        raise CommandError(f"no cluster to {purpose}", hint="; ".join(filter(None, (hint, instead))))


def run_plan(
    workload: str,
    *,
    cluster: Names,
    kubeconfig: str | None,
    context: str | None,
    until: str | None,
    demand: float | None,
    seed: int = 0,
    no_retry: bool = False,
) -> RunPlan:
    """The runs that the options ask for. Raises CommandError."""
    from bayplan.sim.compare import RunPlan

    if demand is not None and not 0.0 < demand <= _HIGHEST_DEMAND:
        raise CommandError(f"--demand {demand:g}: expected a percentage above 0, and at most {_HIGHEST_DEMAND:,.0f}")
    for name in (workload, *(cluster or ())):
        if _is_pipe(named_path(name)):
            raise CommandError(
                f"{name}: is no regular file, and is read more than once", hint="write it to a file, and name that"
            )
    return RunPlan(
        workload=Path(workload),
        cluster=tuple(map(named_path, cluster or ())),
        objects=live_objects(kubeconfig, context),
        seed=seed,
        until=until,
        demand_percent=demand,
        retries=not no_retry,
    )


def _is_pipe(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def writable(**files: str | None) -> dict[str, Path]:
    """The wanted files by what is to be in them; what cannot be written is refused before anything runs."""
    found = {what: named_path(name) for what, name in files.items() if name is not None}
    for what, path in found.items():
        problem = _why_not_writable(path)
        if problem:
            raise CommandError(f"--{what} {path}: cannot be written: {problem}")
    return found


def _why_not_writable(path: Path) -> str:
    from bayplan.sim.report.files import is_written_in_place

    if path.is_dir():
        return "it is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    in_place = is_written_in_place(path)
    return "" if os.access(path if in_place else path.resolve().parent, os.W_OK) else "permission denied"


def read_variants(
    config: str | None, plugins: Sequence[str], others: Sequence[str], recording: Path | None = None
) -> list[PolicyVariant]:
    """The policy of a recording, that of --config and --plugin, and those of --variant NAME=FILE[,PLUGIN]."""
    from bayplan.sim.compare import PolicyVariant

    found = [] if recording is None else [PolicyVariant(name="recorded", recording=recording)]
    if recording is None or config or plugins:
        file = path_of(config)
        first = file.stem if file is not None else "with plugins" if recording else "default"
        found.append(PolicyVariant(name=first, config=file, plugins=tuple(plugins)))
    for text in others:
        name, equals, words = text.partition("=")
        if not equals or not name or not words:
            raise CommandError(f"--variant {text}: write NAME=CONFIG.yaml, NAME=PLUGIN, or both with a comma")
        if any(each.name == name for each in found):
            raise CommandError(f"--variant {text}: there are two variants of the name `{name}`")
        files = [word for word in words.split(",") if word.endswith((".yaml", ".yml", ".json"))]
        if len(files) > 1:
            raise CommandError(f"--variant {text}: names two configurations")
        rest = tuple(word for word in words.split(",") if word not in files)
        file = path_of(files[0] if files else None)
        found.append(PolicyVariant(name=name, config=file, plugins=(*plugins, *rest)))
    return found


def check_policies(variants: Sequence[PolicyVariant]) -> None:
    """Raise SettingsError for a policy that does not load, before another one has run for minutes."""
    for each in variants:
        each.settings()


def live_objects(kubeconfig: str | None, context: str | None) -> tuple[dict[str, Any], ...]:
    """The objects of a running cluster, which is only read; none where neither is named."""
    if kubeconfig is None and context is None:
        return ()
    from bayplan.client.errors import ClientError
    from bayplan.sim.sources import read_live_objects

    path = path_of(kubeconfig or None)
    try:
        with progress("reading the objects of the cluster"):
            return tuple(asyncio.run(read_live_objects(path, context)))
    except ClientError as error:
        raise CommandError(str(error).split("\nhint:")[0], hint=getattr(error, "hint", "")) from error
