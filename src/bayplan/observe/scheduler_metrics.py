"""Every metric of kube-scheduler 1.36 under its name, with its labels and buckets, so that its dashboards work here.

Declarations only; `bayplan.app.metrics` connects them to the scheduling loop. A family with a `gate` exists in
kube-scheduler only while that feature gate is on, and is registered here under the same condition.
"""

from __future__ import annotations

from bayplan.observe.metrics import Family, MetricKind, Stability, exponential_buckets

_PREFIX = "scheduler_"
_BETA, _STABLE = Stability.BETA, Stability.STABLE
_ASYNC_CALLS = "SchedulerAsyncAPICalls"
_WORKLOADS = "GenericWorkload"

_ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
_POINT_BUCKETS = exponential_buckets(0.0001, 2, 12)
_PLUGIN_BUCKETS = exponential_buckets(0.00001, 1.5, 20)
_SLI_BUCKETS = exponential_buckets(0.01, 2, 20)
_HINT_BUCKETS = exponential_buckets(0.00001, 2, 12)
_DEVICE_BUCKETS = exponential_buckets(0.1, 2, 14)


def _counter(
    name: str, labels: tuple[str, ...], help: str, stability: Stability = Stability.ALPHA, gate: str = ""
) -> Family:
    return Family(
        name=_PREFIX + name, kind=MetricKind.COUNTER, help=help, labels=labels, stability=stability, gate=gate
    )


def _gauge(
    name: str, labels: tuple[str, ...], help: str, stability: Stability = Stability.ALPHA, gate: str = ""
) -> Family:
    return Family(name=_PREFIX + name, kind=MetricKind.GAUGE, help=help, labels=labels, stability=stability, gate=gate)


def _histogram(
    name: str,
    labels: tuple[str, ...],
    buckets: tuple[float, ...],
    help: str,
    stability: Stability = Stability.ALPHA,
    gate: str = "",
) -> Family:
    return Family(
        name=_PREFIX + name,
        kind=MetricKind.HISTOGRAM,
        help=help,
        labels=labels,
        buckets=buckets,
        stability=stability,
        gate=gate,
    )


# Attempts

SCHEDULE_ATTEMPTS = _counter(
    "schedule_attempts_total",
    ("result", "profile"),
    "Attempts to schedule a pod: `scheduled`, `unschedulable` (no node fits now) or `error` (something went wrong).",
    _STABLE,
)
ATTEMPT_DURATION = _histogram(
    "scheduling_attempt_duration_seconds",
    ("result", "profile"),
    _ATTEMPT_BUCKETS,
    "Seconds from the start of an attempt to its binding or its failure.",
    _STABLE,
)
ALGORITHM_DURATION = _histogram(
    "scheduling_algorithm_duration_seconds", (), _ATTEMPT_BUCKETS, "Seconds that a decision took."
)
SLI_DURATION = _histogram(
    "pod_scheduling_sli_duration_seconds",
    ("attempts",),
    _SLI_BUCKETS,
    "Seconds from a pod's first entry into the active queue to its binding, over all its attempts.",
    _BETA,
)
POD_ATTEMPTS = _histogram(
    "pod_scheduling_attempts", (), exponential_buckets(1, 2, 5), "Attempts that a pod needed until bound.", _STABLE
)
SCHEDULED_AFTER_FLUSH = _counter(
    "pod_scheduled_after_flush_total",
    (),
    "Pods scheduled after the timer, not an event, had brought them back from the unschedulable pods.",
)
UNSCHEDULABLE_PODS = _gauge(
    "unschedulable_pods",
    ("plugin", "profile"),
    "Waiting pods that a plugin rejected. A pod that several plugins rejected counts for each.",
    _BETA,
)
EVENT_HANDLING = _histogram(
    "event_handling_duration_seconds", ("event",), _POINT_BUCKETS, "Seconds to take in a change of the cluster."
)

# Preemption

PREEMPTION_VICTIMS = _histogram(
    "preemption_victims", (), exponential_buckets(1, 2, 7), "Victims of a nomination.", _STABLE
)
PREEMPTION_ATTEMPTS = _counter("preemption_attempts_total", (), "Attempts to make room by preemption.", _STABLE)
PREEMPTION_DURATION = _histogram(
    "preemption_goroutines_duration_seconds", ("result",), _SLI_BUCKETS, "Seconds to evict the victims of a nomination."
)
PREEMPTION_EXECUTIONS = _counter(
    "preemption_goroutines_execution_total", ("result",), "Evictions of the victims of a nomination."
)

# The queue and the cache

