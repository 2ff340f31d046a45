"""`make bench`: kube-scheduler and Bayplan on the same objects of one real API server, alternating.

    python -m bench.versus                                     everything, the most important workloads first
    python -m bench.versus --group target --rounds 3           the workloads that the targets were written for
    python -m bench.versus --workload plain --nodes 500 5000   one workload, two sizes
    python -m bench.versus --workload preemption --busy 4      beside four processes that only compute
    python -m bench.versus --smoke                             every workload, tiny, once: does it all work?
    python -m bench.versus --report                            the report again, from what is there

Client QPS is raised to 10,000 on both sides. Each measurement is appended to bench/results/versus.jsonl when it is
there; the report (Markdown, JSON, SVG) is made from that file, so an interrupted bench keeps what it has.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import ControlPlane, ControlPlaneOptions

from bench.bytecode import compile_sources
from bench.versus.cluster import BenchCluster
from bench.versus.growth import growth
from bench.versus.measure import Task, measure
from bench.versus.plan import RAW, Choice, Pace, Step, steps
from bench.versus.progress import ProgressPrinter
from bench.versus.raw import raw_binding_rate
from bench.versus.records import Raw, Record, Run, Session, append, read
from bench.versus.report import save
from bench.versus.schedulers import ADMIN, SCHEDULER, SCHEDULERS
from bench.versus.stage import Stage
from bench.versus.workload import load_workloads

_RESULTS = Path("bench/results")
_GROWTH_SIZES = [500, 5_000, 15_000]
_GROWTH_PODS = 150_000
_SMOKE_NODES, _SMOKE_PODS = 500, 100


def main() -> int:
    options = _options()
    workloads = load_workloads(options.workload, options.group)
    if options.list:
        for workload in workloads:
            sizes = ", ".join(f"{size:,}" for size in workload.sizes)
            print(f"{workload.name:<26}{workload.group:<8}{sizes:<14}{workload.about}")
        return 0
    failures = 0 if options.report else _run(options, steps(workloads, _choice(options)))
    print(save(options.results, read(options.results), load_workloads()))
    print(f"reports and plots are in {options.results}", file=sys.stderr)
    return 1 if failures else 0


def _run(options: argparse.Namespace, plan: list[Step]) -> int:
    compile_sources()
    session = time.strftime("%Y-%m-%dT%H:%M:%S")
    append(options.results, Session(session=session, about=_about(options)))
    failures = 0
    with ProgressPrinter(len(plan)) as printer:
        try:
            pace = Pace()
            for number, step in enumerate(plan):
                printer.begin(step.title, pace.left_seconds(plan[number:]))
                began = time.perf_counter()
                with _control_plane() as plane:
                    failures += not _loop(_Measurement(plane, session, options, printer).keep(step))
                pace.took(step, time.perf_counter() - began)
            if options.growth:
                _grow(options, session, printer)
        except (KeyboardInterrupt, asyncio.CancelledError):
            printer.say("interrupted; what was measured is kept")
            failures += 1
    return failures


def _control_plane() -> ControlPlane:
    """A new one for every measurement: an API server whose memory has grown over many runs collects its garbage seldom
    and then for seconds, in one run and not in the next."""
    return ControlPlane(ControlPlaneOptions(users={ADMIN[0]: ADMIN[1], SCHEDULER: ()}))


def _grow(options: argparse.Namespace, session: str, printer: ProgressPrinter) -> None:
    # Fewer nodes have no room for a round of pods that want a node each.
    sizes = sorted({max(_GROWTH_SIZES[0], nodes) for nodes in options.nodes or _GROWTH_SIZES})
    pods = 10 * _SMOKE_PODS if options.smoke else _GROWTH_PODS
    for record in growth(session, printer.say, sizes=sizes, bound_pods=pods):
        append(options.results, record)


def _loop(work: Coroutine[None, None, bool]) -> bool:
    """On uvloop where there is one: the bench shares the machine with those it measures."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


