"""Outcomes as values."""

from __future__ import annotations

import pytest

from bayplan.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Error,
    Pending,
    Skip,
    Status,
    Unresolvable,
    Unschedulable,
    Wait,
    reason_of,
)


@pytest.mark.parametrize(
    ("code", "number", "label"),
    [
        (Code.SUCCESS, 0, "Success"),
        (Code.ERROR, 1, "Error"),
        (Code.UNSCHEDULABLE, 2, "Unschedulable"),
        (Code.UNRESOLVABLE, 3, "UnschedulableAndUnresolvable"),
        (Code.WAIT, 4, "Wait"),
        (Code.SKIP, 5, "Skip"),
        (Code.PENDING, 6, "Pending"),
    ],
)
def test_codes_are_numbered_and_named_as_kube_scheduler_does(code: Code, number: int, label: str) -> None:
    assert int(code) == number
    assert code.label == label


@pytest.mark.parametrize(
    ("status", "rejects"),
    [
        (SUCCESS, False),
        (SKIP, False),
        (Wait(1), False),
        (Error("boom"), False),
        (Unschedulable("x"), True),
        (Unresolvable("x"), True),
        (Pending("x"), True),
    ],
)
def test_a_rejection_is_one_of_three_codes(status: Status, rejects: bool) -> None:
    assert status.is_rejected is rejects


def test_reasons_are_joined_into_a_message() -> None:
    assert Unschedulable("Insufficient cpu", "Too many pods").message == "Insufficient cpu, Too many pods"
    assert SUCCESS.message == ""


def test_a_status_said_by_a_plugin_is_another_status() -> None:
    plain = Unschedulable("x")
    said = plain.by("Mine")

    assert said.plugin == "Mine"
    assert plain.plugin == ""
    assert said.by("Mine") is said
    assert said != plain
    assert said == Unschedulable("x").by("Mine")
    assert hash(said) == hash(Unschedulable("x").by("Mine"))
    assert plain != "x"


def test_what_a_status_carries_survives_being_said() -> None:
    error = ValueError("no")

    assert Error("boom", exception=error).by("Mine").exception is error
    assert Wait(7.5, "hold").by("Mine").timeout_seconds == 7.5
    assert Skip() is SKIP
    assert Wait(1).is_wait
    assert SKIP.is_skip
    assert SUCCESS.is_success
    assert "Mine" in repr(said := Unschedulable("x").by("Mine"))
    assert "Unschedulable" in repr(said)


def test_a_status_with_anything_but_texts_is_an_error_where_it_is_made() -> None:
    with pytest.raises(TypeError, match="a reason of a status must be a text, found 5"):
        Unschedulable(5)  # type: ignore[arg-type] # the mistake that is tested
    with pytest.raises(TypeError, match=r"must be a tuple of texts, found \['full'\]"):
        Status(Code.UNSCHEDULABLE, ["full"])  # type: ignore[arg-type] # the mistake that is tested
    with pytest.raises(TypeError, match="must be a `Code`, found 'no'"):
        Status("no")  # type: ignore[arg-type] # the mistake that is tested


@pytest.mark.parametrize("seconds", ["5", None, True, float("nan")])
def test_a_wait_without_a_number_of_seconds_is_an_error(seconds: object) -> None:
    with pytest.raises(TypeError, match="`Wait` takes a number of seconds, found"):
        Wait(seconds)  # type: ignore[arg-type] # the mistake that is tested


def test_a_status_without_a_message_has_a_reason_all_the_same() -> None:
    statuses = (Unschedulable("full"), Unschedulable(), Error(""), Skip(), Wait(3))

    assert [reason_of(status) for status in statuses] == [
        "full",
        "no reason given",
        "no reason given",
        "answered Skip, which means nothing there",
        "answered Wait, which means nothing there",
    ]