PENDING_PODS = _gauge(
    "pending_pods", ("queue",), "Pods that wait, by queue: active, backoff, unschedulable, gated.", _STABLE
)
QUEUE_INCOMING = _counter(
    "queue_incoming_pods_total", ("queue", "event"), "Pods that entered a queue, by queue and cause.", _STABLE
)
QUEUEING_HINT_DURATION = _histogram(
    "queueing_hint_execution_duration_seconds",
    ("plugin", "event", "hint"),
    _PLUGIN_BUCKETS,
    "Seconds that a plugin's queueing hint took, and what it said.",
)
INFLIGHT_EVENTS = _gauge(
    "inflight_events", ("event",), "Events kept for pods that are being scheduled; PodPopped counts those pods."
)
CACHE_SIZE = _gauge("cache_size", ("type",), "Nodes, pods and assumed pods in the scheduler's cache.")
GOROUTINES = _gauge("goroutines", ("operation",), "Tasks in flight, by operation.", _BETA)

# The framework

EXTENSION_POINT_DURATION = _histogram(
    "framework_extension_point_duration_seconds",
    ("extension_point", "status", "profile"),
    _POINT_BUCKETS,
    "Seconds that all plugins of an extension point took together.",
    _STABLE,
)
PLUGIN_DURATION = _histogram(
    "plugin_execution_duration_seconds",
    ("plugin", "extension_point", "status"),
    _PLUGIN_BUCKETS,
    "Seconds that one plugin took at an extension point, of a sample of the cycles.",
)
PLUGIN_EVALUATIONS = _counter(
    "plugin_evaluation_total",
    ("plugin", "extension_point", "profile"),
    "Cycles in which a plugin had a say at an extension point.",
    _BETA,
)
PERMIT_WAIT = _histogram(
    "permit_wait_duration_seconds", ("result",), _ATTEMPT_BUCKETS, "Seconds that pods waited at Permit.", _BETA
)

# Batches of alike pods

BATCH_ATTEMPTS = _counter(
    "batch_attempts_total", ("profile", "result"), "Cycles that could use what was found for an alike pod, or not."
)
BATCH_CACHE_FLUSHED = _counter(
    "batch_cache_flushed_total", ("profile", "reason"), "Times that what was found for alike pods was dropped, and why."
)
GET_NODE_HINT_DURATION = _histogram(
    "get_node_hint_duration_seconds",
    ("hinted", "profile"),
    _HINT_BUCKETS,
    "Seconds to look up what was found for an alike pod.",
)
STORE_RESULTS_DURATION = _histogram(
    "store_schedule_results_duration_seconds", ("profile",), _HINT_BUCKETS, "Seconds to keep results for alike pods."
)

# Devices and volumes

CLAIM_CREATES = _counter(
    "resourceclaim_creates_total", ("status",), "Resource claims created for extended resources, by outcome."
)
BINDING_CONDITIONS = _counter(
    "dra_bindingconditions_allocations_total",
    ("profile", "driver", "status"),
    "Device allocations with binding conditions, by outcome.",
)
BINDING_CONDITIONS_WAIT = _histogram(
    "dra_bindingconditions_wait_duration_seconds",
    ("profile", "driver", "status"),
    _DEVICE_BUCKETS,
    "Seconds that pods waited for the binding conditions of their devices.",
)
VOLUME_CACHE_REQUESTS = _counter(
    "volume_binder_cache_requests_total", ("operation",), "Requests to the cache of assumed volumes."
)
VOLUME_STAGE_ERRORS = _counter(
    "volume_scheduling_stage_error_total", ("operation",), "Errors of volume binding, by stage."
)

# Behind feature gates

ASYNC_CALLS = _counter(
    "async_api_call_execution_total", ("call_type", "result"), "API calls made off the main path.", gate=_ASYNC_CALLS
)
ASYNC_CALL_DURATION = _histogram(
    "async_api_call_execution_duration_seconds",
    ("call_type", "result"),
    _ATTEMPT_BUCKETS,
    "Seconds that API calls off the main path took.",
    gate=_ASYNC_CALLS,
)
PENDING_ASYNC_CALLS = _gauge(
    "pending_async_api_calls", ("call_type",), "API calls off the main path that wait.", gate=_ASYNC_CALLS
)
POD_GROUP_ATTEMPTS = _counter(
    "podgroup_schedule_attempts_total", ("result", "profile"), "Attempts to schedule a pod group.", gate=_WORKLOADS
)
POD_GROUP_ATTEMPT_DURATION = _histogram(
    "podgroup_scheduling_attempt_duration_seconds",
    ("result", "profile"),
    _ATTEMPT_BUCKETS,
    "Seconds that an attempt to schedule a pod group took.",
    gate=_WORKLOADS,
)
POD_GROUP_ALGORITHM_DURATION = _histogram(
    "podgroup_scheduling_algorithm_duration_seconds",
    (),
    _ATTEMPT_BUCKETS,
    "Seconds that the decision about a pod group took.",
    gate=_WORKLOADS,
)

SCHEDULER_FAMILIES: tuple[Family, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Family))
"""All of the above, in the order of declaration."""
