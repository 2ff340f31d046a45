"""Sweeps: every policy by every seed on every workload. A result is a file of its own, so a sweep can be resumed.

A cell carries the contents of all files that it reads. It can therefore run in a process of this machine or on a worker
of a Dask cluster that sees none of them, and its result has the same bytes wherever it ran.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bayplan import __version__
from bayplan.api.decode import InputError
from bayplan.app.settings import SettingsError
from bayplan.sim.compare import PolicyVariant, RunPlan, run_variant
from bayplan.sim.engine.simulation import SimulationError
from bayplan.sim.processes import run_pool
from bayplan.sim.report.files import write_whole
from bayplan.sim.workloads.loading import read_workload

__all__ = ["CellResult", "Sweep", "SweepError", "means", "parse_seeds", "run_cell", "run_sweep"]

FORMAT = 1
_MOST_SEEDS = 100_000
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

Results = Generator[tuple["_Cell", bytes], None, None]
"""Each with its cell, as it is there."""


class SweepError(ValueError):
    """Why a sweep cannot go on, in one line."""


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one simulation; the contents of its file."""

    format: int
    key: str
    """Of everything that the result follows from."""
    workload: str
    variant: str
    seed: int
    seconds: float
    """Simulated."""
    measures: dict[str, float]
    reasons: dict[str, int]
    failures: dict[str, int]
    digest: str
    """Of all decisions."""


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """A simulation with the files that it reads, by absolute path."""

    workload: str
    plan: RunPlan
    variant: PolicyVariant
    files: Mapping[str, bytes] = field(repr=False)
    times: Sequence[str] = ()
    """Those of the files that the workload names: times of arrival."""

    @property
    def file_name(self) -> str:
        return f"{_safe(self.workload)}.{_safe(self.variant.name)}.{self.plan.seed}.json"

    @property
    def key(self) -> str:
        """Follows from contents and options, not from where files are."""
        plan, variant = self.plan, self.variant
        said = [
            ["bayplan", __version__, FORMAT],
            [plan.seed, plan.until, plan.demand_percent, plan.retries, [dict(each) for each in plan.objects]],
            [variant.name, None if variant.config is None else self._sum(variant.config)],
            [self._sum(path) for path in (plan.workload, *plan.cluster)],
            [self._sum(each) or each for each in variant.plugins],
            self._sums_of_times(),
        ]
        return sha256(msgspec.json.encode(said)).hexdigest()

    def _sums_of_times(self) -> list[list[str]]:
        """Of the files that the workload names, as it names them: two that change places are another workload."""
        folder = os.path.dirname(_absolute(self.plan.workload))
        return sorted([os.path.relpath(name, folder), sha256(self.files[name]).hexdigest()] for name in self.times)

    def has(self, path: Path | str) -> bool:
        """Whether this is one of the files, or a folder of them."""
        return bool(self._sum(path))

    def _sum(self, path: Path | str) -> str:
        """Of a file, or of every file of a folder; empty for what is neither."""
        root = _absolute(path)
        found = [(name, data) for name, data in self.files.items() if name == root or name.startswith(f"{root}/")]
        return " ".join(f"{name.removeprefix(root)} {sha256(data).hexdigest()}" for name, data in sorted(found))


@dataclass(frozen=True, kw_only=True)
class Sweep:
    plans: Sequence[RunPlan]
    """One a workload; their seeds do not count."""
    variants: Sequence[PolicyVariant]
    seeds: Sequence[int]
    folder: Path
    """Where results are kept."""

    def cells(self) -> list[_Cell]:
        """In order of workload, variant and seed. Raises InputError."""
        found: dict[str, _Cell] = {}
        for plan in self.plans:
            workload = plan.workload.name.removesuffix(".gz").rpartition(".")[0] or plan.workload.name
            for variant in self.variants:
                times = _files_of_times(plan)
                files = _files(plan, variant, times)
                for seed in self.seeds:
                    cell = _Cell(
                        workload=workload,
                        plan=replace(plan, seed=seed),
                        variant=variant,
                        files=files,
                        times=[_absolute(path) for path in times],
                    )
                    if cell.file_name in found:
                        raise InputError(f"two results would be written to {cell.file_name}; name files differently")
                    found[cell.file_name] = cell
        return list(found.values())


