"""Metrics that every Kubernetes component has (API client, leader election, health checks), and those of Bayplan alone.

Declarations only, as in `scheduler_metrics`. What carries the prefix `bayplan_` has no counterpart in kube-scheduler.
"""

from __future__ import annotations

from bayplan.observe.metrics import Family, MetricKind, Stability

_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


def _counter(name: str, labels: tuple[str, ...], help: str) -> Family:
    return Family(name=name, kind=MetricKind.COUNTER, help=help, labels=labels)


def _gauge(name: str, labels: tuple[str, ...], help: str) -> Family:
    return Family(name=name, kind=MetricKind.GAUGE, help=help, labels=labels)


# The API client

REST_REQUESTS = _counter(
    "rest_client_requests_total", ("code", "method", "host"), "Requests to the API server, by status and method."
)
REST_DURATION = Family(
    name="rest_client_request_duration_seconds",
    kind=MetricKind.HISTOGRAM,
    help="Seconds until the API server answered.",
    labels=("verb", "host"),
    buckets=_REQUEST_BUCKETS,
)
REST_RATE_LIMITER = Family(
    name="rest_client_rate_limiter_duration_seconds",
    kind=MetricKind.HISTOGRAM,
    help="Seconds that requests waited for the client-side rate limit.",
    labels=("verb", "host"),
    buckets=_REQUEST_BUCKETS,
)
WRITE_RETRIES = _counter("bayplan_write_retries_total", (), "Writes to the API server that were sent again.")
BINDINGS_UNDER_WAY = _gauge("bayplan_bindings_under_way", (), "Bindings sent and not yet answered.")
REFLECTOR_LISTS = _counter("bayplan_reflector_lists_total", ("resource",), "Complete lists that were read.")
REFLECTOR_WATCHES = _counter("bayplan_reflector_watches_total", ("resource",), "Watches that were opened.")
REFLECTOR_EVENTS = _counter("bayplan_reflector_events_total", ("resource",), "Changes that watches delivered.")
REFLECTOR_CONNECTED = _gauge("bayplan_reflector_connected", ("resource",), "1 while a watch is open.")
EVENTS_WRITTEN = _counter(
    "bayplan_events_total", ("outcome",), "Kubernetes events that were recorded, sent, dropped, or failed."
)

# Leader election, health

LEADER_STATUS = _gauge("leader_election_master_status", ("name",), "1 while this replica leads, 0 while it stands by.")
HEALTH_CHECK = Family(
    name="kubernetes_healthcheck",
    kind=MetricKind.GAUGE,
    help="1 when the check last succeeded, 0 when it failed.",
    labels=("name", "type"),
    stability=Stability.STABLE,
)
HEALTH_CHECKS = Family(
    name="kubernetes_healthchecks_total",
    kind=MetricKind.COUNTER,
    help="Runs of a health check, by outcome.",
    labels=("name", "type", "status"),
    stability=Stability.STABLE,
)
FEATURE_ENABLED = Family(
    name="kubernetes_feature_enabled",
    kind=MetricKind.GAUGE,
    help="1 for a feature gate that is on, 0 for one that is off.",
    labels=("name", "stage"),
    stability=Stability.BETA,
)

# The metrics themselves, the log, plugins

REGISTERED_METRICS = Family(
    name="registered_metrics_total",
    kind=MetricKind.COUNTER,
    help="Metrics that are registered, by stability.",
    labels=("stability_level", "deprecated_version"),
    stability=Stability.BETA,
)
DISABLED_METRICS = Family(
    name="disabled_metrics_total", kind=MetricKind.COUNTER, help="Metrics that are not shown.", stability=Stability.BETA
)
PLUGIN_FAILURES = _counter(
    "bayplan_plugin_failures_total", ("plugin", "extension_point"), "Exceptions that plugins raised."
)
DECISION_RECORDS = _gauge("bayplan_decision_records", (), "Decisions whose record is kept in memory.")
DECISION_RECORD_BYTES = _gauge("bayplan_decision_record_bytes", (), "Memory that these records take, as it is counted.")
DECISION_RECORDS_DROPPED = _counter(
    "bayplan_decision_records_dropped_total", (), "Records that made room for newer ones."
)
LOOP_STALLS = _counter(
    "bayplan_event_loop_stalls_total", (), "How often the event loop stood still for a second or longer."
)

# Resource requests of pods, on a separate endpoint because there are many

_POD_LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
POD_REQUEST = Family(
    name="kube_pod_resource_request",
    kind=MetricKind.GAUGE,
    help="What a pod requests of a resource on its node, all its containers considered.",
    labels=_POD_LABELS,
    stability=Stability.STABLE,
)
POD_LIMIT = Family(
    name="kube_pod_resource_limit",
    kind=MetricKind.GAUGE,
    help="How much of a resource a pod may use on its node, all its containers considered.",
    labels=_POD_LABELS,
    stability=Stability.STABLE,
)
