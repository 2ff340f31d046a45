from __future__ import annotations

import pytest

from bayplan.config.errors import ConfigError, Problem, Problems


def test_a_problem_reads_as_one_line() -> None:
    problem = Problem("profiles[0].plugins", "unknown field", "did you mean `plugin`?", 4)

    assert str(problem) == "line 4: profiles[0].plugins: unknown field; did you mean `plugin`?"


def test_one_problem_is_one_line_and_several_are_a_list() -> None:
    one = ConfigError([Problem("a", "is wrong")], source="c.yaml")
    two = ConfigError([Problem("a", "is wrong"), Problem("b", "too")], source="c.yaml")

    assert str(one) == "c.yaml: a: is wrong"
    assert str(two) == "c.yaml: 2 problems\n  a: is wrong\n  b: too"


def test_a_flood_of_problems_is_cut_in_the_text_and_kept_in_the_list() -> None:
    error = ConfigError([Problem(f"p{i}", "is wrong") for i in range(500)])

    assert str(error).endswith("and 400 more")
    assert len(error.problems) == 500


def test_a_place_inside_a_refused_place_gets_no_second_problem() -> None:
    problems = Problems()
    problems.add("a[0]", "first")
    problems.add("a[0].name", "second")
    problems.add("a[0][1]", "third")
    problems.add("a[01]", "another place")

    assert [problem.message for problem in problems.sorted()] == ["first", "another place"]


def test_problems_come_in_the_order_of_the_document() -> None:
    problems = Problems()
    problems.add("c", "no line")
    problems.add("b", "later", line=9)
    problems.add("a", "earlier", line=2)

    with pytest.raises(ConfigError) as caught:
        problems.raise_if_any("x")

    assert [problem.message for problem in caught.value.problems] == ["earlier", "later", "no line"]
