"""What if: a scenario played on a copy of the cluster. Placements, what stays pending and why; nothing reaches an API.

A scenario adds, changes, drains and removes nodes, adds pods, and changes weights, plugins or the whole configuration.
Pods that wait, pods of drained nodes and added pods are then placed in the order of the queue by
`bayplan.explain.whatif.placing`: with preemption, groups, quotas, volumes and disruption budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Annotated

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.pod import Pod
from bayplan.api.tolerations import with_cordon
from bayplan.config.errors import ConfigError
from bayplan.config.loading import load_config
from bayplan.config.profiles import ResolvedProfile, resolve_profiles
from bayplan.explain.claims.base import Edit, JsonObject
from bayplan.explain.claims.phrases import counted, listed
from bayplan.explain.claims.pods import Played
from bayplan.explain.claims.wording import sentence
from bayplan.explain.model import EvictedPod, Placement, WhatIf
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.explain.whatif.disruption import budgets_exceeded_by
from bayplan.explain.whatif.edits import add_node, apply_edits, read_object
from bayplan.explain.whatif.placing import Placed, Placing, created, queue_order
from bayplan.explain.whatif.remaking import is_lost, made_again
from bayplan.explain.whatif.templates import twins_of
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.framework.registry import Registry
from bayplan.observe.time_slices import Work

__all__ = ["AddedNodes", "AddedPods", "Scenario", "ScenarioError", "play", "read_scenario"]

_MOST_ADDED = 10_000
_MOST_EDITS = 1_000
_MOST_TOLD = 2_000
_MOST_BUDGETS = 3
_NEW = inf
"""Since when pods wait that the scenario makes."""
Count = Annotated[int, msgspec.Meta(ge=1, le=_MOST_ADDED)]


class ScenarioError(ValueError):
    """A scenario that makes no sense, in one line."""


class AddedNodes(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    like: str
    """Name of a node that there is."""
    count: Count = 1


class AddedPods(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pod: JsonObject
    count: Count = 1


class Scenario(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    edits: Annotated[list[Edit], msgspec.Meta(max_length=_MOST_EDITS)] = []
    add_nodes: list[AddedNodes] = []
    drain: list[str] = []
    """Nodes that are cordoned and whose pods look for other places; those of DaemonSets and of kubelets stay there.
    Pods that no controller makes again are counted as if somebody did, which the note says."""
    add_pods: list[AddedPods] = []
    weights: dict[str, int] = {}
    disable: list[str] = []
    """Plugins that have no say."""
    config: JsonObject | None = None
    """A KubeSchedulerConfiguration in place of the one at work."""
    pending: bool = True
    """Whether the pods that wait now are placed too."""


def read_scenario(text: bytes | str) -> Scenario:
    try:
        return msgspec.json.decode(text, type=Scenario)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ScenarioError(f"the scenario cannot be read: {error}") from None


def play(
    objects: ClusterObjects, profiles: Sequence[ResolvedProfile], registry: Registry, scenario: Scenario
) -> Work[WhatIf]:
    """Raises `ScenarioError`."""
    try:
        changed = _profiles(profiles, registry, scenario)
        copy = yield from ClusterCopy.build(objects, changed, registry)
        # The pods that wait come first: an edit may be about one of them.
        yield from _add_nodes(copy, scenario)
        notes = [_left_out(copy, scenario.edits)]
        for edit in scenario.edits:
            apply_edits(copy, [edit])
            yield
        held_up = yield from _held_up(copy, scenario.drain)
        notes += [held_up, _unmanaged(copy, scenario.drain)]
        waiting = yield from _waiting(copy, scenario)
    except (InputError, ConfigError) as error:
        raise ScenarioError(" ".join(str(error).split())) from error
    answer = yield from _place(copy, waiting)
    answer.note = " ".join(filter(None, notes))
    return answer


def _profiles(profiles: Sequence[ResolvedProfile], registry: Registry, scenario: Scenario) -> Sequence[ResolvedProfile]:
    if scenario.config is not None:
        text = msgspec.json.encode(scenario.config).decode()
        profiles = resolve_profiles(load_config(text, source="config"), registry)
    known = {name for profile in profiles for name in profile.plugin_names}
    for name in (*scenario.weights, *scenario.disable):
        if name not in known:
            raise ScenarioError(f"no plugin `{name}` runs in any profile")
    return [_adjusted(profile, scenario) for profile in profiles]


def _adjusted(profile: ResolvedProfile, scenario: Scenario) -> ResolvedProfile:
    disabled = frozenset(scenario.disable)
    points = {
        point: names if point is ExtensionPoint.QUEUE_SORT else tuple(name for name in names if name not in disabled)
        for point, names in profile.points.items()
    }
    weights = {name: scenario.weights.get(name, weight) for name, weight in profile.weights.items()}
    return replace(profile, points=points, weights=weights)


def _add_nodes(copy: ClusterCopy, scenario: Scenario) -> Work[None]:
    if sum(added.count for added in scenario.add_nodes) > _MOST_ADDED:
        raise ScenarioError(f"at most {_MOST_ADDED} nodes can be added")
    counts: Counter[str] = Counter()
    for added in scenario.add_nodes:
        counts[added.like] += added.count
    table = copy.cache.cluster.nodes
    for like, count in counts.items():
        info = table.info(like)
        if info is None:
            raise ScenarioError(f"addNodes: no node `{like}` to take as a model")
        for twin in twins_of(info.node, count, taken=table.row_of):
            add_node(copy, twin, like)
            yield


def _waiting(copy: ClusterCopy, scenario: Scenario) -> Work[list[tuple[Pod, str]]]:
    """(pod, origin), in the order of the queue. Pods that are made now come after those that wait."""
    there = [pod for key, pod in copy.waiting.items() if key not in copy.remade]
    waiting = [(pod, "pending", created(pod)) for pod in there] if scenario.pending else []
    waiting += [(copy.waiting[key], "deleted", _NEW) for key in copy.remade]
    for name in scenario.drain:
        waiting += [(pod, name, _NEW) for pod in _drained(copy, name)]
        yield
    for pod in _added(scenario.add_pods):
        copy.add_waiting(pod)
        waiting.append((pod, "added", _NEW))
        yield
    if not waiting:
        return []
    queued = []
    for pod, _, since in waiting:
        queued.append(QueuedPod(copy.info(pod), since))
        yield
    framework = next(iter(copy.deciders.values())).framework
    return [waiting[place][:2] for place in queue_order(framework, queued)]


def _held_up(copy: ClusterCopy, drained: Sequence[str]) -> Work[str]:
    """The disruption budgets that a drain would wait for: nothing waits in the answer."""
    nodes = [info for name in drained if (info := copy.cache.cluster.node(name)) is not None]
    leaving = [pod.pod for node in nodes for pod in node.pods.values() if not pod.pod.ends_with_its_node]
    found = yield from budgets_exceeded_by(copy.cache.cluster, leaving)
    told = [f"{budget} lets {allowed} of {counted(count, 'pod')} leave" for budget, allowed, count in found]
    more = f" and {len(told) - _MOST_BUDGETS:,} more" if len(told) > _MOST_BUDGETS else ""
    return f"A drain would wait for disruption budgets: {', '.join(told[:_MOST_BUDGETS])}{more}." if told else ""


def _left_out(copy: ClusterCopy, edits: Sequence[Edit]) -> str:
    """The pods that go with removed nodes: none of them is placed."""
    nodes = [copy.cache.cluster.node(edit.name) for edit in edits if edit.kind == "removeNode"]
    pods = [
        pod.pod for node in nodes if node is not None for pod in node.pods.values() if not pod.pod.ends_with_its_node
    ]
    remade, lost = [pod.key for pod in pods if not is_lost(pod)], [pod.key for pod in pods if is_lost(pod)]
    told = [f"nobody makes {listed(lost, 'pods')} again"] if lost else []
    if remade:
        told.append(f"controllers would make {listed(remade, 'pods')} again, which a drain places")
    return f"Pods of removed nodes are left out: {', and '.join(told)}." if told else ""


def _unmanaged(copy: ClusterCopy, drained: Sequence[str]) -> str:
    """The pods that nobody makes again, of those that are deleted and of those that a drain would delete."""
    nodes = [info for name in drained if (info := copy.cache.cluster.node(name)) is not None]
    moved = [pod.key for node in nodes for pod in node.pods.values() if is_lost(pod.pod)]
    told = [f"Nobody makes {listed(list(copy.lost), 'pods')} again."] if copy.lost else []
    if moved:
        names = listed(moved, "pods")
        told.append(f"A drain would delete {names}, which nobody makes again: counted as if somebody did.")
    return " ".join(told)


def _drained(copy: ClusterCopy, name: str) -> list[Pod]:
    info = copy.cache.cluster.node(name)
    if info is None:
        raise ScenarioError(f"drain: no node `{name}`")
    copy.cache.add_node(with_cordon(info.node, True))
    pods = [pod for pod in info.pods.values() if not pod.pod.is_of_daemon_set and not pod.pod.is_of_kubelet]
    for pod in pods:
        copy.cache.remove_pod(pod.uid)
        copy.release_claims(pod.pod)
    leaving = sorted((pod.pod for pod in pods if not pod.pod.ends_with_its_node), key=created)
    free = [made_again(pod, name) for pod in leaving]
    for waiting in free:
        copy.cache.note_pod(None, waiting)
    return free


def _added(groups: Sequence[AddedPods]) -> Iterable[Pod]:
    if sum(group.count for group in groups) > _MOST_ADDED:
        raise ScenarioError(f"at most {_MOST_ADDED} pods can be added")
    for place, group in enumerate(groups):
        model = read_object(group.pod, Pod)
        for number in range(group.count):
            name = model.name if group.count == 1 else f"{model.name}-{number}"
            uid = f"what-if-{place}-{number}"
            yield msgspec.structs.replace(model, metadata=msgspec.structs.replace(model.metadata, name=name, uid=uid))


def _place(copy: ClusterCopy, waiting: Sequence[tuple[Pod, str]]) -> Work[WhatIf]:
    placing = Placing(copy, waiting)
    placing.let_go(info for info in copy.cache.pods() if info.is_terminating)
    yield from placing.run()
    used: Counter[str] = Counter(each.node for each in placing.placed)
    placed, pending = ([_placement(each) for each in found] for found in (placing.placed, placing.pending))
    evicted = [EvictedPod(pod=gone.pod, node=gone.node, by=gone.by) for gone in placing.evicted]
    claim = Played(
        placed=len(placed),
        pending=len(pending),
        evicted=len(evicted),
        nodes=len(used),
        went={each.pod: each.node for each in [*placed, *pending][:_MOST_TOLD]},
    )
    return WhatIf(
        verdict=sentence(claim),
        claim=claim,
        node_count=len(copy.cache.cluster.nodes),
        placed=placed[:_MOST_TOLD],
        pending=pending[:_MOST_TOLD],
        placed_count=len(placed),
        pending_count=len(pending),
        evicted=evicted[:_MOST_TOLD],
        evicted_count=len(evicted),
        nodes_used=dict(sorted(used.items(), key=lambda entry: (-entry[1], entry[0]))[:_MOST_TOLD]),
    )


def _placement(each: Placed) -> Placement:
    return Placement(pod=each.pod, node=each.node, total=each.total, message=each.message, origin=each.origin)
