"""Metrics that plugins declare: names, labels, values, and what they are when a plugin comes or goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.explain.stage import raw_pod, staged

from bayplan.app.metrics import register_live
from bayplan.app.settings import load_settings
from bayplan.framework import CounterMetric, Depends, GaugeMetric, HistogramMetric, Plugin
from bayplan.framework.metrics import metric_readings
from bayplan.framework.reading import reading_of
from bayplan.observe.exposition import render
from bayplan.observe.metrics import MetricsRegistry
from bayplan.testing import Harness, pod


class LicenceFit(Plugin):
    refused = CounterMetric("Pods refused for want of a licence.", labels=("pool",))
    free = GaugeMetric("Licences that are free.")
    waits = HistogramMetric("Seconds until a licence was free.", buckets=(1, 10))

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(node.name)

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.refused.labels("cad").inc()
        self.free.set(3)
        self.waits.observe(2.5)


class Counting(Plugin):
    calls = CounterMetric("Calls.")

    def score(self, state: Any, pod: Any, node: Any) -> int:
        self.calls.inc()
        return 1


def test_each_plugin_object_feeds_metrics_of_its_own() -> None:
    harness = Harness(nodes=["n"], plugins=[LicenceFit])
    harness.schedule(pod("p"))
    fed, other = harness.plugin("LicenceFit"), LicenceFit()

    assert (fed.refused.value("cad"), fed.free.value(), fed.waits.value()) == (1, 3, 1)
    assert other.free.value() == 0
    readings = {each.family.name: each for each in metric_readings([("one", fed), ("two", other)])}
    assert set(readings) == {
        "bayplan_plugin_licence_fit_refused_total",
        "bayplan_plugin_licence_fit_free",
        "bayplan_plugin_licence_fit_waits",
    }
    assert readings["bayplan_plugin_licence_fit_free"].values == {("one",): 3, ("two",): 0}
    assert readings["bayplan_plugin_licence_fit_refused_total"].values == {("one", "cad"): 1}
    assert readings["bayplan_plugin_licence_fit_refused_total"].family.labels == ("profile", "pool")


@pytest.mark.parametrize(
    ("about", "keywords", "why"),
    [("", {}, "says what is counted"), ("x", {"labels": "pool"}, "a tuple"), ("x", {"labels": ("profile",)}, "taken")],
)
def test_a_wrong_declaration_is_refused_where_it_is_written(about: str, keywords: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        CounterMetric(about, **keywords)


def test_buckets_must_rise() -> None:
    with pytest.raises(ValueError, match="must rise"):
        HistogramMetric("x", buckets=(2, 1))


def test_a_wrong_number_of_labels_is_named() -> None:
    with pytest.raises(ValueError, match=r"has the labels pool; got 0 values"):
        LicenceFit().refused.inc()


def test_a_metric_is_no_obstacle_unless_the_method_feeds_it() -> None:
    assert reading_of(LicenceFit(), "score").depends is Depends.NODE
    assert "feeds a metric" in reading_of(Counting(), "score").obstacle


async def test_metrics_are_shown_while_their_plugin_runs(tmp_path: Path) -> None:
    file = tmp_path / "seats.py"
    file.write_text(
        "from bayplan.framework import CounterMetric, Plugin\n\n\nclass Seats(Plugin):\n"
        '    taken = CounterMetric("Seats taken.", labels=("room",))\n\n'
        "    def reserve(self, state, pod, node_name):\n        self.taken.labels(pod.namespace).inc()\n"
    )
    registry = MetricsRegistry()
    async with staged(1, plugins=[str(file)]) as stage:
        register_live(registry, lambda: stage.local.live)
        await stage.create(raw_pod("web"))
        await stage.settled(bound=1)
        shown = render(registry)[0].decode()
        stage.local.reload(load_settings(None, []))
        after = render(registry)[0].decode()

    name = "bayplan_plugin_seats_taken_total"
    assert f"# HELP {name} [ALPHA] Seats taken.\n# TYPE {name} counter\n" in shown
    assert f'{name}{{profile="default-scheduler",room="default"}} 1\n' in shown
    assert "bayplan_plugin" not in after and "scheduler_pending_pods" in after
