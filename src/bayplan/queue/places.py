"""Where a pod can be, and the causes of moves that are no change of an object.

The values of `Place` are the queue labels of metrics and records. Causes that stand for "try again, whatever it was"
are wildcard events: no hint is asked about them.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from bayplan.framework.events import ALL, ActionType, ClusterEvent, Resource

__all__ = [
    "BACKOFF_COMPLETE",
    "FORCE_ACTIVATE",
    "POD_ADD",
    "POD_UPDATE",
    "POP",
    "POP_FROM_BACKOFF",
    "RELOADED",
    "SCHEDULE_ATTEMPT_FAILURE",
    "UNSCHEDULABLE_TIMEOUT",
    "Place",
    "Sizes",
]


class Place(Enum):
    """One of these holds for every pod that the queue knows."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


class Sizes(NamedTuple):
    """How many pods are where."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int


POD_ADD = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.ADD).name
POD_UPDATE = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.UPDATE).name
POP = "Pop"
POP_FROM_BACKOFF = "PopFromBackoffQ"
BACKOFF_COMPLETE = "BackoffComplete"
RELOADED = "ConfigurationReloaded"
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"

FORCE_ACTIVATE = ClusterEvent(Resource.ANY, ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.ANY, ALL, "UnschedulableTimeout")
