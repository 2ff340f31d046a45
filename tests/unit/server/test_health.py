from __future__ import annotations

import logging

import pytest

from bayplan.server import HealthChecks, ServerOptions, ServerParts

from .support import serving

PLAIN = ServerOptions(port=0, is_plain_http=True)


def broken() -> str | None:
    raise RuntimeError("out of order")


def parts(**readyz: object) -> ServerParts:
    return ServerParts(health=HealthChecks(readyz=readyz))  # type: ignore[arg-type]  # checks of the test's choosing


async def test_verbose_lists_the_checks_in_order() -> None:
    checks = parts(leaderElection=lambda: None, shutdown=lambda: None)
    async with serving(PLAIN, checks) as client:
        got = await client.get("/readyz?verbose")

    assert got.text == "[+]leaderElection ok\n[+]shutdown ok\nreadyz check passed\n"


async def test_a_failing_check_is_named_and_its_reason_withheld() -> None:
    checks = parts(ping=lambda: None, sync=lambda: "pods are not listed")
    async with serving(PLAIN, checks) as client:
        got = await client.get("/readyz")
        alone = await client.get("/readyz/sync")
        well = await client.get("/readyz/ping")

    assert (got.status, got.text) == (500, "[+]ping ok\n[-]sync failed: reason withheld\nreadyz check failed\n")
    assert (alone.status, alone.text) == (500, "internal server error: pods are not listed\n")
    assert (well.status, well.text) == (200, "ok")


async def test_a_check_that_raises_has_failed() -> None:
    async with serving(PLAIN, parts(broken=broken)) as client:
        assert (await client.get("/readyz")).status == 500
        assert "RuntimeError: out of order" in (await client.get("/readyz/broken")).text


async def test_a_check_can_be_left_out() -> None:
    async with serving(PLAIN, parts(ping=lambda: None, sync=lambda: "no")) as client:
        got = await client.get("/readyz?verbose&exclude=sync")
        odd = await client.get("/readyz?verbose&exclude=sync&exclude=nothing")

    assert (got.status, "[+]sync excluded: ok" in got.text) == (200, True)
    assert 'warn: some health checks cannot be excluded: no matches for "nothing"\n' in odd.text


async def test_an_endpoint_without_checks_says_that_the_process_lives() -> None:
    async with serving(PLAIN, ServerParts()) as client:
        assert (await client.get("/livez?verbose")).text == "[+]ping ok\nlivez check passed\n"
        assert (await client.get("/livez/ping")).text == "ok"
        assert (await client.get("/livez/other")).status == 404


async def test_outcomes_are_counted_for_slis() -> None:
    async with serving(PLAIN, parts(sync=lambda: "no")) as client:
        await client.get("/readyz")
        await client.get("/livez")
        got = await client.get("/metrics/slis")

    assert 'kubernetes_healthcheck{name="sync",type="readyz"} 0' in got.text
    assert 'kubernetes_healthchecks_total{name="ping",type="livez",status="success"} 1' in got.text
    assert 'kubernetes_healthchecks_total{name="sync",type="readyz",status="error"} 1' in got.text


async def test_the_log_has_each_failure_once_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    problems = ["pods are not listed"] * 3 + ["nodes are not listed"] + [None] * 2 + ["pods are not listed"]
    told = iter(problems)
    with caplog.at_level(logging.INFO, logger="bayplan.server.health"):
        async with serving(PLAIN, parts(sync=lambda: next(told))) as client:
            for _ in problems:
                await client.get("/readyz")

    assert [record.getMessage() for record in caplog.records if record.name == "bayplan.server.health"] == [
        "/readyz check `sync` failed: pods are not listed",
        "/readyz check `sync` failed: nodes are not listed",
        "/readyz check `sync` passes again",
        "/readyz check `sync` failed: pods are not listed",
    ]
