"""Stand-ins with the names and extension points of kube-scheduler's plugins, and short ways to load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import msgspec
import pytest

from bayplan.config import ConfigError, Problem, SchedulerConfig, load_config, resolve_profiles
from bayplan.config.profiles import ResolvedProfile
from bayplan.framework import Plugin, PluginArgs
from bayplan.framework.registry import Registry

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def _state(self: Any, state: Any, pod: Any, nodes: Any) -> None: ...
def _filter(self: Any, state: Any, pod: Any, node: Any) -> None: ...
def _place(self: Any, state: Any, pod: Any, node_name: Any) -> None: ...
async def _bind(self: Any, state: Any, pod: Any, node_name: Any) -> None: ...
def _enqueue(self: Any, pod: Any) -> None: ...
def _key(self: Any, queued: Any) -> tuple[int, ...]:
    return ()


def _post(self: Any, state: Any, pod: Any, diagnosis: Any) -> None: ...


METHODS = {
    "preEnqueue": ("pre_enqueue", _enqueue),
    "queueSort": ("sort_key", _key),
    "preFilter": ("pre_filter", _state),
    "filter": ("filter", _filter),
    "postFilter": ("post_filter", _post),
    "preScore": ("pre_score", _state),
    "score": ("score", _filter),
    "reserve": ("reserve", _place),
    "permit": ("permit", _place),
    "preBind": ("pre_bind", _bind),
    "bind": ("bind", _bind),
    "postBind": ("post_bind", _place),
}
INTREE = {
    "SchedulingGates": "preEnqueue",
    "PrioritySort": "queueSort",
    "NodeUnschedulable": "filter",
    "NodeName": "filter",
    "TaintToleration": "filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodePorts": "preFilter filter",
    "NodeResourcesFit": "preFilter filter preScore score",
    "VolumeRestrictions": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "VolumeBinding": "preFilter filter preScore score reserve preBind",
    "VolumeZone": "preFilter filter",
    "PodTopologySpread": "preFilter filter preScore score",
    "InterPodAffinity": "preFilter filter preScore score",
    "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
    "DefaultPreemption": "preEnqueue postFilter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": "preFilter filter",
}


WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


class FitArgs(PluginArgs):
    ignored_resources: list[str] = []

    def ignoring(self, resources: Sequence[str]) -> Self:
        return msgspec.structs.replace(self, ignored_resources=list(resources))


def stand_in(name: str, points: str, **attributes: Any) -> type[Plugin]:
    methods = dict(METHODS[point] for point in points.split())
    return type(name, (Plugin,), {**methods, **attributes, "__module__": __name__})


def registry(*more: type[Plugin]) -> Registry:
    extra = {"NodeResourcesFit": {"Args": FitArgs}}
    classes = [
        stand_in(name, points, default_weight=WEIGHTS.get(name, 0), **extra.get(name, {}))
        for name, points in INTREE.items()
    ]
    return Registry([*classes, *more], use_installed=False)


def problems_of(text: str | dict[str, Any]) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    return list(caught.value.problems)


def v1(body: str = "") -> SchedulerConfig:
    return load_config(HEADER + body)


def profile(body: str, *more: type[Plugin]) -> ResolvedProfile:
    """The one profile of a v1 configuration; `body` is YAML in flow style."""
    return resolve_profiles(v1(f"profiles: [{body}]"), registry(*more))[0]


def refusal(body: str, *more: type[Plugin]) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        profile(body, *more)
    return list(caught.value.problems)
