"""Workload files as typed values: items that make pods, and what happens to nodes. The reference of their fields.

apiVersion: bayplan.dev/v1alpha1
kind: Workload
until: 30d
items:
- name: train
  kind: Job
  arrivals: {poisson: 12/h}
  duration: {lognormal: {median: 20m}}
  template: {spec: {containers: [{name: main, resources: {requests: {cpu: 2}}}]}}
nodes:
- fail: {every: 90d, for: 2h}
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bayplan.sim.workloads.units import Durations

__all__ = ["AddNodes", "Arrivals", "DrainNode", "FailNodes", "Item", "NodeEvent", "Rollout", "WorkloadFile"]


class _Part(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Base of every part."""


class Arrivals(_Part, kw_only=True, frozen=True):
    """When an item comes. One of the first five; `count` limits it."""

    at: str | None = None
    """Once, at this time; `count` of them."""
    rate: str | None = None
    """Evenly, such as 30/m."""
    poisson: str | None = None
    """Randomly, with this mean rate."""
    cron: str | None = None
    """By a schedule of five fields, in UTC."""
    times: str | None = None
    """A CSV file with a column `time` in seconds, and perhaps one `duration`."""
    count: int | None = None
    start: str = "0s"
    until: str | None = None


class Rollout(_Part, kw_only=True, frozen=True):
    every: str
    surge: int = 1
    """How many pods of the new version may be there beyond `replicas`."""


class Item(_Part, kw_only=True, frozen=True):
    name: str
    kind: Literal["Pod", "Deployment", "Job"] = "Pod"
    namespace: str = "default"
    arrivals: Arrivals = Arrivals(at="0s")
    duration: Durations | str | None = None
    """None: until the pod is deleted."""
    template: dict[str, Any]
    """metadata (labels, annotations) and spec of the pods."""
    replicas: int = 1
    rollout: Rollout | None = None
    completions: int = 1
    parallelism: int = 1
    backoff_limit: int = 6


class FailNodes(_Part, kw_only=True, frozen=True):
    """Nodes fail at random: tainted at once, their pods lost after a while, and back after the repair."""

    every: str
    """Mean time between failures of one node."""
    repaired_after: str = msgspec.field(name="for", default="1h")
    pods_lost_after: str = "5m"
    nodes: str = ""
    """Only those whose name begins with this."""


class DrainNode(_Part, kw_only=True, frozen=True):
    """A node is cordoned and its pods are deleted."""

    node: str
    at: str
    back_after: str | None = msgspec.field(name="for", default=None)


class AddNodes(_Part, kw_only=True, frozen=True):
    at: str
    count: int = 1
    name: str
    template: dict[str, Any]
    """metadata, spec and status of the nodes."""


class RemoveNode(_Part, kw_only=True, frozen=True):
    node: str
    at: str


class NodeEvent(_Part, kw_only=True, frozen=True):
    """One of these."""

    fail: FailNodes | None = None
    drain: DrainNode | None = None
    add: AddNodes | None = None
    remove: RemoveNode | None = None


class WorkloadFile(_Part, kw_only=True, frozen=True):
    api_version: Literal["bayplan.dev/v1alpha1"]
    kind: Literal["Workload"]
    until: str | None = None
    items: list[Item] = []
    nodes: list[NodeEvent] = []
