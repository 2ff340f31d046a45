"""Summaries on pods that ask for one, and on no other."""

from __future__ import annotations

import asyncio

from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.annotating import ANSWER, ASK


async def test_a_pod_that_asks_gets_a_short_summary() -> None:
    async with staged(3) as stage:
        await stage.create(raw_pod("asks", annotations={ASK: "summary"}), raw_pod("silent"))
        await stage.settled(bound=2)
        async with asyncio.timeout(90):
            while True:
                found = await stage.get("/api/v1/namespaces/default/pods/asks")
                if ANSWER in found["metadata"]["annotations"]:
                    break
                await asyncio.sleep(0.01)
        silent = await stage.get("/api/v1/namespaces/default/pods/silent")

    text = found["metadata"]["annotations"][ANSWER]
    assert text.startswith(f"{found['spec']['nodeName']}: 3 of 3 nodes fit; ")
    assert "points" in text and len(text) <= 512
    assert ANSWER not in silent["metadata"].get("annotations", {})
