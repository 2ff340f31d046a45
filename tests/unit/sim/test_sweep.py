"""Sweeps: every policy by every seed on every workload, resumed where they stopped, the same wherever they run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_until

from bayplan.api.decode import InputError
from bayplan.sim.compare import PolicyVariant, RunPlan
from bayplan.sim.sweep import CellResult, Sweep, SweepError, means, parse_seeds, run_sweep

EXAMPLES = Path(__file__).parents[3] / "examples"
TIMED = """\
apiVersion: bayplan.dev/v1alpha1
kind: Workload
items:
- {name: web, arrivals: {times: times/web.csv}, template: {spec: {containers: [{name: main}]}}}
"""
PLUGIN = """\
from bayplan.framework import Plugin

class LastNode(Plugin):
    def score(self, state, pod, node):
        return 100 if node.name == "large-3" else 0
"""


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A workload with a file of its own, a cluster and a plugin."""
    folder = tmp_path / "inputs"
    (folder / "times").mkdir(parents=True)
    (folder / "timed.yaml").write_text(TIMED)
    (folder / "times" / "web.csv").write_text("time,duration\n0,60\n5,\n9,30\n")
    (folder / "last_node.py").write_text(PLUGIN)
    shutil.copy(EXAMPLES / "simulate" / "cluster.yaml", folder)
    return folder


def sweep_of(inputs: Path, folder: Path, *, seeds: int = 2) -> Sweep:
    cluster = (inputs / "cluster.yaml",)
    return Sweep(
        plans=[
            RunPlan(workload=inputs / "timed.yaml", cluster=cluster),
            RunPlan(workload=EXAMPLES / "plan" / "workload.yaml", cluster=cluster, until="20m"),
        ],
        variants=[PolicyVariant(name="default"), PolicyVariant(name="last", plugins=(str(inputs / "last_node.py"),))],
        seeds=range(seeds),
        folder=folder,
    )


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_results_are_the_same_in_one_process_and_in_several_and_from_other_folders(
    inputs: Path, tmp_path: Path
) -> None:
    alone = run_sweep(sweep_of(inputs, tmp_path / "alone"), processes=1)
    moved = inputs.rename(tmp_path / "moved")
    run_sweep(sweep_of(moved, tmp_path / "several"), processes=2)

    assert files_of(tmp_path / "alone") == files_of(tmp_path / "several")
    assert len(files_of(tmp_path / "alone")) == 2 * 2 * 2
    assert [(each.workload, each.variant, each.seed) for each in alone[:3]] == [
        ("timed", "default", 0),
        ("timed", "default", 1),
        ("timed", "last", 0),
    ]
    assert len({each.digest for each in alone if each.workload == "timed"}) > 1


def test_a_sweep_goes_on_where_it_stopped_and_repeats_what_changed(inputs: Path, tmp_path: Path) -> None:
    def run(seeds: int = 2) -> list[tuple[str, str, int]]:
        """What was computed."""
        computed: list[tuple[str, str, int]] = []

        def done(result: CellResult, was_there: bool) -> None:
            if not was_there:
                computed.append((result.workload, result.variant, result.seed))

        run_sweep(sweep_of(inputs, tmp_path / "results", seeds=seeds), processes=1, done=done)
        return computed

    assert len(run(seeds=1)) == 4
    assert {seed for _, _, seed in run()} == {1}
    before = files_of(tmp_path / "results")
    (tmp_path / "results" / "timed.default.0.json").write_text('{"format": 1, "key":')
    assert run() == [("timed", "default", 0)]
    assert files_of(tmp_path / "results") == before
    (inputs / "times" / "web.csv").write_text("time\n0\n")
    assert {workload for workload, _, _ in run()} == {"timed"}
    (inputs / "last_node.py").write_text(PLUGIN.replace("large-3", "large-2"))
    assert {variant for _, variant, _ in run()} == {"last"}


def test_files_of_times_that_change_places_are_another_workload(inputs: Path, tmp_path: Path) -> None:
    times = inputs / "times"
    other = TIMED + TIMED.splitlines()[-1].replace("web", "db") + "\n"
    (inputs / "timed.yaml").write_text(other)
    (times / "db.csv").write_text("time\n100\n")
    sweep = sweep_of(inputs, tmp_path / "results", seeds=1)
    before = [result.digest for result in run_sweep(sweep, processes=1)]
    for old, new in (("web", "kept"), ("db", "web"), ("kept", "db")):
        (times / f"{old}.csv").rename(times / f"{new}.csv")

    after = [result.digest for result in run_sweep(sweep, processes=1)]

    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True, True]


