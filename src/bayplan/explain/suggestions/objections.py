"""Which filters object to each node, all of them and not only the first; and the nodes that miss by least."""

from __future__ import annotations

import numpy as np

from bayplan.api.pod import Pod
from bayplan.api.quantity import format_quantity
from bayplan.cluster.axes import BoolN
from bayplan.cluster.node_columns import NodeColumns
from bayplan.explain.claims.pods import Lacks
from bayplan.explain.suggestions.remedies import shortfall
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.framework.diagnosis import Remedy
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.decide import Decision

__all__ = ["nearest_nodes", "objections", "rejections_by_node", "sole_objectors"]

_MOST = 5


def objections(framework: Framework, decision: Decision) -> list[tuple[str, BoolN]]:
    """Each filter that takes part, in order, and the rows that it rejects, including those that other filters reject
    too.

    Empty where PreFilter ended the decision before any filter.
    """
    plan = decision.plan
    if plan is None or decision.outcome is None:
        return []
    table = framework.cluster.nodes
    nodes, valid = NodeColumns(table), table.valid[: table.size]
    columns = {call.name: column for call, column in plan.evaluation.filters}
    found: list[tuple[str, BoolN]] = []
    for call in plan.filters:
        if call.name in decision.state.skip_filter:
            continue
        column = columns.get(call.name)
        ids = column.ids[: table.size] if column is not None else call.verdicts(decision.state, decision.pod, nodes).ids
        found.append((call.name, (ids != 0) & valid))
    return found


def rejections_by_node(framework: Framework, decision: Decision) -> dict[int, tuple[str, ...]]:
    """Row to the filters that reject it, in order."""
    found = objections(framework, decision)
    table = framework.cluster.nodes
    if not found:
        return {}
    return {
        row: tuple(name for name, mask in found if mask[row])
        for row in np.flatnonzero(table.valid[: table.size]).tolist()
    }


def sole_objectors(framework: Framework, decision: Decision) -> dict[str, int]:
    """By filter, how many nodes it alone keeps the pod from."""
    found = objections(framework, decision)
    if not found:
        return {}
    count = np.sum([mask for _, mask in found], axis=0)
    alone = {name: int(np.count_nonzero(mask & (count == 1))) for name, mask in found}
    return {name: nodes for name, nodes in alone.items() if nodes}


def nearest_nodes(copy: ClusterCopy, pod: Pod, misses: dict[int, tuple[str, ...]]) -> list[Lacks]:
    """By shortfall relative to the size of the node; those with no other objection first."""
    table = copy.cache.cluster.nodes
    found = []
    for row, plugins in misses.items():
        info = table.at(row)
        lacking = shortfall(pod, info.node, info, nominated=copy.nominated_before(pod, info.name))
        if lacking:
            share = sum(amount / max(info.allocatable_of(name), 1) for name, amount in lacking.items())
            found.append((len(plugins), share, info.name, lacking, plugins))
    found.sort(key=lambda entry: entry[:3])
    framework = copy.framework(pod.spec.scheduler_name)
    return [
        Lacks(
            pod=pod.key,
            node=name,
            amounts={resource: format_quantity(amount, resource) for resource, amount in lacking.items()},
            also=tuple(plugin for plugin in plugins if Remedy.REQUESTS not in framework.plugins[plugin].remedies),
        )
        for _, _, name, lacking, plugins in found[:_MOST]
    ]
