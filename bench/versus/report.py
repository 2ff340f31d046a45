"""What a benchmark found: tables for people, JSON for programs, plots as SVG. All of it is made from the records."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench.versus import charts
from bench.versus.records import Growth, Key, Results, Run, medians
from bench.versus.targets import TARGET_NAMES, Verdict, growth_verdicts, verdicts
from bench.versus.workload import Workload

THEIRS, OURS = "kube-scheduler", "bayplan"
_PROCESSES = ("scheduler", "kube-apiserver", "etcd", "bench", "others")
_SPEED_HEAD = (
    "workload",
    "mode",
    "nodes",
    "pods",
    "kube-scheduler pods/s",
    "bayplan pods/s",
    "ratio",
    "raw bindings/s",
    "of raw",
    "all bound after, s (ks / bp)",
    "decision ms (ks / bp)",
    "p50 ms (ks / bp)",
    "p99 ms (ks / bp)",
    "peak MiB (ks / bp)",
)
_TARGET_HEAD = (
    "workload",
    "mode",
    "nodes",
    "pods/s to kube-scheduler",
    "share of raw",
    "decision time to kube-scheduler",
    "CPU from its start",
    "CPU first to last bind",
    "peak memory",
    "p99 latency",
)
_CPU_HEAD = (
    "workload",
    "mode",
    "nodes",
    "scheduler",
    "per 1,000 pods: from its start",
    "per 1,000 pods: first to last bind",
    "seconds to first bind",
    *(f"{name}: cores" for name in _PROCESSES),
)


def save(folder: Path, results: Results, workloads: list[Workload]) -> str:
    """Write everything; the Markdown is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    results = results.counted_whole({workload.name for workload in workloads if workload.counts_whole})
    text = markdown(results, workloads)
    (folder / "versus.md").write_text(text)
    (folder / "versus.json").write_text(json.dumps(document(results, workloads), indent=1) + "\n")
    for name, picture in pictures(results, workloads):
        (folder / name).write_text(picture)
    return text


def markdown(results: Results, workloads: list[Workload]) -> str:
    keys = ordered_keys(results, workloads)
    parts = [
        "# Side by side with kube-scheduler",
        results.about(),
        "Both schedulers ran in turn on the same objects of one API server, client QPS raised to 10,000 on both sides; "
        "Bayplan scores every node. Medians of rounds. pods/s count from the first to the last binding that a watcher "
        "sees (of pods that evict others or wait for volumes: from the start of the scheduler), latency from creation "
        "to binding as it sees both (in a backlog: from the start of the scheduler). "
        "The raw binding rate is what a bare client with 48 requests in flight got just before each round, with the "
        "same pods and as the same user, seen by the same watcher; evictions and volumes that pods need included.",
        "## Speed",
        table(_SPEED_HEAD, (_speed_row(results, key) for key in keys)),
        "## Targets",
        _targets(results, workloads, keys),
        "## Who used the processors",
        "CPU seconds of the scheduler per 1,000 pods, counted from the start of its process (reading the cluster "
        "included) and from the first to the last binding alone; and how many cores each process kept busy between "
        "those two bindings. `bench` is the watcher, which in arrival mode also creates the pods, "
        "`others` everybody else on the machine: with more than a tenth of a core there, it was not quiet.",
        table(_CPU_HEAD, (row for key in keys for row in _cpu_rows(results, key))),
    ]
    if asked := [run for key in keys for run in results.newest(key) if run.answers]:
        parts += ["## Answers", _answers_text(asked)]
    if results.growth:
        parts += ["## Growth", _growth_text(newest_growth(results))]
    return "\n\n".join(part for part in parts if part) + "\n"


def ordered_keys(results: Results, workloads: list[Workload]) -> list[Key]:
    """Workloads in their order of importance; those that nobody knows any more are left out."""
    order = {workload.name: place for place, workload in enumerate(workloads)}
    known = [key for key in results.measured() if key[0] in order]
    return sorted(known, key=lambda key: (key[1].startswith("arrival"), order[key[0]], key[2]))


def table(head: tuple[str, ...], rows: Iterator[list[str]]) -> str:
    """Nothing when there are no rows."""
    found = list(rows)
    lines = [list(head), ["---"] * len(head), *found] if found else []
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _speed_row(results: Results, key: Key) -> list[str]:
    theirs, ours = (medians(results.of(key, name)) for name in (THEIRS, OURS))
    raw = results.raw_rate(key)
    rate = "pods_per_second"
    ratio = ours[rate] / theirs[rate] if theirs and ours and theirs[rate] else 0.0

    def pair(name: str, form: str) -> str:
        return " / ".join(format(side[name], form) if side and side[name] else "-" for side in (theirs, ours))

    return [
        key[0],
        key[1] + _shortfall(key[1], theirs, ours),
        f"{key[2]:,}",
        _pods(results.newest(key)),
        f"{theirs[rate]:,.0f}" if theirs else "-",
        f"{ours[rate]:,.0f}" if ours else "-",
        f"{ratio:.1f}" if ratio else "-",
        f"{raw:,.0f}" if raw else "-",
        f"{ours[rate] / raw:.0%}" if ours and raw else "-",
        pair("last_bound_seconds", ".1f"),
        pair("decision_ms", ".3f"),
        pair("p50_ms", ",.0f"),
        pair("p99_ms", ",.0f"),
        pair("peak_mib", ",.0f"),
    ]


