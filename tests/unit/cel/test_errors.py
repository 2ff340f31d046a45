"""How problems of expressions are shown."""

from __future__ import annotations

from bayplan.cel.errors import CompileError, Issue, describe_issues


def test_issues_are_shown_in_the_order_of_their_places_with_a_mark_below() -> None:
    text = "a +\n  b"

    shown = describe_issues(text, [Issue(6, "second"), Issue(0, "first")])

    assert shown == "ERROR: <input>:1:1: first\n | a +\n | ^\nERROR: <input>:2:3: second\n |   b\n | ..^"


def test_wide_characters_get_wide_marks() -> None:
    assert describe_issues("日x", [Issue(1, "here")]).endswith("\n | \uff0e^")
    assert describe_issues("日", [Issue(0, "here")]).endswith("\n | \uff3e")


def test_no_more_than_a_hundred_issues_are_shown() -> None:
    shown = describe_issues("a", [Issue(0, "wrong")] * 120).splitlines()

    assert shown[-1] == "20 more errors were truncated"


def test_an_issue_without_a_place_has_no_snippet() -> None:
    assert describe_issues("a", [Issue(None, "too long")]) == "ERROR: <input>:-1:0: too long"


def test_a_compile_error_keeps_its_issues() -> None:
    assert CompileError("wrong", [Issue(1, "x")]).issues == (Issue(1, "x"),)
