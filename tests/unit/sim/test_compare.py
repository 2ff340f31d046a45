"""Variants side by side: equal runs, the first difference with its reasons, and conditions for exit codes."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bayplan.api.decode import InputError
from bayplan.sim.compare import PolicyVariant, RunPlan, find_divergence, parse_condition, run_variants
from bayplan.sim.experiment import MEASURE_FAMILIES, MEASURES, _mean
from bayplan.sim.report.files import write_decisions, write_samples, write_whole
from bayplan.sim.report.page import comparison_page

EXAMPLES = Path(__file__).parents[3] / "examples" / "simulate"
PLAN = RunPlan(workload=EXAMPLES / "workload.yaml", cluster=(EXAMPLES / "cluster.yaml",), until="2h")
DEFAULT = PolicyVariant(name="default")
PACKED = PolicyVariant(name="packed", config=EXAMPLES / "packed.yaml")


def test_variants_run_alike_in_one_process_and_in_several() -> None:
    alone = run_variants(PLAN, [DEFAULT, PACKED], processes=1)
    told: list[str] = []
    together = run_variants(PLAN, [DEFAULT, PACKED], processes=2, done=lambda outcome: told.append(outcome.variant))

    assert [outcome.digest for outcome in alone] == [outcome.digest for outcome in together]
    assert [outcome.measures for outcome in alone] == [outcome.measures for outcome in together]
    assert sorted(told) == ["default", "packed"]


@pytest.mark.parametrize("processes", [1, 2])
def test_how_far_each_variant_is_can_be_watched(processes: int) -> None:
    watched: list[Sequence[float]] = []

    run_variants(PLAN, [DEFAULT, PACKED], processes=processes, watch=watched.append)

    (seconds,) = watched
    assert [round(each) for each in seconds] == [7200, 7200]


def test_the_first_difference_comes_with_the_points_of_both() -> None:
    outcomes = run_variants(PLAN, [DEFAULT, PACKED], processes=1)

    found = find_divergence(PLAN, (DEFAULT, PACKED), (outcomes[0], outcomes[1]))

    assert found is not None
    for choice, outcome in zip(found.choices, outcomes, strict=True):
        line = outcome.decisions[found.number]
        assert (choice.line.pod, choice.line.node) == (line.pod, line.node)
        assert choice.nodes[0][0] == line.node
        assert choice.nodes[0][1] == max(total for _, total, _ in choice.nodes) == sum(choice.nodes[0][2].values())
    assert find_divergence(PLAN, (DEFAULT, DEFAULT), (outcomes[0], outcomes[0])) is None


def test_the_seed_decides_ties_and_random_arrivals() -> None:
    other = RunPlan(workload=PLAN.workload, cluster=PLAN.cluster, until="2h", seed=1)

    (first,), (second,) = run_variants(PLAN, [DEFAULT]), run_variants(other, [DEFAULT])

    assert first.digest != second.digest


def test_results_are_written_whole(tmp_path: Path) -> None:
    outcomes = run_variants(PLAN, [DEFAULT, PACKED], processes=1)
    page = comparison_page(outcomes, [], title="a <b> test")
    write_whole(tmp_path / "page.html", page.encode())
    write_samples(tmp_path / "samples.csv", outcomes)
    write_decisions(tmp_path / "decisions.jsonl", outcomes)

    assert "a &lt;b&gt; test" in page
    assert "http" not in page
    assert page.count("<svg") == page.count("</svg>") >= 6
    assert (tmp_path / "samples.csv").read_text().startswith("variant,time,arrived,pending")
    lines = (tmp_path / "decisions.jsonl").read_text().splitlines()
    assert len(lines) == sum(len(outcome.decisions) for outcome in outcomes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decisions.jsonl", "page.html", "samples.csv"]


REFUSED = """\
apiVersion: bayplan.dev/v1alpha1
kind: Workload
until: 10m
items:
- {name: large, arrivals: {at: 0s, count: 3}, template: {spec: {containers: [
   {name: main, resources: {requests: {cpu: 30}}}]}}}
