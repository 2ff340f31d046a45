"""CONTRACT: all that a plugin author imports.

    from bayplan.framework import Plugin, PluginArgs, Unschedulable, normalize_highest

`framework.runtime` is the engine that calls plugins; nothing in this package imports it.
"""

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.args import NoArgs, PluginArgs
from bayplan.framework.cycle import CycleState, StateKey
from bayplan.framework.depends import Depends
from bayplan.framework.diagnosis import Diagnosis, FitError
from bayplan.framework.events import ALL, ActionType, ClusterEvent, EventHint, Hint, Resource, by_shape
from bayplan.framework.handle import Handle
from bayplan.framework.normalize import MAX_NODE_SCORE, Normalizer, normalize_highest, normalize_lowest, normalize_range
from bayplan.framework.plugin import UNSIGNED, Permission, Plugin, PostFilterResult, PreFilterResult
from bayplan.framework.points import ExtensionPoint
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
    "ClusterEvent",
    "Code",
    "CustomResource",
    "CycleState",
    "Depends",
    "Diagnosis",
    "Error",
    "EventHint",
    "ExtensionPoint",
    "FitError",
    "Handle",
    "Hint",
    "NoArgs",
    "NodeColumns",
    "NodeInfo",
    "Normalizer",
    "Pending",
    "Permission",
    "Plugin",
    "PluginArgs",
    "PodInfo",
    "PostFilterResult",
    "PreFilterResult",
    "PrinterColumn",
    "QueuedPod",
    "Resource",
    "ResourcePart",
    "Skip",
    "StateKey",
    "Status",
    "StatusTable",
    "Unresolvable",
    "Unschedulable",
    "Verdicts",
    "Wait",
    "by_shape",
    "normalize_highest",
    "normalize_lowest",
    "normalize_range",
]
