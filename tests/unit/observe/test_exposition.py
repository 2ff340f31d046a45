from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from bayplan.observe.exposition import OPEN_METRICS, PROMETHEUS_TEXT, is_open_metrics_wanted, render
from bayplan.observe.metrics import Family, MetricKind, MetricsRegistry, Stability

REQUESTS = Family(
    name="requests_total",
    kind=MetricKind.COUNTER,
    help="With a \\ and a\nline.",
    labels=("code",),
    stability=Stability.STABLE,
)
SIZE = Family(name="size", kind=MetricKind.GAUGE, help="Size.", labels=("what",))
SECONDS = Family(
    name="seconds", kind=MetricKind.HISTOGRAM, help="Seconds.", labels=("result",), buckets=(0.0001, 1.0, 2.5)
)


def registry_with_all() -> MetricsRegistry:
    registry = MetricsRegistry()
    registry.counter(REQUESTS).labels("200").inc(3)
    registry.gauge(SIZE).labels("a").set(0.25)
    seconds = registry.histogram(SECONDS).labels("ok")
    for value in (0.5, 2.0, 99.0):
        seconds.observe(value)
    return registry


def test_the_text_is_what_prometheus_expects() -> None:
    body, content_type = render(registry_with_all())

    assert content_type == PROMETHEUS_TEXT
    assert body.decode() == (
        "# HELP requests_total [STABLE] With a \\\\ and a\\nline.\n"
        "# TYPE requests_total counter\n"
        'requests_total{code="200"} 3\n'
        "# HELP seconds [ALPHA] Seconds.\n"
        "# TYPE seconds histogram\n"
        'seconds_bucket{result="ok",le="0.0001"} 0\n'
        'seconds_bucket{result="ok",le="1"} 1\n'
        'seconds_bucket{result="ok",le="2.5"} 2\n'
        'seconds_bucket{result="ok",le="+Inf"} 3\n'
        'seconds_sum{result="ok"} 101.5\n'
        'seconds_count{result="ok"} 3\n'
        "# HELP size [ALPHA] Size.\n"
        "# TYPE size gauge\n"
        'size{what="a"} 0.25\n'
    )


def test_prometheus_own_parser_reads_the_same_numbers() -> None:
    families = {f.name: f for f in parse_text(render(registry_with_all())[0].decode())}

    assert families["requests"].samples[0].value == 3
    assert families["seconds"].type == "histogram"
    assert families["size"].samples[0].labels == {"what": "a"}


def test_open_metrics_is_written_for_those_who_prefer_it() -> None:
    accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    body, content_type = render(registry_with_all(), accept)
    families = {f.name: f for f in parse_open_metrics(body.decode())}

    assert content_type == OPEN_METRICS
    assert body.endswith(b"# EOF\n")
    assert b'le="1.0"' in body
    assert families["requests"].samples[0].name == "requests_total"


@pytest.mark.parametrize(
    ("accept", "is_wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("text/plain;q=0.9, application/openmetrics-text;q=0.8", False),
        ("application/openmetrics-text;q=bad", False),
        (";;;,,q=", False),
        ("application/openmetrics-text" + "x" * 100_000, False),
    ],
)
def test_the_format_follows_the_accept_header(accept: str, is_wanted: bool) -> None:
    assert is_open_metrics_wanted(accept) is is_wanted


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.floats(allow_nan=False))
def test_any_label_value_and_number_survives_the_round_trip(label: str, number: float) -> None:
    registry = MetricsRegistry()
    registry.gauge(SIZE).labels(label).set(number)
    text = render(registry)[0].decode()
    # A carriage return is legal in a value; only the parser's reading by lines would trip over it.
    if any(mark in label for mark in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"):
        return
    (sample,) = next(iter(parse_text(text))).samples

    assert sample.labels == {"what": label}
    assert sample.value == number


@pytest.mark.parametrize(("value", "spelling"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf")])
def test_numbers_that_are_none_have_their_spelling(value: float, spelling: str) -> None:
    registry = MetricsRegistry()
    registry.gauge(SIZE).labels("x").set(value)

    assert render(registry)[0].decode().splitlines()[-1] == f'size{{what="x"}} {spelling}'
