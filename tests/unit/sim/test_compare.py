"""Variants side by side: equal runs, the first difference with its reasons, and conditions for exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.api.decode import InputError
from bayplan.sim.compare import PolicyVariant, RunPlan, find_divergence, parse_condition, run_variants
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


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(tmp_path / "no" / "page.html", b"x")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("wait.p99 > 1.05 * base.wait.p99", True),
        ("wait.p99 > 2 * base.wait.p99", False),
        ("pods.pending == 0 and wait.p99 < 12", True),
        ("10 < wait.p99 <= 11", True),
        ('allocated["example.com/gpu"] < 0.5 or wait.p99 - 10 > 5', True),
        ("-wait.p99 / 2 > 0", False),
    ],
)
def test_a_condition_compares_measures(text: str, holds: bool) -> None:
    own = {"wait.p99": 11.0, "pods.pending": 0.0, "allocated.example.com/gpu": 0.25}

    assert parse_condition(text)(own, {"wait.p99": 10.0}) is holds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("wait.p99 >", "is no expression"),
        ("__import__('os')", "only numbers, measures"),
        ("[1 for x in wait]", "only numbers, measures"),
        ("'a' > 1", "only numbers, measures"),
    ],
)
def test_other_expressions_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse_condition(text)


def test_an_unknown_measure_is_named() -> None:
    with pytest.raises(InputError, match=r"there is no measure `wait\.p98`"):
        parse_condition("wait.p98 > 1")({"wait.p99": 1.0}, {})
