"""What containers with plain commands do."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.driving import PODS, Driver, pod

from bayplan.apiserver.simulation.kubelets.commands import Course, course_of


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["sleep", "5"], Course(5.0, 0)),
        (["/bin/sleep", "2m"], Course(120.0, 0)),
        (["sleep", "infinity"], Course(None, 0)),
        (["true"], Course(0.0, 0)),
        (["false"], Course(0.0, 1)),
        (["/bin/sh", "-c", "exit 3"], Course(0.0, 3)),
        (["sh", "-c", "echo working; sleep 5; exit 1"], Course(5.0, 1)),
        (["sh", "-c", "sleep 1\nsleep 2"], Course(3.0, 0)),
        (["sh", "-c", "false; exit"], Course(0.0, 1)),
        (["sh", "-c", "sleep infinity; exit 1"], Course(None, 0)),
        (["sh", "-c", "exit $CODE"], None),
        (["sh", "-c", "sleep 1 && exit 1"], None),
        (["sh", "-c", "echo 'unclosed"], None),
        (["sleep", "-1"], None),
        (["sleep", "nan"], None),
        (["perl", "-e", "1"], None),
        ([], None),
    ],
)
def test_a_plain_command_has_a_known_course(command: list[str], expected: Course | None) -> None:
    assert course_of({"command": command}) == expected
    if command:
        assert course_of({"command": command[:1], "args": command[1:]}) == expected


async def test_a_pod_that_may_end_does_what_its_command_says(driver: Driver) -> None:
    body = pod("a", restartPolicy="Never")
    body["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 5; exit 4"]
    await driver.create(PODS, body)
    await driver.bind("a", "node-1")
    await driver.wait(3)
    assert (await driver.get(f"{PODS}/a"))["status"]["phase"] == "Running"
    await driver.wait(3)
    status = (await driver.get(f"{PODS}/a"))["status"]

    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4