def parse_seeds(text: str) -> list[int]:
    """`10` are the seeds 0 to 9, `3-7` and `1,5,9` are those. Raises InputError."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 20:
            raise InputError(f"`{text}` are no seeds; write 10, 3-7 or 1,5,9", source="--seeds")
        numbers = range(int(first), int(last) + 1) if dash else [int(first)]
        if len(numbers) > _MOST_SEEDS:
            raise InputError(f"`{text}` are more than {_MOST_SEEDS} seeds", source="--seeds")
        found += numbers
    if text.strip().isdecimal():
        found = list(range(min(int(text), _MOST_SEEDS + 1)))
    if not found or len(found) > _MOST_SEEDS or len(set(found)) < len(found):
        raise InputError(f"`{text}` are no seeds; write 10, 3-7 or 1,5,9", source="--seeds")
    return found


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _files_of_times(plan: RunPlan) -> list[Path]:
    if not plan.reads_workload_file:
        return []
    named = [item.arrivals.times for item in read_workload(plan.workload).items]
    return [plan.workload.parent / name for name in dict.fromkeys(named) if name is not None]


def _files(plan: RunPlan, variant: PolicyVariant, times: Sequence[Path]) -> dict[str, bytes]:
    """The contents of everything that a run reads, by absolute path. Plugins that are no files are installed ones."""
    paths = [plan.workload, *plan.cluster, *([] if variant.config is None else [variant.config])]
    paths += [path for path in map(Path, variant.plugins) if path.exists()]
    paths += times
    found: dict[str, bytes] = {}
    for path in paths:
        inside = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        for each in inside:
            if "__pycache__" not in each.parts:
                found[_absolute(each)] = _contents(each)
    return found


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=str(path)) from error


def run_cell(cell: _Cell, files: Mapping[str, bytes] | None = None) -> bytes:
    """Run one simulation from the contents that the cell carries; what its file is to contain.

    `files` stands for the cell's own where those were sent separately.
    """
    own = replace(cell, files=files) if files is not None else cell
    with tempfile.TemporaryDirectory(prefix="bayplan-sweep-") as folder:
        root = Path(folder).resolve()
        for name, data in own.files.items():
            path = _inside(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        plan, variant = own.plan, own.variant
        config = None if variant.config is None else _inside(root, variant.config)
        plugins = tuple(str(_inside(root, each)) if own.has(each) else each for each in variant.plugins)
        cluster = tuple(_inside(root, path) for path in plan.cluster)
        try:
            outcome = run_variant(
                replace(plan, workload=_inside(root, plan.workload), cluster=cluster),
                replace(variant, config=config, plugins=plugins),
            )
        except (InputError, SettingsError, SimulationError) as error:
            raise InputError(str(error).replace(str(root), "")) from error
    result = CellResult(
        format=FORMAT,
        key=own.key,
        workload=own.workload,
        variant=outcome.variant,
        seed=outcome.seed,
        seconds=outcome.seconds,
        measures=outcome.measures,
        reasons=outcome.reasons,
        failures=outcome.failures,
        digest=outcome.digest,
    )
    return msgspec.json.format(msgspec.json.encode(result, order="sorted"), indent=1) + b"\n"


def _inside(root: Path, path: Path | str) -> Path:
    return root / _absolute(path).lstrip("/")


def _absolute(path: Path | str) -> str:
    return os.path.normpath(Path(path).absolute())


# Running


def run_sweep(
    sweep: Sweep,
    *,
    processes: int | None = None,
    dask: str | None = None,
    done: Callable[[CellResult, bool], None] = lambda _, __: None,
) -> list[CellResult]:
    """Run what has no result yet; `done` is called with each result, and whether it was there before.

    Raises InputError and SweepError; results that were written stay.
    """
    cells = sweep.cells()
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", source=str(sweep.folder)) from error
    found: dict[str, CellResult] = {}
    missing = []
    for cell in cells:
        known = _read(sweep.folder / cell.file_name, cell.key)
        if known is None:
            missing.append(cell)
        else:
            found[cell.file_name] = known
            done(known, True)
    running = _on_dask(missing, dask) if dask is not None else _on_processes(missing, processes)
    with closing(running):
        for cell, data in running:
            write_whole(sweep.folder / cell.file_name, data)
            found[cell.file_name] = msgspec.json.decode(data, type=CellResult)
            done(found[cell.file_name], False)
    return [found[cell.file_name] for cell in cells]


def _read(path: Path, key: str) -> CellResult | None:
    """A result that follows from the same inputs; None for any other file."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=CellResult)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if (found.format, found.key) == (FORMAT, key) else None


def _attempt(cell: _Cell, files: Mapping[str, bytes] | None = None) -> bytes | str:
    """A result, or what is wrong with the input: exceptions of ours do not survive every way between processes."""
    try:
        return run_cell(cell, files)
    except InputError as error:
        return str(error)


def _on_processes(cells: Sequence[_Cell], processes: int | None) -> Results:
    workers = min(len(cells), processes or os.cpu_count() or 1)
    if workers <= 1:
        for cell in cells:
            yield cell, _checked(cell, _attempt(cell))
        return
    with run_pool(workers) as pool:
        futures = {pool.submit(_attempt, cell): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], _checked(futures[future], future.result())


def _on_dask(cells: Sequence[_Cell], address: str) -> Results:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise SweepError("Dask is not installed\nhint: pip install 'bayplan[dask]'") from None
    if not cells:
        return
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise SweepError(f"no Dask scheduler answers at `{address}`: {error or type(error).__name__}") from error
    with client:
        _check_versions(client, address)
        sent = {id(cell.files): client.scatter(dict(cell.files), hash=False) for cell in cells}
        futures = {
            client.submit(_attempt, replace(cell, files={}), sent[id(cell.files)], pure=False): cell for cell in cells
        }
        try:
            for future in distributed.as_completed(list(futures), loop=client.loop):
                yield futures[future], _checked(futures[future], future.result())
        finally:
            client.cancel(list(futures))


def _check_versions(client: Any, address: str) -> None:
    """Workers with another version would decide otherwise."""
    versions: dict[str, str] = client.run(_version)
    if not versions:
        raise SweepError(f"the Dask scheduler at `{address}` has no workers")
    for worker, version in sorted(versions.items()):
        if version != __version__:
            raise SweepError(f"the Dask worker {worker} has bayplan {version}, and this is {__version__}")


def _version() -> str:
    return __version__


def _checked(cell: _Cell, answer: bytes | str) -> bytes:
    if isinstance(answer, str):
        raise InputError(f"{cell.workload}, {cell.variant.name}, seed {cell.plan.seed}: {answer}")
    return answer


# Summaries


def means(results: Iterable[CellResult]) -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """By workload and variant, the mean of each measure over the seeds and its standard deviation."""
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        groups.setdefault((result.workload, result.variant), []).append(result)
    found = {}
    for place, group in groups.items():
        names = dict.fromkeys(name for result in group for name in result.measures)
        values = {name: [result.measures.get(name, 0.0) for result in group] for name in names}
        found[place] = {
            name: (statistics.fmean(each), statistics.stdev(each) if len(each) > 1 else 0.0)
            for name, each in values.items()
        }
    return found
