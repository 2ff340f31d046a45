from __future__ import annotations

import logging

import pytest

from bayplan.server import ServerOptions, ServerParts

from .support import Reviewer, serving

PLAIN = ServerOptions(port=0, is_plain_http=True)
WITH_TOKEN = ServerOptions(port=0, is_plain_http=True, loopback_token="hunter22")


async def test_an_api_server_that_cannot_be_asked_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    reviewer = Reviewer()
    reviewer.fault = ConnectionError("connection refused by 10.0.0.1")
    with caplog.at_level(logging.WARNING):
        async with serving(ServerOptions(port=0), ServerParts(review=reviewer)) as client:
            got = await client.get("/metrics", token="token-of-reader")
            probe = await client.get("/healthz")

    assert (got.status, got.headers["Retry-After"], probe.status) == (503, "1", 200)
    assert "10.0.0.1" not in got.text
    assert "connection refused by 10.0.0.1" in caplog.text


async def test_on_loopback_without_a_token_every_local_client_is_let_in() -> None:
    async with serving(PLAIN) as client:
        assert (await client.get("/configz")).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1", "evil.example:80", ""])
async def test_on_loopback_a_name_of_somebody_else_is_refused(host: str) -> None:
    """A web page can point its own name at 127.0.0.1; the browser then sends that name."""
    async with serving(PLAIN) as client:
        assert (await client.get("/configz", Host=host)).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080"])
async def test_on_loopback_local_names_are_fine(host: str) -> None:
    async with serving(PLAIN) as client:
        assert (await client.get("/configz", Host=host)).status == 200


async def test_a_loopback_token_is_asked_of_every_page_but_probes() -> None:
    async with serving(WITH_TOKEN) as client:
        assert (await client.get("/healthz")).status == 200
        assert (await client.get("/configz")).status == 401
        assert (await client.get("/configz", token="hunter2")).status == 401
        assert (await client.get("/configz", token="hunter22")).status == 200
        assert (await client.get("/configz?token=wrong")).status == 401


async def test_a_browser_hands_in_the_token_once_and_gets_a_cookie() -> None:
    async with serving(WITH_TOKEN) as client:
        first = await client.get("/configz?a=1&token=hunter22&b=2")
        cookie = first.headers["Set-Cookie"]
        name_and_value = cookie.partition(";")[0]
        second = await client.get("/configz", Cookie=f"other=1; {name_and_value}")
        forged = await client.get("/configz", Cookie=name_and_value[:-4] + "0000")

    assert (first.status, first.headers["Location"]) == (303, "/configz?a=1&b=2")
    assert all(flag in cookie for flag in ("HttpOnly", "SameSite=strict"))
    assert "hunter22" not in cookie
    assert (second.status, forged.status) == (200, 401)


async def test_the_redirect_stays_on_this_server() -> None:
    async with serving(WITH_TOKEN) as client:
        assert (await client.get("//evil.example/?token=hunter22")).status == 400


async def test_a_query_that_cannot_be_read_is_refused() -> None:
    async with serving(WITH_TOKEN) as client:
        assert (await client.get("/configz?" + "&".join("a=1" for _ in range(200)))).status == 400
