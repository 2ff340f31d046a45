"""Metrics of a plugin: declared on the class, fed through `self`, shown on /metrics for as long as the plugin runs.

    class LicenceFit(Plugin):
        refused = CounterMetric("Pods refused for want of a licence.", labels=("pool",))
        free = GaugeMetric("Licences that are free.")
        waits = HistogramMetric("Seconds until a licence was free.", buckets=(1, 10, 60))

        def reserve(self, state, pod, node_name):
            self.refused.labels("cad").inc()
            self.free.set(3)
            self.waits.observe(2.5)

The name on /metrics is made of the plugin's and the attribute's: `bayplan_plugin_licence_fit_refused_total`, with the
label `profile` in front of the declared ones. A reload that removes the plugin removes its metrics; one that keeps it
starts them again from zero. Filter and Score may run less often than once for each decision, as answers are kept: count
there only what you want to know about computations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, overload

from bayplan.observe.metrics import (
    Counter,
    Family,
    FamilyReading,
    Gauge,
    Histogram,
    Metric,
    MetricKind,
    exponential_buckets,
)

__all__ = ["CounterMetric", "GaugeMetric", "HistogramMetric", "MetricDeclaration", "metric_readings"]

_LABEL = re.compile(r"[a-z][a-z0-9_]*")
_PREFIX = "bayplan_plugin_"
_PROFILE = "profile"

B = TypeVar("B", bound="FedMetric")


class FedMetric:
    """The metric of one plugin object."""

    metric: Metric[Any]

    def value(self, *labels: str) -> float:
        """What was counted so far (of a histogram: how often), for tests."""
        child = self.metric.labels(*labels)
        return child.count if isinstance(child, Histogram) else float(child.value)


class _FedCounter(FedMetric):
    metric: Metric[Counter]

    def __init__(self, family: Family) -> None:
        self.metric = Metric(family, Counter)

    def labels(self, *values: str) -> Counter:
        """The counter with these label values, in the order of the declaration."""
        return self.metric.labels(*values)

    def inc(self, amount: float = 1) -> None:
        self.metric.labels().inc(amount)


class _FedGauge(FedMetric):
    metric: Metric[Gauge]

    def __init__(self, family: Family) -> None:
        self.metric = Metric(family, Gauge)

    def labels(self, *values: str) -> Gauge:
        """The gauge with these label values, in the order of the declaration."""
        return self.metric.labels(*values)

    def set(self, value: float) -> None:
        self.metric.labels().set(value)


class _FedHistogram(FedMetric):
    metric: Metric[Histogram]

    def __init__(self, family: Family) -> None:
        self.metric = Metric(family, lambda: Histogram(family.buckets))

    def labels(self, *values: str) -> Histogram:
        """The histogram with these label values, in the order of the declaration."""
        return self.metric.labels(*values)

    def observe(self, value: float) -> None:
        self.metric.labels().observe(value)


class MetricDeclaration(Generic[B]):
    """A metric on a plugin class; the attribute of a plugin object is what it feeds."""

    _kind: MetricKind
    _fed: Callable[[Family], B]

    def __init__(self, about: str, *, labels: Sequence[str] = ()) -> None:
        wrong = [name for name in labels if not _LABEL.fullmatch(name) or name in (_PROFILE, "le")]
        if isinstance(labels, str) or not about or wrong:
            raise ValueError(
                f"a metric takes a sentence that says what is counted, and labels as a tuple of names in lower case "
                f"(`{_PROFILE}` and `le` are taken); got {about!r:.40} and {labels!r:.60}"
            )
        self._about, self._labels = about, tuple(labels)
        self._buckets: tuple[float, ...] = ()
        self._attribute = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._attribute = name

    @overload
    def __get__(self, plugin: None, owner: type[Any]) -> MetricDeclaration[B]: ...

    @overload
    def __get__(self, plugin: object, owner: type[Any]) -> B: ...

    def __get__(self, plugin: object | None, owner: type[Any]) -> MetricDeclaration[B] | B:
        if plugin is None:
            return self
        fed: B = type(self)._fed(self._family(owner.name))
        vars(plugin)[self._attribute] = fed  # found in the object from now on, without another call
        return fed

    def _family(self, plugin: str) -> Family:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", plugin).strip("_").lower()
        suffix = "_total" if self._kind is MetricKind.COUNTER and not self._attribute.endswith("_total") else ""
        return Family(
            name=f"{_PREFIX}{words}_{self._attribute.strip('_')}{suffix}",
            kind=self._kind,
            help=self._about,
            labels=self._labels,
            buckets=self._buckets,
        )


class CounterMetric(MetricDeclaration[_FedCounter]):
    """A number that only grows: `self.refused.inc()`, or `self.refused.labels("cad").inc()`."""

    _kind, _fed = MetricKind.COUNTER, _FedCounter


class GaugeMetric(MetricDeclaration[_FedGauge]):
    """A number that goes up and down: `self.free.set(3)`."""

    _kind, _fed = MetricKind.GAUGE, _FedGauge


class HistogramMetric(MetricDeclaration[_FedHistogram]):
    """Values by size: `self.waits.observe(seconds)`. Default buckets: 1 ms to some 16 s, each twice the one before."""

    _kind, _fed = MetricKind.HISTOGRAM, _FedHistogram

    def __init__(self, about: str, *, labels: Sequence[str] = (), buckets: Sequence[float] = ()) -> None:
        super().__init__(about, labels=labels)
        self._buckets = tuple(buckets) or exponential_buckets(0.001, 2, 15)
        if list(self._buckets) != sorted(set(self._buckets)):
            raise ValueError(f"buckets must rise; got {self._buckets!r:.60}")


def metric_readings(plugins: Iterable[tuple[str, object]]) -> list[FamilyReading]:
    """The metrics of these plugins, each with the name of its profile."""
    found: dict[str, tuple[Family, dict[tuple[str, ...], float | Histogram]]] = {}
    for profile, plugin in plugins:
        for metric in _metrics_of(plugin):
            family = replace(metric.family, labels=(_PROFILE, *metric.family.labels))
            known, values = found.setdefault(family.name, (family, {}))
            if known == family:
                values.update({(profile, *labels): _number(child) for labels, child in metric.children.items()})
    return [FamilyReading(*found[name]) for name in sorted(found)]


def _metrics_of(plugin: object) -> Iterator[Metric[Any]]:
    attributes = {name: value for base in reversed(type(plugin).__mro__) for name, value in vars(base).items()}
    for name, value in attributes.items():
        if isinstance(value, MetricDeclaration):
            yield getattr(plugin, name).metric


def _number(child: Counter | Gauge | Histogram) -> float | Histogram:
    return child if isinstance(child, Histogram) else child.value
