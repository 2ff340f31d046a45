"""CronJobs: Jobs on time, one after the other where that is asked for, and old ones removed."""

from __future__ import annotations

from tests.unit.apiserver.driving import Driver, template

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.kubelets.pod_status import RUN_SECONDS

BATCH = "/apis/batch/v1/namespaces/default"


def cron(name: str, *, run_seconds: str = "1", **spec: object) -> Json:
    pod_template = template({"app": name})
    pod_template["metadata"]["annotations"] = {RUN_SECONDS: run_seconds}
    pod_template["spec"]["restartPolicy"] = "Never"
    job: Json = {"spec": {"template": pod_template}}
    return {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "jobTemplate": job, **spec}}


async def pass_minutes(driver: Driver, minutes: int) -> None:
    for _ in range(minutes * 6):
        await driver.wait(10)
        await driver.bind_pending()


async def test_a_job_is_started_each_minute_and_three_are_kept(driver: Driver) -> None:
    await driver.create(f"{BATCH}/cronjobs", cron("tick"))
    await pass_minutes(driver, 6)
    jobs = await driver.items(f"{BATCH}/jobs")
    status = (await driver.get(f"{BATCH}/cronjobs/tick"))["status"]

    done = [job for job in jobs if job.get("status", {}).get("succeeded")]
    assert 3 <= len(done) <= 4
    assert {job["metadata"]["ownerReferences"][0]["name"] for job in jobs} == {"tick"}
    assert status["lastScheduleTime"].endswith("00Z")
    assert status["lastSuccessfulTime"]


async def test_forbid_waits_for_the_job_that_runs_and_replace_does_not(driver: Driver) -> None:
    await driver.create(f"{BATCH}/cronjobs", cron("one", run_seconds="1000", concurrencyPolicy="Forbid"))
    await driver.create(f"{BATCH}/cronjobs", cron("new", run_seconds="1000", concurrencyPolicy="Replace"))
    await pass_minutes(driver, 2)
    first = {job["metadata"]["name"] for job in await driver.items(f"{BATCH}/jobs")}
    await pass_minutes(driver, 2)
    second = {job["metadata"]["name"] for job in await driver.items(f"{BATCH}/jobs")}

    assert len(first) == len(second) == 2
    assert {name for name in first if name.startswith("one")} <= second
    assert not {name for name in first if name.startswith("new")} & second


async def test_a_suspended_one_starts_nothing_and_a_wrong_schedule_is_refused(driver: Driver) -> None:
    await driver.create(f"{BATCH}/cronjobs", cron("still", suspend=True))
    await pass_minutes(driver, 2)
    body = cron("bad")
    body["spec"]["schedule"] = "x"
    wrong = await driver.transport.request("POST", f"{BATCH}/cronjobs", body=body)

    assert await driver.items(f"{BATCH}/jobs") == []
    assert wrong.status == 422
