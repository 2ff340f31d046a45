from __future__ import annotations

import json
from collections.abc import Iterator

from bayplan.observe.clock import VirtualClock
from bayplan.server import ServerOptions, ServerParts

from .support import serving

PLAIN = ServerOptions(port=0, is_plain_http=True)


async def test_configz_shows_the_configuration_without_its_secrets() -> None:
    config = {"kind": "KubeSchedulerConfiguration", "extenders": [{"tlsConfig": {"keyData": "c2VjcmV0"}}]}
    async with serving(PLAIN, ServerParts(config=lambda: config)) as client:
        got = await client.get("/configz")

    assert json.loads(got.text) == {
        "componentconfig": {
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"tlsConfig": {"keyData": "[redacted]"}}],
        }
    }


async def test_metrics_are_rendered_as_the_scraper_accepts_them() -> None:
    parts = ServerParts(metrics=lambda accept: (accept.encode(), "application/openmetrics-text"))
    async with serving(PLAIN, parts) as client:
        got = await client.get("/metrics", Accept="application/openmetrics-text")

    assert got.text == "application/openmetrics-text"
    assert got.headers["Content-Type"].startswith("application/openmetrics-text")


async def test_resource_metrics_are_sent_in_pieces() -> None:
    def pieces() -> Iterator[bytes]:
        for number in range(100):
            yield b"pod %d\n" % number

    async with serving(PLAIN, ServerParts(resource_metrics=pieces)) as client:
        got = await client.get("/metrics/resources")

    assert got.status == 200
    assert len(got.text.splitlines()) == 100
    assert got.headers["Content-Type"].startswith("text/plain; version=0.0.4")


async def test_resource_metrics_of_a_replica_that_stands_by_are_empty() -> None:
    async with serving(PLAIN, ServerParts()) as client:
        got = await client.get("/metrics/resources")

    assert (got.status, got.text) == (200, "")


async def test_flagz_lists_the_flags_and_statusz_the_state() -> None:
    clock = VirtualClock()
    parts = ServerParts(flags=lambda: {"v": 2, "token": "abc", "config": "c.yaml"}, version="1.2.3", clock=clock)
    async with serving(PLAIN, parts) as client:
        clock.advance(90)
        flags = await client.get("/flagz")
        status = await client.get("/statusz")

    assert flags.text.splitlines()[-3:] == ["config=c.yaml", "token=[redacted]", "v=2"]
    assert "Version: 1.2.3" in status.text
    assert "Up: 0:01:30" in status.text


async def test_the_verbosity_can_be_set_while_running() -> None:
    given: list[int] = []
    async with serving(PLAIN, ServerParts(set_verbosity=given.append)) as client:
        good = await client.send("PUT", "/debug/flags/v", body=b"4")
        bad = [
            await client.send("PUT", "/debug/flags/v", body=body) for body in (b"11", b"x", b"", b"-1", "٣".encode())
        ]

    assert (good.status, given) == (200, [4])
    assert [got.status for got in bad] == [400] * 5


async def test_without_a_way_to_set_it_the_verbosity_has_no_page() -> None:
    async with serving(PLAIN, ServerParts()) as client:
        assert (await client.send("PUT", "/debug/flags/v", body=b"4")).status == 404


async def test_a_page_answers_to_its_methods_only() -> None:
    async with serving(PLAIN, ServerParts()) as client:
        assert (await client.send("POST", "/metrics", body=b"x")).status == 405
        assert (await client.send("DELETE", "/healthz")).status == 405
        head = await client.send("HEAD", "/healthz")

    assert (head.status, head.text) == (200, "")
