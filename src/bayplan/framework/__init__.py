"""CONTRACT: all that a plugin author imports.

    from bayplan.framework import Plugin, PluginArgs, Unschedulable, normalize_highest

Beside it, for those who need them: `bayplan.framework.objects` (Kubernetes objects, quantities, selectors),
`bayplan.framework.columns` (the cluster as arrays), `bayplan.framework.devices` and `device_findings` (for plugins that
allocate devices) and `bayplan.framework.promises` (what only saves time).
`framework.runtime` is the engine that calls plugins; nothing else in this package imports it.
"""

from bayplan.client.errors import AlreadyExists, ApiError, Conflict, Forbidden, NoAnswer, NotFound
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.args import NoArgs, PluginArgs
from bayplan.framework.cycle import CycleState, StateKey
from bayplan.framework.diagnosis import Diagnosis, FitError, ObjectRemedy, Remedy
from bayplan.framework.events import (
    ALL,
    ActionType,
    ClusterEvent,
    EventHint,
    Hint,
    HintView,
    Resource,
    by_shape,
    by_shapes,
    by_view,
)
from bayplan.framework.handle import (
    ApiPort,
    Candidate,
    Clock,
    DryRun,
    Handle,
    LastingState,
    Recorder,
    ResourceLister,
    WaitingPod,
    WaitingPods,
)
from bayplan.framework.metrics import CounterMetric, GaugeMetric, HistogramMetric
from bayplan.framework.normalize import MAX_NODE_SCORE, Normalizer, normalize_highest, normalize_lowest, normalize_range
from bayplan.framework.plugin import Permission, Plugin, PostFilterResult, PreFilterResult
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.promises import UNSIGNED, Depends
from bayplan.framework.queued import QueuedPod
from bayplan.framework.resources import CustomResource, PrinterColumn, ResourcePart
from bayplan.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Error,
    Pending,
    Skip,
    Status,
    Unresolvable,
    Unschedulable,
    Wait,
)
from bayplan.framework.verdicts import StatusTable, Verdicts

__all__ = [
    "ALL",
    "MAX_NODE_SCORE",
    "SKIP",
    "SUCCESS",
    "UNSIGNED",
    "ActionType",
    "AlreadyExists",
    "ApiError",
    "ApiPort",
    "Candidate",
    "Clock",
    "ClusterEvent",
    "Code",
    "Conflict",
    "CounterMetric",
    "CustomResource",
    "CycleState",
    "Depends",
    "Diagnosis",
    "DryRun",
    "Error",
    "EventHint",
    "ExtensionPoint",
    "FitError",
    "Forbidden",
    "GaugeMetric",
    "Handle",
    "Hint",
    "HintView",
    "HistogramMetric",
    "LastingState",
    "NoAnswer",
    "NoArgs",
    "NodeColumns",
    "NodeInfo",
    "Normalizer",
    "NotFound",
    "ObjectRemedy",
    "Pending",
    "Permission",
    "Plugin",
    "PluginArgs",
    "PodInfo",
    "PostFilterResult",
    "PreFilterResult",
    "PrinterColumn",
    "QueuedPod",
    "Recorder",
    "Remedy",
    "Resource",
    "ResourceLister",
    "ResourcePart",
    "Skip",
    "StateKey",
    "Status",
    "StatusTable",
    "Unresolvable",
    "Unschedulable",
    "Verdicts",
    "Wait",
    "WaitingPod",
    "WaitingPods",
    "by_shape",
    "by_shapes",
    "by_view",
    "normalize_highest",
    "normalize_lowest",
    "normalize_range",
]
