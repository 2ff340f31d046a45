"""Figures over time: rates from counters, latencies of what was bound since, three spans."""

from __future__ import annotations

import pytest
from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.pages.timeline import SPANS, Timeline


async def test_a_point_holds_rates_depths_latency_and_utilisation() -> None:
    async with staged(2) as stage:
        live, recorder, timeline = stage.local.live, stage.explaining.recorder, Timeline()
        timeline.sample(live, recorder, 100.0)
        await stage.create(*(raw_pod(f"web-{i}", cpu="1") for i in range(4)), raw_pod("big", cpu="900"))
        await stage.settled(bound=4, failed=1)
        timeline.sample(live, recorder, 102.0)
        timeline.sample(live, recorder, 103.0)
        page = timeline.page("5m")
        capacity = int(live.cache.cluster.nodes.allocatable[0, :2].sum())

    assert page.time == [102.0, 103.0]
    assert page.bound == [2.0, 0.0] and page.arriving == [2.5, 0.0]
    assert page.p50[0] is not None and page.p99[0] is not None and 0 < page.p50[0] <= page.p99[0]
    assert page.p50[1] is None
    assert page.used["cpu"][0] == pytest.approx(4000 * 100 / capacity, abs=0.01)
    assert page.unschedulable[0] + page.backoff[0] == 1


async def test_longer_spans_have_fewer_points_and_all_are_bounded() -> None:
    async with staged(1) as stage:
        timeline = Timeline()
        for second in range(700):
            timeline.sample(stage.local.live, stage.explaining.recorder, float(second))
        lengths = {span: len(timeline.page(span).time) for span in SPANS}

    assert lengths["5m"] == 300
    assert lengths["1h"] == 46
    assert lengths["1d"] == 1