def _shortfall(mode: str, *sides: dict[str, float]) -> str:
    """Pods that came slower than asked for are said, because latency then means something else."""
    if not mode.startswith("arrival"):
        return ""
    asked = float(mode.partition(",")[0].removeprefix("arrival ").removesuffix("/s"))
    came = [side["created_per_second"] for side in sides if side]
    return f" (came at {' / '.join(f'{rate:.0f}' for rate in came)})" if min(came) < 0.95 * asked else ""


def _pods(runs: list[Run]) -> str:
    """How many pods, and by whom some were not bound."""
    late = [f"{run.scheduler} bound {run.bound:,}" for run in runs if run.bound < run.pods]
    return f"{runs[0].pods:,}{f' ({chr(44).join(late)})' if late else ''}"


def _targets(results: Results, workloads: list[Workload], keys: list[Key]) -> str:
    """One row a workload, one column a target; a bold cell is a target that is missed."""
    judged = list(all_verdicts(results, workloads, keys))
    grown = growth_verdicts(newest_growth(results))
    every = [verdict for _, verdict in judged] + grown
    if not every:
        return "None could be judged."
    met = sum(verdict.is_met for verdict in every)
    about = "Targets are meant for 5,000 nodes on a quiet machine; `≥` and `≤` say what is asked, bold what is missed."
    parts = [f"{met} of {len(every)} met. {about}", table(_TARGET_HEAD, _target_rows(judged))]
    return "\n\n".join([*parts, "\n".join(f"- {verdict}" for verdict in grown)])


def _target_rows(judged: list[tuple[Key, Verdict]]) -> Iterator[list[str]]:
    for key in dict.fromkeys(key for key, _ in judged):
        cells = {verdict.name: verdict.cell for each, verdict in judged if each == key}
        yield [key[0], key[1], f"{key[2]:,}", *(cells.get(name, "") for name in TARGET_NAMES)]


def all_verdicts(results: Results, workloads: list[Workload], keys: list[Key]) -> Iterator[tuple[Key, Verdict]]:
    targets = {workload.name: workload.targets for workload in workloads}
    for key in keys:
        theirs, ours = (medians(results.of(key, name)) for name in (THEIRS, OURS))
        for verdict in verdicts(targets[key[0]], key[1], theirs, ours, results.raw_rate(key)):
            yield key, verdict


def _cpu_rows(results: Results, key: Key) -> Iterator[list[str]]:
    for scheduler in (THEIRS, OURS):
        runs = results.of(key, scheduler)
        if runs:
            values = medians(runs)
            life, window = values["cpu_life_per_1000"], values["cpu_window_per_1000"]
            figures = [f"{life:.2f}", f"{window:.2f}", f"{values['first_bound_seconds']:.1f}"]
            if not values["pods_per_second"]:
                figures = ["-"] * len(figures)
            yield [key[0], key[1], f"{key[2]:,}", scheduler, *figures, *(f"{_cores(runs, p):.2f}" for p in _PROCESSES)]


def _cores(runs: list[Run], process: str) -> float:
    return statistics.median(run.cores(process) for run in runs)


def _answers_text(runs: list[Run]) -> str:
    rows = []
    for question in runs[0].answers:
        taken = [1e3 * seconds for run in runs for seconds in run.answers.get(question, ())]
        rows.append([question, f"{len(taken)}", f"{statistics.median(taken):,.0f}", f"{max(taken):,.0f}"])
    return (
        "What a client waited for answers of Bayplan that it asked one after the other, from the first binding of a "
        "backlog on; the rows with `asked` above have what that cost pods.\n\n"
        + table(("question", "asked", "median ms", "slowest ms"), iter(rows))
    )


def newest_growth(results: Results) -> list[Growth]:
    newest = max((each.session for each in results.growth), default="")
    return [each for each in results.growth if each.session == newest]


def _growth_text(growth: list[Growth]) -> str:
    rows = ([g.workload, f"{g.nodes:,}", f"{g.bound_pods:,}", f"{g.decision_us:.1f}"] for g in growth)
    return (
        "Decisions in one process without an API server (`bench.measuring`), CPU time at the reference speed.\n\n"
        + table(("workload", "nodes", "bound pods", "µs a decision"), rows)
    )


