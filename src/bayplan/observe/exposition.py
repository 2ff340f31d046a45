"""Metrics as text: the Prometheus format 0.0.4 and, for scrapers that ask for it, OpenMetrics 1.0.

Both are written directly from the numbers (docs/decisions/0009-written-by-hand.md). The difference is small: in
OpenMetrics the family of a counter is named without `_total`, bounds are always floats, and the text ends with `# EOF`.
Nothing is compressed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from bayplan.observe.metrics import Family, FamilyReading, Histogram, MetricKind, MetricsRegistry, Values

__all__ = [
    "OPEN_METRICS",
    "PROMETHEUS_TEXT",
    "escaped_label",
    "family_header",
    "is_open_metrics_wanted",
    "render",
    "sample_line",
]

PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TOTAL = "_total"


def render(registry: MetricsRegistry, accept: str = "") -> tuple[bytes, str]:
    """The body of an answer and its content type; `accept` is the scraper's Accept header."""
    is_open = is_open_metrics_wanted(accept)
    lines: list[str] = []
    for reading in registry.collect():
        lines.extend(_family_lines(reading, is_open=is_open))
    if is_open:
        lines.append("# EOF\n")
    return "".join(lines).encode(), OPEN_METRICS if is_open else PROMETHEUS_TEXT


def is_open_metrics_wanted(accept: str) -> bool:
    """Whether the scraper prefers OpenMetrics to the classic text format."""
    best = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for offer in accept[:1024].split(","):
        media, _, parameters = offer.partition(";")
        name = media.strip().lower()
        if name in best:
            best[name] = max(best[name], _quality(parameters))
    return best["application/openmetrics-text"] > best["text/plain"]


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def family_header(family: Family, *, is_open: bool = False) -> str:
    name = family.name
    if is_open and family.kind is MetricKind.COUNTER:
        name = name.removesuffix(_TOTAL)
    text = f"[{family.stability.value}] {family.help}".replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {family.kind.value}\n"


def sample_line(name: str, labels: str, value: float) -> str:
    return f"{name}{{{labels}}} {_number(value)}\n" if labels else f"{name} {_number(value)}\n"


def label_text(names: Iterable[str], values: Iterable[str]) -> str:
    """`name="value",…` with the values escaped."""
    return ",".join(f'{name}="{escaped_label(value)}"' for name, value in zip(names, values, strict=True))


def _family_lines(reading: FamilyReading, *, is_open: bool) -> Iterator[str]:
    family = reading.family
    yield family_header(family, is_open=is_open)
    name = family.name
    if is_open and family.kind is MetricKind.COUNTER and not name.endswith(_TOTAL):
        name += _TOTAL
    if family.kind is MetricKind.HISTOGRAM:
        yield from _histogram_lines(family, reading.values, is_open=is_open)
        return
    for values, number in reading.values.items():
        if not isinstance(number, Histogram):
            yield sample_line(name, label_text(family.labels, values), number)


def _histogram_lines(family: Family, values: Values, *, is_open: bool) -> Iterator[str]:
    bounds = [_bound(bound, is_open=is_open) for bound in family.buckets] + ["+Inf"]
    for labels, histogram in values.items():
        if not isinstance(histogram, Histogram):
            continue
        text = label_text(family.labels, labels)
        start = f'{family.name}_bucket{{{text}{"," if text else ""}le="'
        counts = list(accumulate(histogram.counts))
        yield "".join([f'{start}{bound}"}} {count}\n' for bound, count in zip(bounds, counts, strict=True)])
        yield sample_line(f"{family.name}_sum", text, histogram.total)
        yield sample_line(f"{family.name}_count", text, counts[-1])


def _bound(bound: float, *, is_open: bool) -> str:
    return repr(float(bound)) if is_open else _number(bound)


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else repr(float(value))


def escaped_label(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return value
