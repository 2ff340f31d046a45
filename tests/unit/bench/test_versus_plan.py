"""The order of a bench and the guess at the time it takes."""

from __future__ import annotations

from bench.versus.plan import Choice, Pace, steps
from bench.versus.workload import load_workloads

BOTH = ["kube-scheduler", "bayplan"]


def test_schedulers_take_turns_at_going_first_and_the_raw_rate_comes_before_each_round() -> None:
    plan = steps(load_workloads(["templates-100"]), Choice(schedulers=BOTH, rounds=2, rate=0.0))

    assert [step.what for step in plan] == ["raw", "kube-scheduler", "bayplan", "raw", "bayplan", "kube-scheduler"]


def test_arrival_comes_after_the_backlog_where_a_workload_asks_for_it() -> None:
    plan = steps(load_workloads(["plain"]), Choice(schedulers=BOTH, rounds=1, sizes=[5000]))

    assert [(step.what, step.rate) for step in plan[3:]] == [("kube-scheduler", 200), ("bayplan", 200)]


def test_a_workload_with_questions_is_also_measured_while_they_are_asked() -> None:
    plan = steps(load_workloads(["questions"]), Choice(schedulers=BOTH, rounds=1))

    assert [(step.what, step.is_asked) for step in plan[1:]] == [
        ("kube-scheduler", False),
        ("bayplan", False),
        ("bayplan", True),
    ]


def test_modes_and_rates_can_be_chosen() -> None:
    mixed, templates = load_workloads(["mixed"]), load_workloads(["templates-100"])

    only_arrival = steps(mixed, Choice(schedulers=["bayplan"], rounds=1, modes=("arrival",), rate=50.0))
    without = steps(templates, Choice(schedulers=["bayplan"], rounds=1, rate=0.0))

    assert [(step.what, step.rate) for step in only_arrival] == [("bayplan", 50.0)]
    assert [step.what for step in without] == ["raw", "bayplan"]


def test_sizes_can_be_chosen_and_kube_scheduler_sits_out_where_it_takes_too_long() -> None:
    plan = steps(load_workloads(["all-different"]), Choice(schedulers=BOTH, rounds=1, sizes=[5000, 15000]))

    assert [(step.nodes, step.what) for step in plan if step.what != "raw"] == [
        (5000, "kube-scheduler"),
        (5000, "bayplan"),
        (15000, "bayplan"),
    ]


def test_further_sizes_come_after_the_first_size_of_every_workload() -> None:
    plan = steps(load_workloads(["plain", "mixed"]), Choice(schedulers=["bayplan"], rounds=1, modes=("backlog",)))

    assert [(step.workload.name, step.nodes) for step in plan if step.what == "bayplan"] == [
        ("plain", 5000),
        ("mixed", 5000),
        ("plain", 500),
        ("plain", 15000),
    ]


def test_the_limit_of_kube_scheduler_can_be_chosen() -> None:
    choice = Choice(schedulers=BOTH, rounds=1, sizes=[15000], kube_scheduler_up_to=20000)

    assert "kube-scheduler" in [step.what for step in steps(load_workloads(["all-different"]), choice)]


def test_the_rest_is_guessed_from_steps_of_the_same_kind_then_of_the_same_scheduler() -> None:
    first, second, other = steps(
        load_workloads(["all-different", "required-spread"]), Choice(schedulers=["bayplan"], rounds=1)
    )[1:4]
    pace = Pace()
    before = pace.left_seconds([second])

    pace.took(first, 10.0)

    assert before > 0
    assert pace.left_seconds([first]) == 10.0
    assert pace.left_seconds([other]) == 10.0
    assert pace.left_seconds([]) == 0
