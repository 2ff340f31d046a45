"""Metrics as plain numbers: a family is declared once as data, a child is an int or a list of ints.

The hot path holds on to its children and adds to them (`child.value += 1`, `histogram.observe(seconds)`); nothing is
locked, formatted or looked up twice. Numbers that exist elsewhere (queue sizes, cache sizes) are read at
scrape time through `MetricsRegistry.read`. Everything runs in the event loop's thread; this module is not thread safe.

It does not render (see `exposition`) and knows no metric by name (see `scheduler_metrics`).
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

__all__ = [
    "Counter",
    "Family",
    "FamilyReading",
    "Gauge",
    "Histogram",
    "Metric",
    "MetricKind",
    "MetricsRegistry",
    "Stability",
    "exponential_buckets",
]

_log = logging.getLogger(__name__)
# Limit the number of children: label values from outside (a driver's name) must not fill the memory.
_MOST_CHILDREN = 5_000
_OVERFLOW = "other"


class MetricKind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Stability(Enum):
    """The stability level of the metric in Kubernetes; shown in front of its help text."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    STABLE = "STABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The declaration of a metric."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    stability: Stability = Stability.ALPHA
    gate: str = ""
    """The feature gate without which kube-scheduler does not register the metric."""

    def __post_init__(self) -> None:
        if (self.kind is MetricKind.HISTOGRAM) != bool(self.buckets):
            raise ValueError(f"metric `{self.name}`: a histogram has buckets, and nothing else has")
        if list(self.buckets) != sorted(set(self.buckets)):
            raise ValueError(f"metric `{self.name}`: buckets must rise")


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bounds, each `factor` times the one before, computed as the Go client computes them."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def inc(self, amount: float = 1) -> None:
        self.value += amount


class Gauge:
    """A number that may go up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def set(self, value: float) -> None:
        self.value = value


class Histogram:
    """Counts of values by bucket; the last one counts values above every bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


Child = TypeVar("Child", Counter, Gauge, Histogram)
LabelValues = tuple[str, ...]


class Metric(Generic[Child]):
    """A family and its children, one for each combination of label values that was ever asked for."""

    __slots__ = ("_make", "children", "family")

    def __init__(self, family: Family, make: Callable[[], Child]) -> None:
        self.family = family
        self._make: Callable[[], Child] = make
        self.children: dict[LabelValues, Child] = {}
        if not family.labels:
            self.children[()] = make()

    def labels(self, *values: str) -> Child:
        """The child with these label values, in the order of the declaration. Keep it if you need it again."""
        child = self.children.get(values)
        return child if child is not None else self._new_child(values)

    @property
    def only(self) -> Child:
        """The child of a family without labels."""
        return self.children[()]

    def _new_child(self, values: LabelValues) -> Child:
        if len(values) != len(self.family.labels):
            wanted = ", ".join(self.family.labels) or "none"
            raise ValueError(f"metric `{self.family.name}` has the labels {wanted}; got {len(values)} values")
        if len(self.children) >= _MOST_CHILDREN:
            values = (_OVERFLOW,) * len(values)
        child = self.children.get(values)
        if child is None:
            child = self.children[values] = self._make()
        return child


Values = Mapping[LabelValues, float | Histogram]


class FamilyReading(NamedTuple):
    """One family at scrape time."""

    family: Family
    values: Values


class MetricsRegistry:
    """The metrics of one process, or of one endpoint. A disabled metric may be counted but is not shown."""

    def __init__(self, *, disabled: Iterable[str] = ()) -> None:
        self._disabled = frozenset(disabled)
        self._readers: dict[str, tuple[Family, Callable[[], Values]]] = {}
        self._before: list[Callable[[], None]] = []
        self._changing: list[Callable[[], Sequence[FamilyReading]]] = []

    def counter(self, family: Family) -> Metric[Counter]:
        return self._add(_of_kind(family, MetricKind.COUNTER), Metric(family, Counter))

    def gauge(self, family: Family) -> Metric[Gauge]:
        return self._add(_of_kind(family, MetricKind.GAUGE), Metric(family, Gauge))

    def histogram(self, family: Family) -> Metric[Histogram]:
        return self._add(_of_kind(family, MetricKind.HISTOGRAM), Metric(family, lambda: Histogram(family.buckets)))

    def read(self, family: Family, read: Callable[[], Values]) -> None:
        """Call `read` at every scrape for the numbers, by label values."""
        if family.name in self._readers:
            raise ValueError(f"metric `{family.name}` is registered twice")
        self._readers[family.name] = (family, read)

    def read_one(self, family: Family, read: Callable[[], float]) -> None:
        """The same for a family without labels."""
        self.read(family, lambda: {(): read()})

    def read_families(self, read: Callable[[], Sequence[FamilyReading]]) -> None:
        """Call `read` at every scrape for families that come and go, as those of plugins do."""
        self._changing.append(read)

    def before_scrape(self, prepare: Callable[[], None]) -> None:
        """Call `prepare` at every scrape before the numbers are read, to add up what was only collected."""
        self._before.append(prepare)

    @property
    def families(self) -> list[Family]:
        """What is shown, by name."""
        shown = [family for name, (family, _) in self._readers.items() if name not in self._disabled]
        return sorted(shown, key=lambda family: family.name)

    @property
    def disabled(self) -> list[str]:
        """The names that are registered and not shown."""
        return sorted(self._disabled & self._readers.keys())

    def collect(self) -> Iterator[FamilyReading]:
        """All readings, by name. A reader that raises loses only its own family."""
        for prepare in self._before:
            _tried(prepare, "preparing a scrape")
        for family in self.families:
            values = _tried(self._readers[family.name][1], f"reading metric {family.name}")
            if values:
                yield FamilyReading(family, values)
        for read in self._changing:
            for reading in _tried(read, "reading metrics of plugins") or ():
                if reading.values and reading.family.name not in self._readers.keys() | self._disabled:
                    yield reading

    def _add(self, family: Family, metric: Metric[Child]) -> Metric[Child]:
        children = metric.children
        self.read(family, lambda: {labels: _number(child) for labels, child in children.items()})
        return metric


def _of_kind(family: Family, kind: MetricKind) -> Family:
    if family.kind is not kind:
        raise ValueError(f"metric `{family.name}` is declared as a {family.kind.value}, not as a {kind.value}")
    return family


def _number(child: Counter | Gauge | Histogram) -> float | Histogram:
    return child if isinstance(child, Histogram) else child.value


Result = TypeVar("Result")


def _tried(work: Callable[[], Result], what: str) -> Result | None:
    try:
        return work()
    except Exception:
        _log.exception("%s failed; the rest of the scrape is complete", what)
        return None
