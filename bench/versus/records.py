"""What was measured, kept as one JSON line a measurement the moment it is there.

An interrupted bench loses nothing, and every report is made from these lines. A session is one start of the bench;
figures of two sessions are never mixed: for each workload, mode and size the newest session counts, one that measured
both schedulers before one that measured a single one.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

FILE = "versus.jsonl"
Key = tuple[str, str, int]
"""Workload, mode, nodes."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One workload, measured once with one scheduler."""

    session: str
    workload: str
    scheduler: str
    mode: str
    """`backlog` or `arrival 200/s`; with `, asked` or `, 4 busy loops` where that went on beside it."""
    nodes: int
    pods: int
    bound: int
    pods_per_second: float
    """From the first to the last binding, as a watcher sees them."""
    p50_ms: float
    p99_ms: float
    """From creation to binding as a watcher sees both; in a backlog from the start of the scheduler."""
    cpu_life_per_1000: float
    """CPU seconds of the scheduler from its start to the last binding, by 1,000 pods."""
    cpu_window: dict[str, float]
    """CPU seconds from the first to the last binding, by process; `machine` is all of them and everybody else."""
    window_seconds: float
    peak_mib: float
    decision_ms: float
    first_bound_seconds: float
    """From the start of the scheduler (in a backlog) or the first creation to the first binding."""
    timeline: list[tuple[float, int]]
    """(seconds, bound so far)."""
    created: list[tuple[float, int]]
    """(seconds, created so far)."""
    created_per_second: float = 0.0
    """What arrival came to, which on a busy machine is less than was asked for."""
    answers: dict[str, list[float]] = field(default_factory=dict)
    """Seconds that answers took, by question, where somebody asked meanwhile."""

    @property
    def last_bound_seconds(self) -> float:
        """From the start of the scheduler (in a backlog) or the first creation to the last binding."""
        return self.timeline[-1][0] if self.timeline else 0.0

    @property
    def whole_per_second(self) -> float:
        """Pods a second in that time."""
        return self.bound / self.last_bound_seconds if self.last_bound_seconds else 0.0

    @property
    def key(self) -> Key:
        return (self.workload, self.mode, self.nodes)

    def cores(self, process: str) -> float:
        """How many cores a process kept busy from the first to the last binding; `others`: who is not measured."""
        used = self.cpu_window.get(process, 0.0)
        if process == "others":
            used = 2 * self.cpu_window.get("machine", 0.0) - sum(self.cpu_window.values())
        return max(used, 0.0) / max(self.window_seconds, 0.001)

    @property
    def cpu_window_per_1000(self) -> float:
        return 1000 * self.cpu_window.get("scheduler", 0.0) / max(self.bound, 1)


@dataclass(frozen=True, kw_only=True)
class Raw:
    """What a bare client got out of the API server just before a round, with the pods of the workload."""

    session: str
    workload: str
    nodes: int
    per_second: float
    is_whole: bool = False
    """Whether it did all that pods needed before their bindings, and counts from its start."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A decision without an API server: how its cost grows with the cluster."""

    session: str
    workload: str
    nodes: int
    bound_pods: int
    decision_us: float


@dataclass(frozen=True, kw_only=True)
class Session:
    session: str
    about: str


Record = Run | Raw | Growth | Session
_KINDS: dict[str, type[Any]] = {"run": Run, "raw": Raw, "growth": Growth, "session": Session}


@dataclass(frozen=True)
class Results:
    """All lines of a file."""

    runs: list[Run] = field(default_factory=list)
    raw: list[Raw] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def add(self, record: Record) -> None:
        places: dict[type[Any], list[Any]] = {
            Run: self.runs,
            Raw: self.raw,
            Growth: self.growth,
            Session: self.sessions,
        }
        places[type(record)].append(record)

    def counted_whole(self, workloads: Collection[str]) -> Results:
        """The same with pods/s of these workloads counted from the start. Raw rates of bindings alone are left out
        there."""
        runs = [
            replace(run, pods_per_second=run.whole_per_second) if run.workload in workloads else run
            for run in self.runs
        ]
        raw = [each for each in self.raw if each.is_whole == (each.workload in workloads)]
        return Results(runs, raw, self.growth, self.sessions)

    def measured(self) -> list[Key]:
        return list(dict.fromkeys(run.key for run in self.runs))

    def newest(self, key: Key) -> list[Run]:
        """The runs that count for one workload, mode and size."""
        runs = [run for run in self.runs if run.key == key]
        by_session: dict[str, list[Run]] = {}
        for run in runs:
            by_session.setdefault(run.session, []).append(run)
        if not by_session:
            return []
        return max(by_session.values(), key=lambda each: (len({run.scheduler for run in each}), each[0].session))

    def of(self, key: Key, scheduler: str) -> list[Run]:
        return [run for run in self.newest(key) if run.scheduler == scheduler]

    def raw_rate(self, key: Key) -> float:
        """The median of the raw rates near the runs that count; 0 when none was measured."""
        sessions = {run.session for run in self.newest(key)}
        rates = [r.per_second for r in self.raw if (r.workload, r.nodes) == (key[0], key[2]) and r.session in sessions]
        return statistics.median(rates) if rates else 0.0

    def about(self) -> str:
        used = {run.session for key in self.measured() for run in self.newest(key)} | {
            g.session for g in self.growth[-1:]
        }
        return "\n".join(f"- {each.about}" for each in self.sessions if each.session in used)


def append(folder: Path, record: Record) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kind = next(name for name, of in _KINDS.items() if isinstance(record, of))
    with (folder / FILE).open("a") as file:
        file.write(json.dumps({"kind": kind} | asdict(record)) + "\n")


def read(folder: Path) -> Results:
    """Everything in the file. A last line that was cut short is left out."""
    results = Results()
    path = folder / FILE
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            document = json.loads(line)
            results.add(_KINDS[document.pop("kind")](**document))
        except (ValueError, TypeError, KeyError):
            continue
    return results


def medians(runs: Iterable[Run]) -> dict[str, float]:
    runs = list(runs)
    names = (
        "pods_per_second",
        "p50_ms",
        "p99_ms",
        "cpu_life_per_1000",
        "cpu_window_per_1000",
        "peak_mib",
        "decision_ms",
        "first_bound_seconds",
        "last_bound_seconds",
        "created_per_second",
    )
    return {name: statistics.median(getattr(run, name) for run in runs) for name in names} if runs else {}