@dataclass
class _Measurement:
    """One step of the plan, on a control plane of its own."""

    plane: ControlPlane
    session: str
    options: argparse.Namespace
    printer: ProgressPrinter

    async def keep(self, step: Step) -> bool:
        """Measure and write down. One step that fails must not cost the others."""
        cluster = BenchCluster(self.plane.token_kubeconfig(self.plane.token_for(*ADMIN)))
        _cancel_on_signals()
        try:
            record = await self._measured(Stage(cluster, self.printer.say), step)
        except Exception as error:
            self.printer.say(f"{step.title} FAILED: {_first_of(error)}")
            if self.options.verbose:
                traceback.print_exc()
            return False
        finally:
            await cluster.close()
        append(self.options.results, record)
        self.printer.say(f"    {_told(record)}")
        return True

    async def _measured(self, stage: Stage, step: Step) -> Record:
        workload, nodes = step.workload, step.nodes
        pods = workload.pod_count(nodes, self.options.pods)
        if step.what == RAW:
            rate = await raw_binding_rate(self.plane, stage, workload, nodes, pods, busy=self.options.busy)
            whole = workload.counts_whole
            return Raw(session=self.session, workload=workload.name, nodes=nodes, per_second=rate, is_whole=whole)
        task = Task(
            session=self.session,
            workload=workload,
            scheduler=step.what,
            nodes=nodes,
            pods=pods,
            rate=step.rate,
            busy=self.options.busy,
            is_asked=step.is_asked,
            give_up_seconds=self.options.give_up,
            profile=self._profile(step) if self.options.profile else None,
        )
        return await measure(self.plane, stage, task)

    def _profile(self, step: Step) -> Path:
        self.printer.say("    under cProfile: the figures of this run are worse than they would be")
        return Path(self.options.results) / f"{step.workload.name}-{step.nodes}.pstats"


def _cancel_on_signals() -> None:
    """Ctrl-C and SIGTERM end the run in good order: the scheduler that is being measured must not stay behind."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _first_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(record: Record) -> str:
    if isinstance(record, Raw):
        return f"{record.per_second:,.0f} bindings/s"
    assert isinstance(record, Run)
    return (
        f"{record.bound:,} of {record.pods:,} bound, {record.pods_per_second:,.0f} pods/s, "
        f"the last after {record.last_bound_seconds:.2f} s, "
        f"p99 {record.p99_ms:,.0f} ms, decision {record.decision_ms:.3f} ms, "
        f"CPU {record.cpu_life_per_1000:.2f} s per 1,000, peak {record.peak_mib:,.0f} MiB"
    )


def _choice(options: argparse.Namespace) -> Choice:
    return Choice(
        schedulers=[name for name in SCHEDULERS if options.only in ("", name)],
        rounds=options.rounds,
        sizes=options.nodes,
        modes=("backlog", "arrival") if options.mode == "both" else (options.mode,),
        rate=options.arrival,
        kube_scheduler_up_to=options.kube_scheduler_up_to,
    )


def _about(options: argparse.Namespace) -> str:
    load = os.getloadavg()[0]
    return (
        f"{time.strftime('%Y-%m-%d %H:%M')}: {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}, {options.rounds} rounds, load at the start {load:.1f}"
        f"{'; a smoke run, too small to judge by' if options.smoke else ''}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add: Callable[..., object] = parser.add_argument
    add("--workload", nargs="*", default=[], help="names (default: all)")
    add("--group", default="", choices=["", "target", "more"], help="only workloads of this group")
    add("--nodes", type=int, nargs="*", help="sizes, instead of those of the workloads")
    add("--pods", type=int, default=0, help="measure so many pods at most")
    add("--rounds", type=int, default=3)
    add("--mode", default="both", choices=["both", "backlog", "arrival", "none"], help="`none` for --growth alone")
    add("--arrival", type=float, help="pods a second arriving, for every workload (default: as each says; 0: none)")
    add("--busy", type=int, default=0, help="processes that compute beside it")
    add("--only", default="", choices=["", *SCHEDULERS], help="one scheduler only")
    add("--kube-scheduler-up-to", type=int, metavar="NODES", help="leave kube-scheduler out at larger sizes")
    add("--give-up", type=float, default=300.0, metavar="SECONDS", help="end a run that takes longer")
    add(
        "--growth",
        action=argparse.BooleanOptionalAction,
        help="also decisions without an API server (default: with all)",
    )
    add("--profile", action="store_true", help="run Bayplan under cProfile; WORKLOAD-NODES.pstats in the results")
    add("--smoke", action="store_true", help=f"{_SMOKE_NODES} nodes, {_SMOKE_PODS} pods, one round")
    add("--results", type=Path, default=_RESULTS)
    add("--report", action="store_true", help="measure nothing; make the report again")
    add("--list", action="store_true", help="list the workloads")
    add("--verbose", action="store_true", help="print the whole story of an error")
    options = parser.parse_args()
    if options.growth is None:
        options.growth = not (options.workload or options.group or options.only or options.mode != "both")
    if options.smoke:
        options.nodes, options.pods, options.rounds = options.nodes or [_SMOKE_NODES], options.pods or _SMOKE_PODS, 1
    return options


if __name__ == "__main__":
    sys.exit(main())
