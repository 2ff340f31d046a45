from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from bayplan.api.documents import parse_documents
from bayplan.api.pod import NodeAffinity
from bayplan.api.quantity import Quantity
from bayplan.config.errors import Problem, Problems
from bayplan.config.reading import Reader


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, rename="camel", kw_only=True):
    name: str = ""
    how_many: Annotated[int, msgspec.Meta(ge=1, lt=10)] = 1


class Outer(msgspec.Struct, rename="camel", kw_only=True):
    must_have: str
    ratio: float = 1.0
    is_on: bool = False
    wait: timedelta = timedelta(0)
    items: list[Inner] = []
    names: tuple[str, ...] = ()
    unique: set[int] = set()
    amounts: dict[str, Quantity] = {}
    mode: Literal["Least", "Most"] = "Least"
    color: Color = Color.RED
    inner: Inner | None = None
    affinity: NodeAffinity | None = None
    whatever: Any = None


def read(text: str) -> tuple[Outer | None, list[Problem]]:
    problems = Problems()
    (document,) = parse_documents(text)
    return Reader(problems).read(document.value, Outer), problems.sorted()


def only(text: str) -> Problem:
    _, problems = read(f"mustHave: x\n{text}")
    assert len(problems) == 1, problems
    return problems[0]


def test_a_full_document_is_read() -> None:
    value, problems = read(
        "{mustHave: x, ratio: 2, isOn: true, wait: 1m, items: [{name: a, howMany: 9}], names: [b], unique: [1, 1],"
        " amounts: {cpu: 1, memory: 2Gi}, mode: Most, color: blue, inner: {name: c}, whatever: [1, {x: y}]}"
    )

    assert not problems
    assert value == Outer(
        must_have="x",
        ratio=2.0,
        is_on=True,
        wait=timedelta(minutes=1),
        items=[Inner(name="a", how_many=9)],
        names=("b",),
        unique={1},
        amounts={"cpu": 1, "memory": "2Gi"},
        mode="Most",
        color=Color.BLUE,
        inner=Inner(name="c"),
        whatever=[1, {"x": "y"}],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ratio: much", "line 2: ratio: expected a number, found `much`"),
        ("ratio: .nan", "line 2: ratio: expected a number, found `nan`"),
        ("isOn: 1", "line 2: isOn: expected true or false, found `1`"),
        ("names: a", "line 2: names: expected a list, found `a`; write each element after `- `"),
        ("names: [1]", 'line 2: names[0]: expected text, found `1`; put it in quotes: "1"'),
        ("names: [~]", "line 2: names[0]: expected text, found nothing"),
        ("items: [a]", "line 2: items[0]: expected a mapping, found `a`; write `name: a`"),
        (
            "items: [{howMany: 0}]",
            "line 2: items[0].howMany: expected a whole number at least 1 and below 10, found `0`",
        ),
        ("items: [{howmany: 2}]", "line 2: items[0].howmany: unknown field; did you mean `howMany`?"),
        ("mode: Lest", "line 2: mode: expected one of `Least`, `Most`, found `Lest`; did you mean `Least`?"),
        ("color: green", "line 2: color: expected one of `red`, `blue`, found `green`"),
        ("amounts: {cpu: []}", "line 2: amounts[cpu]: expected text or a whole number or a number, found a list"),
        ("amounts: 3", "line 2: amounts: expected a mapping, found `3`"),
        ("wait: 3", "line 2: wait: expected a duration such as `15s` or `1m30s`, found `3`; with its unit: `3s`"),
        ("inner: {name: a, name: b}", "line 2: inner.name: is written on lines 2 and 2; keep one"),
        (
            "affinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerm: []}}",
            "line 2: affinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerm: unknown field; "
            "did you mean `nodeSelectorTerms`?",
        ),
    ],
)
def test_each_problem_names_its_place_and_what_is_allowed(text: str, expected: str) -> None:
    assert expected == str(only(text))


def test_a_required_field_that_is_missing_is_named() -> None:
    value, problems = read("ratio: 1")

    assert value is None
    assert [str(problem).removeprefix("line 0: ") for problem in problems] == ["mustHave: is required; expected text"]


def test_null_counts_as_absent() -> None:
    value, problems = read("{mustHave: x, ratio: ~, items: null, wait: ~, inner: ~}")

    assert not problems
    assert value == Outer(must_have="x")


def test_all_problems_come_at_once_and_the_rest_is_read() -> None:
    value, problems = read("{mustHave: x, ratio: a, isOn: b, items: [1, {name: kept}], mode: Most}")

    assert [problem.path for problem in problems] == ["ratio", "isOn", "items[0]"]
    assert value is not None
    assert (value.mode, value.items[1].name) == ("Most", "kept")


def test_what_only_the_struct_library_can_see_is_a_problem_with_a_path() -> None:
    class Patterned(msgspec.Struct):
        name: Annotated[str, msgspec.Meta(pattern="^a")] = "a"

    problems = Problems()
    value = Reader(problems).read({"name": "b"}, Patterned, path="args")

    assert value is None
    assert [problem.path for problem in problems.sorted()] == ["args.name"]


def test_a_number_in_quotes_is_told_to_lose_them() -> None:
    problem = only('ratio: "3"')

    assert str(problem).count("expected a number, found `3`") == 1
    assert problem.hint == "it is text; write it without quotes: 3"
