"""The openb trace by six policies, against the published results; exit status 1 where they differ too much.

python -m bench.openb [--seeds 10] [--jobs 2] [--write FILE.csv] [--plot FILE.svg]
python -m bench.openb --variants       one variant of each family, and the table of tie rules
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench.openb.plot import Panel, panels_svg
from bench.openb.policies import POLICIES
from bench.openb.runs import DEMANDS, TIE_RULES, Curve, Job, Result, mean_curve, published, run_all

_FIRST_SEED = 42
_MOST_POINTS_OFF = 0.5
_MOST_POINTS_OFF_ALONG = 1.0
_CLEAR_ORDER = 0.5
_RATIO, _RATIO_MARGIN = 0.50, 0.03
_TIED = ("FGD", "GpuPacking", "GpuClustering")
_VARIANTS = ("cpu200", "gpushare40", "gpuspec20", "multigpu30")


def main() -> int:
    options = _options()
    return _variants(options) if options.variants else _default(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--write", type=Path, help="a CSV file for the curves")
    parser.add_argument("--plot", type=Path, help="an SVG file for the curves")
    return parser.parse_args()


def _run(jobs: list[Job], processes: int) -> dict[tuple[str, str, str], list[Result]]:
    """By trace, policy and tie rule."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    began = time.monotonic()
    for number, result in enumerate(run_all(jobs, processes=processes), start=1):
        job = result.job
        found.setdefault((job.trace, job.policy, job.tie_rule), []).append(result)
        told = f"{number} of {len(jobs)}, {time.monotonic() - began:.0f} s: {job.trace} {job.policy} seed {job.seed}"
        told += f": {result.curve[130]:.2f} %"
        print(f"\r\x1b[2K{told}" if sys.stderr.isatty() else told, end="", file=sys.stderr, flush=True)
        print(file=sys.stderr, end="" if sys.stderr.isatty() else "\n")
    return found


def _default(options: argparse.Namespace) -> int:
    seeds = range(_FIRST_SEED, _FIRST_SEED + options.seeds)
    runs = _run([Job(policy, seed) for policy in options.policies for seed in seeds], options.jobs)
    wanted, curves = published("default"), dict[str, Curve]()
    print("policy           published    here  lowest highest  at 100 %   farthest  CPU seconds a run")
    for (_, policy, _), results in runs.items():
        curve = curves[policy] = mean_curve(result.curve for result in results)
        ends = [result.curve[130] for result in results]
        off = max(abs(curve[percent] - wanted[policy][percent]) for percent in DEMANDS)
        seconds = sum(result.cpu_seconds for result in results) / len(results)
        print(
            f"{policy:<15} {wanted[policy][130]:>10.2f} {curve[130]:>7.2f} {min(ends):>7.2f} {max(ends):>7.2f}"
            f" {curve[100]:>9.2f} {off:>10.2f} {seconds:>18.1f}"
        )
    problems = _problems(curves, wanted)
    for problem in problems:
        print(f"differs: {problem}")
    if options.write:
        _write(options.write, curves, wanted)
    if options.plot:
        options.plot.write_text(panels_svg([Panel("default", curves, wanted)]))
    return 1 if problems else 0


def _problems(curves: dict[str, Curve], wanted: dict[str, Curve]) -> list[str]:
    found = []
    for policy, curve in curves.items():
        off = abs(curve[130] - wanted[policy][130])
        along = max(abs(curve[percent] - wanted[policy][percent]) for percent in DEMANDS)
        if off > _MOST_POINTS_OFF:
            found.append(f"{policy} ends {off:.2f} points from the published mean, {_MOST_POINTS_OFF} at most")
        if along > _MOST_POINTS_OFF_ALONG:
            found.append(f"{policy} is {along:.2f} points from the published curve, {_MOST_POINTS_OFF_ALONG} at most")
    for first in curves:
        for second in curves:
            is_clear = wanted[first][130] - wanted[second][130] > _CLEAR_ORDER
            if is_clear and curves[first][130] <= curves[second][130]:
                found.append(f"{first} is not better than {second}, and was")
    if {"FGD", "DotProd"} <= curves.keys():
        ratio = (100.0 - curves["FGD"][130]) / (100.0 - curves["DotProd"][130])
        print(f"unallocated, FGD to DotProd: {ratio:.3f} (published 0.504)")
        if abs(ratio - _RATIO) > _RATIO_MARGIN:
            found.append(f"the ratio of unallocated GPUs is {ratio:.3f}, expected {_RATIO} ± {_RATIO_MARGIN}")
    return found


def _write(path: Path, curves: dict[str, Curve], wanted: dict[str, Curve]) -> None:
    lines = ["policy,demand_percent,published,here"]
    for policy, curve in curves.items():
        lines += [f"{policy},{percent},{wanted[policy][percent]:.2f},{curve[percent]:.2f}" for percent in DEMANDS]
    path.write_text("\n".join(lines) + "\n")


def _variants(options: argparse.Namespace) -> int:
    seeds = range(_FIRST_SEED, _FIRST_SEED + 2)
    jobs = [Job(policy, seed, trace) for trace in _VARIANTS for policy in options.policies for seed in seeds]
    jobs += [Job(policy, seed, tie_rule=rule) for policy in _TIED for rule in TIE_RULES for seed in seeds]
    runs = _run(jobs, options.jobs)
    panels = [Panel(trace, _curves(runs, trace, options.policies), published(trace)) for trace in _VARIANTS]
    print("trace        policy          published    here     off")
    worst = 0.0
    for trace, curves, published_curves in panels:
        for policy, curve in curves.items():
            wanted, here = published_curves[policy][130], curve[130]
            worst = max(worst, abs(here - wanted))
            print(f"{trace:<12} {policy:<15} {wanted:>9.2f} {here:>7.2f} {here - wanted:>+7.2f}")
    print(f"\nbetween equals, at 130 %   {'   '.join(f'{policy:<13}' for policy in _TIED)}")
    for rule in TIE_RULES:
        cells = [", ".join(f"{result.curve[130]:.2f}" for result in runs["default", policy, rule]) for policy in _TIED]
        print(f"{rule:<26} {'   '.join(f'{cell:<13}' for cell in cells)}")
    print(f"\nfarthest from a published mean of ten seeds: {worst:.2f} points")
    if options.plot:
        options.plot.write_text(panels_svg(panels))
    return 0


def _curves(runs: dict[tuple[str, str, str], list[Result]], trace: str, policies: list[str]) -> dict[str, Curve]:
    rule = Job._field_defaults["tie_rule"]
    return {policy: mean_curve(result.curve for result in runs[trace, policy, rule]) for policy in policies}


if __name__ == "__main__":
    sys.exit(main())