- {name: nowhere, arrivals: {at: 5m}, template: {spec: {nodeSelector: {no: where}, containers: [{name: main}]}}}
"""


def test_pods_that_wait_are_counted_by_the_plugins_that_refuse_them(tmp_path: Path) -> None:
    """Four large nodes have room for three pods of 30; on two there is room for two."""
    (tmp_path / "workload.yaml").write_text(REFUSED)
    cluster = (EXAMPLES / "cluster.yaml").read_text().replace("count: 4", "count: 2")
    (tmp_path / "cluster.yaml").write_text(cluster)
    plan = RunPlan(workload=tmp_path / "workload.yaml", cluster=(tmp_path / "cluster.yaml",))

    (outcome,) = run_variants(plan, [DEFAULT])

    waiting = {sample.time: sample.pending_by for sample in outcome.samples}
    assert waiting[100.0] == {"NodeResourcesFit": 1}
    assert waiting[500.0] == {"NodeAffinity": 1, "NodeResourcesFit": 1}
    assert outcome.measures["pending.by.NodeResourcesFit"] == pytest.approx(1.0, abs=1e-4)
    assert outcome.measures["pending.by.NodeAffinity"] == pytest.approx(0.5, abs=1e-4)
    assert outcome.measures["pending.mean"] == pytest.approx(1.5, abs=1e-4)
    page = comparison_page([outcome], [], title="waiting")
    assert "pods waiting, refused by NodeAffinity" in page
    assert "waiting, refused by NodeAffinity, mean" in page


def test_pods_that_wait_for_milliseconds_hardly_count_as_waiting() -> None:
    """Pods that arrive at the moment of a sample are in it, but the mean is one over time."""
    (outcome,) = run_variants(PLAN, [DEFAULT])

    assert outcome.samples[0].pending > 20
    assert outcome.measures["pending.mean"] == pytest.approx(
        outcome.measures["wait.mean"] * outcome.measures["pods.arrived"] / outcome.seconds, abs=1e-5
    )
    assert 0.0 < outcome.measures["pending.mean"] < 0.001
    assert "<td>&lt; 0.001</td>" in comparison_page([outcome], [], title="waiting")


def test_the_page_shows_how_many_pods_were_placed_otherwise() -> None:
    outcomes = run_variants(PLAN, [DEFAULT, PACKED], processes=1)

    assert "pods on another node than by default, so far" in comparison_page(outcomes, [], title="two")
    assert "pods on another node" not in comparison_page([outcomes[0], outcomes[0]], [], title="the same")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(tmp_path / "no" / "page.html", b"x")

    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays as it was, and half a new one is removed."""
    (tmp_path / "page.html").write_bytes(b"old")

    def write_half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_half)

    with pytest.raises(InputError, match=r"page.html: cannot be written: No space left on device"):
        write_whole(tmp_path / "page.html", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("page.html", b"old")]


def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "page.html").symlink_to(tmp_path / "kept" / "page.html")

    write_whole(tmp_path / "page.html", b"new")

    assert (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "kept" / "page.html").read_bytes() == b"new"


