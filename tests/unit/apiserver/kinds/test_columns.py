"""What people see in a table."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.columns import human_duration, pod_status, selector_text
from bayplan.apiserver.kinds.kind import ServedKind


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0s"),
        (5, "5s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (47 * 3600, "47h"),
        (3 * 86400 + 7200, "3d2h"),
        (30 * 86400, "30d"),
        (3 * 365 * 86400, "3y"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations_are_written_as_kubectl_does(seconds: int, expected: str) -> None:
    assert human_duration(seconds) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"metadata": {}, "status": {"phase": "Pending"}}, "Pending"),
        ({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}, "Terminating"),
        ({"metadata": {}, "status": {"phase": "Failed", "reason": "OutOfcpu"}}, "OutOfcpu"),
        (
            {
                "metadata": {},
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
                },
            },
            "SchedulingGated",
        ),
        (
            {
                "metadata": {},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                },
            },
            "CrashLoopBackOff",
        ),
        (
            {
                "metadata": {},
                "status": {
                    "phase": "Succeeded",
                    "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}],
                },
            },
            "Completed",
        ),
        (
            {
                "metadata": {},
                "status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
            },
            "ExitCode:3",
        ),
    ],
)
def test_one_word_says_how_a_pod_is(pod: dict[str, Any], expected: str) -> None:
    assert pod_status(pod, 0.0) == expected


def test_selectors_are_written_as_on_a_command_line() -> None:
    expressions = [{"key": "a", "operator": "In", "values": ["b", "c"]}, {"key": "d", "operator": "DoesNotExist"}]

    assert selector_text({"matchLabels": {"x": "y"}, "matchExpressions": expressions}) == "x=y,a in (b,c),!d"
    assert selector_text({"plain": "map"}) == "plain=map"
    assert selector_text({}) == "<none>"


@pytest.mark.parametrize("kind", builtin_kinds(), ids=lambda kind: kind.resource)
def test_every_column_copes_with_an_almost_empty_object(kind: ServedKind) -> None:
    document = {"metadata": {"name": "a"}}
    cells = [column.compute(document, 0.0) for column in kind.columns]

    assert len(cells) == len(kind.columns)
    assert all(column.definition()["name"] for column in kind.columns)
