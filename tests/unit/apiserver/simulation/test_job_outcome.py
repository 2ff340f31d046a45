"""How Jobs end by limits for each index, and by their success and failure policies."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.driving import PODS, Driver, template

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.controllers.job_outcome import format_indexes, parse_indexes
from bayplan.apiserver.simulation.kubelets.pod_status import EXIT_CODE, RUN_SECONDS

JOBS = "/apis/batch/v1/namespaces/default/jobs"


def indexed(name: str, *, exit_code: str = "0", **spec: object) -> Json:
    pod = template({"app": name})
    pod["metadata"]["annotations"] = {RUN_SECONDS: "1", EXIT_CODE: exit_code}
    pod["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": name}, "spec": {"completionMode": "Indexed", "template": pod, **spec}}


async def finished(driver: Driver, body: Json) -> Json:
    await driver.create(JOBS, body)
    for _ in range(20):
        await driver.settle()
        await driver.wait(1)
        status: Json = (await driver.get(f"{JOBS}/{body['metadata']['name']}"))["status"]
        if status.get("conditions"):
            return status
    raise AssertionError("the Job does not end")


def ending(status: Json) -> tuple[str, str]:
    return status["conditions"][-1]["type"], status["conditions"][-1]["reason"]


async def test_a_job_with_limits_for_each_index_goes_on_until_all_indexes_have_ended(driver: Driver) -> None:
    body = indexed("each", exit_code="1", completions=2, parallelism=2, backoffLimitPerIndex=1)
    status = await finished(driver, body)
    counts = sorted(
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"]
        for pod in await driver.items(PODS)
    )

    assert ending(status) == ("Failed", "FailedIndexes")
    assert (status["failedIndexes"], status["failed"]) == ("0,1", 4)
    assert counts == ["0", "0", "1", "1"]
    assert (await driver.get(f"{JOBS}/each"))["spec"]["backoffLimit"] == 2**31 - 1


async def test_a_job_ends_when_more_indexes_than_allowed_have_failed(driver: Driver) -> None:
    body = indexed("most", exit_code="1", completions=4, parallelism=1, backoffLimitPerIndex=0, maxFailedIndexes=0)
    status = await finished(driver, body)

    assert ending(status) == ("Failed", "MaxFailedIndexesExceeded")
    assert (status["failedIndexes"], status["failed"]) == ("0", 1)


@pytest.mark.parametrize("rule", [{"succeededIndexes": "0"}, {"succeededCount": 1}])
async def test_a_success_policy_completes_a_job_early(driver: Driver, rule: Json) -> None:
    body = indexed("early", completions=3, parallelism=1, successPolicy={"rules": [rule]})
    status = await finished(driver, body)

    assert ending(status) == ("Complete", "SuccessPolicy")
    assert (status["completedIndexes"], status["succeeded"]) == ("0", 1)


@pytest.mark.parametrize(
    ("action", "reason", "failed"), [("FailJob", "PodFailurePolicy", 1), ("FailIndex", "FailedIndexes", 2)]
)
async def test_a_failure_policy_decides_by_exit_code(driver: Driver, action: str, reason: str, failed: int) -> None:
    codes = {"operator": "In", "values": [42]}
    policy = {"rules": [{"action": action, "onExitCodes": codes}]}
    body = indexed(
        "policy", exit_code="42", completions=2, parallelism=1, backoffLimitPerIndex=3, podFailurePolicy=policy
    )
    status = await finished(driver, body)

    assert ending(status) == ("Failed", reason)
    assert status["failed"] == failed
    if action == "FailJob":
        assert "failed with exit code 42 matching FailJob rule at index 0" in status["conditions"][-1]["message"]


async def test_failures_that_a_policy_ignores_do_not_count(driver: Driver) -> None:
    codes = {"operator": "NotIn", "values": [1]}
    policy = {"rules": [{"action": "Ignore", "onExitCodes": codes}]}
    await driver.create(
        JOBS, indexed("again", exit_code="7", completions=1, parallelism=1, backoffLimit=0, podFailurePolicy=policy)
    )
    for _ in range(3):
        await driver.settle()
        await driver.wait(1)
    status = (await driver.get(f"{JOBS}/again"))["status"]

    assert "conditions" not in status
    assert "failed" not in status
    assert len(await driver.items(PODS)) > 1


@pytest.mark.parametrize("text", ["", "0", "0,1", "0-2", "1,3-5,7", "0,1,3,4"])
def test_indexes_are_spelled_as_ranges(text: str) -> None:
    assert format_indexes(parse_indexes(text)) == text