def document(results: Results, workloads: list[Workload]) -> dict[str, object]:
    keys = ordered_keys(results, workloads)
    found = [
        {
            "workload": key[0],
            "mode": key[1],
            "nodes": key[2],
            "rawBindingsPerSecond": results.raw_rate(key),
            THEIRS: medians(results.of(key, THEIRS)),
            OURS: medians(results.of(key, OURS)),
            "runs": [asdict(run) for run in results.newest(key)],
        }
        for key in keys
    ]
    judged = [
        {"workload": key[0], "mode": key[1], "nodes": key[2]} | asdict(verdict)
        for key, verdict in all_verdicts(results, workloads, keys)
    ]
    return {
        "about": results.about(),
        "workloads": found,
        "targets": judged + [asdict(verdict) for verdict in growth_verdicts(newest_growth(results))],
        "growth": [asdict(each) for each in newest_growth(results)],
    }


def pictures(results: Results, workloads: list[Workload]) -> Iterator[tuple[str, str]]:
    keys = ordered_keys(results, workloads)
    sizes = sorted({key[2] for key in keys if key[1] == "backlog"})
    first = {workload.name for workload in workloads if workload.group == "target"}
    for nodes in sizes:
        here = [key for key in keys if key[1] == "backlog" and key[2] == nodes]
        for name, some in (("all-", here), ("", [key for key in here if key[0] in first])):
            rows = [_bar_row(results, key) for key in some]
            yield f"pods-per-second-{name}{nodes}.svg", charts.bars(rows, f"Backlog on {nodes:,} nodes")
    for key in keys:
        name = f"{key[0]}-{key[2]}{_suffix(key[1])}.svg"
        title = f"{key[0]}: {key[1]}, {key[2]:,} nodes, created and scheduled pods"
        yield name, charts.over_time(_time_series(results.newest(key)), title)
    growth = newest_growth(results)
    lines = _growth_series(growth)
    if lines:
        yield "cost-against-nodes.svg", charts.against_nodes(lines, "Cost of a decision against nodes (no API server)")
    for workload in dict.fromkeys(key[0] for key in keys):
        both = _decision_series(results, [key for key in keys if key[0] == workload and key[1] == "backlog"])
        if both:
            title = f"{workload}: time per decision by the schedulers' own metrics"
            picture = charts.against_nodes(both, title, up="ms a decision")
            yield f"decision-against-nodes-{workload}.svg", picture


def _suffix(mode: str) -> str:
    """Of the name of a file: nothing for a backlog, `-arrival`, and what else went on."""
    how, *beside = mode.split(", ")
    return "".join(["-arrival" if how != "backlog" else "", *(f"-{each.replace(' ', '-')}" for each in beside)])


def _bar_row(results: Results, key: Key) -> tuple[str, dict[str, float], float]:
    sides = {name: medians(results.of(key, name)).get("pods_per_second", 0.0) for name in (THEIRS, OURS)}
    return key[0], sides, results.raw_rate(key)


def _time_series(runs: list[Run]) -> list[charts.Series]:
    longest = max((run.timeline[-1][0] for run in runs if run.timeline), default=0.0)
    created = {tuple(_created(run, longest)) for run in runs}
    series: list[charts.Series] = [("created", "created", list(points)) for points in sorted(created)]
    bound = [(run.scheduler, [(x, float(y)) for x, y in run.timeline]) for run in runs]
    return series + [(scheduler, f"{scheduler}, scheduled", points) for scheduler, points in bound]


def _created(run: Run, longest: float) -> list[tuple[float, float]]:
    """A backlog is all there when the scheduler starts."""
    if run.mode == "backlog":
        return [(0.0, float(run.pods)), (longest, float(run.pods))]
    return [(x, float(y)) for x, y in run.created]


def _growth_series(growth: list[Growth]) -> list[charts.Series]:
    found: list[charts.Series] = []
    for workload in dict.fromkeys(each.workload for each in growth):
        points = sorted((float(g.nodes), g.decision_us) for g in growth if g.workload == workload)
        if len({x for x, _ in points}) > 1:
            found.append((charts.colour(len(found)), workload, points))
    return found


def _decision_series(results: Results, keys: list[Key]) -> list[charts.Series]:
    """One line a scheduler; none where a workload was measured at one size only."""
    found: list[charts.Series] = []
    for scheduler in (THEIRS, OURS) if len(keys) > 1 else ():
        points = [(float(key[2]), medians(results.of(key, scheduler)).get("decision_ms", 0.0)) for key in keys]
        found.append((scheduler, scheduler, [point for point in points if point[1]]))
    return found