def test_a_pipe_gets_the_bytes_and_stays_a_pipe(tmp_path: Path) -> None:
    """As with /dev/null, which must not become a regular file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"all of it")

        assert os.read(reader, 100) == b"all of it"
    finally:
        os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert pipe.is_fifo()


def test_a_descriptor_is_written_to(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as stream:
        write_whole(Path(f"/dev/fd/{stream.fileno()}"), b"here")

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out", b"here")]


def test_a_name_may_be_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    write_whole(tmp_path / ("x" * 255), b"new")

    assert (tmp_path / ("x" * 255)).read_bytes() == b"new"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("wait.p99 > 1.05 * base.wait.p99", True),
        ("wait.p99 > 2 * base.wait.p99", False),
        ("pods.pending == 0 and wait.p99 < 12", True),
        ("10 < wait.p99 <= 11", True),
        ('allocated["example.com/gpu"] < 0.5 or wait.p99 - 10 > 5', True),
        ("-wait.p99 / 2 > 0", False),
        ("pods.pending / base.pods.pending > 1.05", False),
        ("wait.p99 / base.pods.pending > 1e300", True),
        ("-wait.p99 / base.pods.pending > 0", False),
        ("pending.by.NodeResourcesFit > base.pending.by.NodeResourcesFit", True),
        ('pending.by["NodeAffinity, NodeResourcesFit"] > 0', False),
    ],
)
def test_a_condition_compares_measures(text: str, holds: bool) -> None:
    own = {"wait.p99": 11.0, "pods.pending": 0.0, "allocated.example.com/gpu": 0.25, "pending.by.NodeResourcesFit": 0.5}

    assert parse_condition(text)(own, {"wait.p99": 10.0, "pods.pending": 0.0}) is holds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("wait.p99 >", "is no expression"),
        ("__import__('os')", r"--fail-if: `__import__\('os'\)`: only numbers, measures"),
        ("[1 for x in wait]", "only numbers, measures"),
        ("'a' > 1", "only numbers, measures"),
    ],
)
def test_other_expressions_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse_condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 6000 + "1 > 0",
        "a + " * 5000 + "1 > 0",
        "9" * 900 + " * 1.5 > 0",
        "9" * 900 + " / wait.p99 > 0",
        "(" * 400,
        "a\0b > 1",
    ],
)
def test_an_expression_beyond_what_python_parses_is_bad_input(text: str) -> None:
    with pytest.raises(InputError, match="is no expression"):
        parse_condition(text)


def test_an_unknown_measure_is_named_before_anything_runs() -> None:
    with pytest.raises(InputError, match=r"there is no measure `wait\.p98`\nhint: there are attempts, .* plugin\."):
        parse_condition("pods.pending > 0 or base.wait.p98 > 1")


def test_a_measure_that_another_run_would_have_is_named() -> None:
    with pytest.raises(InputError, match=r"there is no measure `allocated\.gpu`\nhint: there are wait\.p99"):
        parse_condition("allocated.gpu > 1")({"wait.p99": 1.0}, {})


@pytest.mark.parametrize("until", ["0s", "30m"])
def test_every_run_has_the_measures_that_conditions_may_name(until: str) -> None:
    (outcome,) = run_variants(replace(PLAN, until=until), [DEFAULT])

    assert set(MEASURES) <= set(outcome.measures)
    assert [name for name in set(outcome.measures) - set(MEASURES) if not name.startswith(MEASURE_FAMILIES)] == []


def test_a_demand_needs_gpus(tmp_path: Path) -> None:
    """A percentage of nothing would be a run without pods, or with all of them."""
    (tmp_path / "dump.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: n1}}")
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,500\n")
    plan = RunPlan(workload=tmp_path / "pods.csv", cluster=(tmp_path / "dump.yaml",), demand_percent=100.0)

    with pytest.raises(InputError, match="100 percent of no GPUs: no node of the cluster offers"):
        plan.check()


def test_objects_of_files_and_of_a_cluster_are_there_once(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: n1}}")
    (tmp_path / "workload.yaml").write_text("apiVersion: bayplan.dev/v1alpha1\nkind: Workload\n")
    running = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    plan = RunPlan(workload=tmp_path / "workload.yaml", cluster=(tmp_path / "dump.yaml",), objects=(running,))

    with pytest.raises(InputError, match="Node `n1` is there twice"):
        plan.check()


def test_means_are_the_same_in_every_version_of_python() -> None:
    """Ten tenths that are added one after the other are less than one; since 3.12, `sum` adds floats another way."""
    assert _mean([0.1] * 10) == 0.1
