"""How the outcome of Kubernetes' own tests is read."""

from __future__ import annotations

import pytest
from tests.upstream import record
from tests.upstream.integration import parse
from tests.upstream.specs import Result, outcomes, reason

LOG = """
=== RUN   TestPorts
=== RUN   TestPorts/free
EXTERNAL-SCHEDULER started
=== RUN   TestPorts/taken
=== RUN   TestQueue
=== RUN   TestPlugins
EXTERNAL-SCHEDULER needs plugins written in Go
=== RUN   TestGates
EXTERNAL-SCHEDULER started
=== RUN   TestGates/on
--- FAIL: TestPorts (1.00s)
    --- PASS: TestPorts/free (0.10s)
    --- PASS: TestPorts/taken (0.90s)
--- PASS: TestQueue (0.00s)
--- PASS: TestPlugins (0.00s)
"""


def test_only_leaves_that_started_the_program_say_something_about_it() -> None:
    outcome = parse(LOG.splitlines())
    verdicts = {leaf: outcome.verdict(leaf) for leaf in outcome.leaves()}

    assert verdicts == {
        "TestPorts/free": "pass",
        "TestPorts/taken": "starts no scheduler",
        "TestQueue": "starts no scheduler",
        "TestPlugins": "needs Go plugins",
        "TestGates/on": "fail",
    }


def test_a_test_that_never_ended_has_failed() -> None:
    outcome = parse(["=== RUN   TestPanics", "EXTERNAL-SCHEDULER started", "panic: no"])

    assert outcome.verdict("TestPanics") == "fail"


def test_a_test_that_waits_for_its_turn_when_another_panics_is_still_to_be_run() -> None:
    outcome = parse(["=== RUN   TestA/x", "=== PAUSE TestA/x", "=== RUN   TestA/y", "panic: no"])

    assert list(outcome.leaves()) == ["TestA/y"]
    assert outcome.unfinished == {"TestA/x", "TestA/y"}


def test_a_result_in_the_middle_of_other_output_counts() -> None:
    outcome = parse(["=== RUN   TestA", "EXTERNAL-SCHEDULER started", "I1117 a log line \x16--- PASS: TestA (1.00s)"])

    assert outcome.verdicts() == {"TestA": "pass"}


def test_a_scheduler_that_tests_share_says_something_about_those_that_use_it() -> None:
    lines = ["=== RUN   TestA/x", "EXTERNAL-SCHEDULER serves TestA/y", "EXTERNAL-SCHEDULER started"]
    outcome = parse([*lines, "--- PASS: TestA/x (1.00s)", "--- PASS: TestA/y/deep (1.00s)"])

    assert outcome.verdicts() == {"TestA/x": "starts no scheduler", "TestA/y/deep": "pass"}


def test_leaves_that_are_left_out_are_counted_apart_with_their_reason() -> None:
    known: record.LeftOut = {"packages": {"q": "alpha"}, "leaves": {"p": {"Gt": "off by default"}}, "causes": {}}
    verdicts = {"a": "pass", "with_Gt": "fail", "queue": "starts no scheduler", "b": "fail"}
    outcomes: record.Outcomes = {"p": {"bayplan": verdicts, "kube-scheduler": verdicts | {"b": "pass"}}}

    assert "| `p` | 4 | 2 | 2 | 1 | 2 |" in record.leaves_table(outcomes, known).splitlines()
    reasons = record.leaves_reasons(outcomes, known).splitlines()
    assert {"- 1: off by default", "- `q`: alpha", "- `p` `b` (bayplan)"} <= set(reasons)


def test_the_table_counts_each_group() -> None:
    results = [Result("apps", "a", "pass", 1.0, ""), Result("apps", "b", "fail", 2.0, "no")]
    found = outcomes(results, [("apps", "c", "needs containers")], {"b": "too slow"})

    assert "| apps | 3 | 1 | 2 | 1 | 1 | - |" in record.specs_table(found).splitlines()
    assert "- `b`: too slow" in record.specs_reasons(found).splitlines()
    assert "- 1: needs containers" in record.specs_reasons(found).splitlines()


def test_a_run_of_a_part_replaces_the_outcomes_of_that_part() -> None:
    old = {"apps": {"a": {"verdict": "fail"}, "b": {"verdict": "pass"}, "gone": {"verdict": "pass"}}}
    new = {"apps": {"a": {"verdict": "pass"}}}
    merged = record.merge_specs(old, new, {"apps": {"a", "b"}})

    assert merged == {"apps": {"a": {"verdict": "pass"}, "b": {"verdict": "pass"}}}
    beside = record.merge_real(merged, {"apps": {"b": {"verdict": "fail"}}}, {"apps": {"a", "b"}})
    assert beside == {"apps": {"a": {"verdict": "pass"}, "b": {"verdict": "pass", "real": "fail"}}}
    assert record.merge_specs(beside, {"apps": {"b": {"verdict": "fail"}}}, {"apps": {"b"}}) == {
        "apps": {"b": {"verdict": "fail", "real": "fail"}}
    }
    leaves = record.merge_leaves({"p": {"bayplan": {"x": "fail"}}}, {"p": {"bayplan": {"y": "pass"}}}, ["p", "q"])
    assert leaves == {"p": {"bayplan": {"x": "fail", "y": "pass"}}}


@pytest.mark.parametrize("name", record.PAGES)
def test_the_tables_of_the_documentation_are_those_of_the_recorded_runs(name: str) -> None:
    text = record.PAGES[name].read_text()

    assert record.page_with(name, text, record.tables()[name]) == text


def test_a_spec_is_left_out_for_the_first_reason_that_matches() -> None:
    entries = {"exec in a container": "needs containers", "exec": "other"}

    assert reason("[sig-node] should exec in a container", entries) == "needs containers"
    assert reason("[sig-apps] ReplicaSet", entries) is None
