from __future__ import annotations

import logging

import pytest

from bayplan.observe.metrics import Family, Histogram, MetricKind, MetricsRegistry, exponential_buckets

REQUESTS = Family(name="requests_total", kind=MetricKind.COUNTER, help="Requests.", labels=("code", "host"))
SIZE = Family(name="size", kind=MetricKind.GAUGE, help="Size.")
SECONDS = Family(name="seconds", kind=MetricKind.HISTOGRAM, help="Seconds.", buckets=(1.0, 2.0, 4.0))


def test_buckets_grow_by_the_factor_as_the_go_client_computes_them() -> None:
    assert exponential_buckets(0.001, 2, 15)[-1] == pytest.approx(16.384)
    assert exponential_buckets(1, 2, 5) == (1, 2, 4, 8, 16)
    assert len(exponential_buckets(0.00001, 1.5, 20)) == 20


@pytest.mark.parametrize(
    ("kind", "buckets"), [(MetricKind.HISTOGRAM, ()), (MetricKind.COUNTER, (1.0,)), (MetricKind.HISTOGRAM, (2.0, 1.0))]
)
def test_a_declaration_with_wrong_buckets_is_refused(kind: MetricKind, buckets: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="metric `x`"):
        Family(name="x", kind=kind, help="", buckets=buckets)


def test_a_value_on_a_bound_falls_into_that_bucket() -> None:
    histogram = Histogram((1.0, 2.0, 4.0))
    for value in (0.0, 1.0, 1.5, 4.0, 9.0):
        histogram.observe(value)

    assert histogram.counts == [2, 1, 1, 1]
    assert histogram.count == 5
    assert histogram.total == 15.5


def test_equal_label_values_share_a_child() -> None:
    metric = MetricsRegistry().counter(REQUESTS)
    metric.labels("200", "a").inc()
    metric.labels("200", "a").inc(2)

    assert metric.labels("200", "a").value == 3
    assert metric.labels("200", "b").value == 0


def test_the_wrong_number_of_label_values_is_refused() -> None:
    with pytest.raises(ValueError, match="has the labels code, host; got 1 values"):
        MetricsRegistry().counter(REQUESTS).labels("200")


def test_label_values_without_end_share_one_child_after_a_limit() -> None:
    metric = MetricsRegistry().counter(REQUESTS)
    for number in range(6_000):
        metric.labels(str(number), "").inc()

    assert len(metric.children) == 5_001
    assert metric.children["other", "other"].value == 1_000


def test_a_family_is_registered_once_and_as_what_it_is() -> None:
    registry = MetricsRegistry()
    registry.counter(REQUESTS)

    with pytest.raises(ValueError, match="registered twice"):
        registry.counter(REQUESTS)
    with pytest.raises(ValueError, match="declared as a gauge, not as a counter"):
        registry.counter(SIZE)


def test_readers_are_asked_at_every_scrape() -> None:
    registry = MetricsRegistry()
    sizes = iter((1.0, 2.0))
    registry.read_one(SIZE, lambda: next(sizes))

    assert [dict(reading.values) for reading in registry.collect()] == [{(): 1.0}]
    assert [dict(reading.values) for reading in registry.collect()] == [{(): 2.0}]


def test_a_reader_that_fails_costs_its_own_family_only(caplog: pytest.LogCaptureFixture) -> None:
    registry = MetricsRegistry()
    registry.read_one(SIZE, lambda: 1 // 0)
    registry.histogram(SECONDS)
    with caplog.at_level(logging.ERROR):
        shown = [reading.family.name for reading in registry.collect()]

    assert shown == ["seconds"]
    assert "reading metric size failed" in caplog.text


def test_what_was_only_noted_is_added_up_before_the_scrape() -> None:
    registry = MetricsRegistry()
    size = registry.gauge(SIZE).only
    registry.before_scrape(lambda: size.set(7))

    assert [dict(reading.values) for reading in registry.collect()] == [{(): 7}]


def test_a_disabled_metric_is_counted_and_not_shown() -> None:
    registry = MetricsRegistry(disabled=["size", "unknown"])
    registry.gauge(SIZE).only.set(1)
    registry.histogram(SECONDS)

    assert [reading.family.name for reading in registry.collect()] == ["seconds"]
    assert registry.disabled == ["size"]


def test_a_family_without_children_has_no_reading() -> None:
    registry = MetricsRegistry()
    registry.counter(REQUESTS)

    assert list(registry.collect()) == []