def test_a_problem_of_one_cell_is_named_with_the_users_own_path_and_results_stay(inputs: Path, tmp_path: Path) -> None:
    sweep = sweep_of(inputs, tmp_path / "results", seeds=1)
    broken = Sweep(
        plans=sweep.plans[:1],
        variants=[*sweep.variants, PolicyVariant(name="broken", config=inputs / "broken.yaml")],
        seeds=[0],
        folder=sweep.folder,
    )
    (inputs / "broken.yaml").write_text("kind: Nothing\n")

    with pytest.raises(InputError, match=f"timed, broken, seed 0: {inputs}/broken.yaml"):
        run_sweep(broken, processes=2)
    assert set(files_of(sweep.folder)) <= {"timed.default.0.json", "timed.last.0.json"}


def test_two_results_with_one_name_are_refused(inputs: Path, tmp_path: Path) -> None:
    sweep = sweep_of(inputs, tmp_path / "results")
    variants = [PolicyVariant(name="a b"), PolicyVariant(name="a/b")]

    with pytest.raises(InputError, match=r"two results would be written to timed.a_b.0.json"):
        run_sweep(Sweep(plans=sweep.plans, variants=variants, seeds=[0], folder=sweep.folder))


def test_a_folder_that_cannot_be_written_is_named(inputs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match=r"file/results: cannot be made"):
        run_sweep(sweep_of(inputs, tmp_path / "file" / "results"))


def test_means_are_over_the_seeds() -> None:
    def result(seed: int, wait: float) -> CellResult:
        return CellResult(
            format=1,
            key="",
            workload="w",
            variant="v",
            seed=seed,
            seconds=1.0,
            measures={"wait.p99": wait},
            reasons={},
            failures={},
            digest="",
        )

    assert means([result(0, 1.0), result(1, 3.0)]) == {("w", "v"): {"wait.p99": (2.0, pytest.approx(2.0**0.5))}}


def test_seeds_are_a_number_a_range_or_a_list() -> None:
    assert parse_seeds("3") == [0, 1, 2]
    assert parse_seeds("3-5") == [3, 4, 5]
    assert parse_seeds("1,7,9-10") == [1, 7, 9, 10]


@pytest.mark.parametrize("text", ["", "0", "x", "1-", "-1", "5-3", "1,1", "9999999"])
def test_other_seeds_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="seeds"):
        parse_seeds(text)


# Dask


def test_without_dask_the_error_says_what_to_install(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(SweepError, match=r"pip install 'bayplan\[dask\]'"):
        run_sweep(sweep_of(inputs, tmp_path / "results"), dask="tcp://127.0.0.1:1")


@pytest.fixture
def dask_cluster(tmp_path: Path) -> Iterator[str]:
    """A scheduler and two workers, processes of their own in an empty folder; their address."""
    place, started = tmp_path / "dask", list[subprocess.Popen[bytes]]()
    place.mkdir()
    file = place / "scheduler.json"

    def start(module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(file), *arguments]
        with (place / f"{module}-{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, cwd=place, stdout=log, stderr=log))

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), what="the Dask scheduler")
        for number in range(2):
            start(
                "dask_worker",
                "--host",
                "127.0.0.1",
                "--nthreads",
                "1",
                "--no-nanny",
                "--no-dashboard",
                f"--name=w{number}",
            )
        yield json.loads(file.read_text())["address"]
    finally:
        # Nothing is left to save: a worker that is told to end looks for its scheduler for minutes.
        for process in started:
            process.kill()
        for process in started:
            process.wait()


@pytest.mark.e2e
def test_a_dask_cluster_gives_the_same_bytes(inputs: Path, tmp_path: Path, dask_cluster: str) -> None:
    import distributed

    with distributed.Client(dask_cluster) as client:
        client.wait_for_workers(2, timeout=60)
    run_sweep(sweep_of(inputs, tmp_path / "here"), processes=1)
    run_sweep(sweep_of(inputs, tmp_path / "there"), dask=dask_cluster)

    assert files_of(tmp_path / "here") == files_of(tmp_path / "there")
    (inputs / "broken.yaml").write_text("kind: Nothing\n")
    broken = [PolicyVariant(name="broken", config=inputs / "broken.yaml")]
    with pytest.raises(InputError, match=r"timed, broken, seed 0: .*broken.yaml"):
        run_sweep(
            Sweep(plans=sweep_of(inputs, tmp_path).plans[:1], variants=broken, seeds=[0], folder=tmp_path / "there"),
            dask=dask_cluster,
        )


@pytest.mark.e2e
def test_an_address_where_nobody_answers_is_named(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"no Dask scheduler answers at `tcp://127\.0\.0\.1:1`"):
        run_sweep(sweep_of(inputs, tmp_path / "results"), dask="tcp://127.0.0.1:1")
