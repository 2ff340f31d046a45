"""The status of an ElasticQuota: what the pods of its namespace request of what it names.

It agrees with what the plugin holds against the quota: every pod that has a node and has not finished counts, with its
overhead.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.pod import Pod
from bayplan.api.quantity import Quantity, QuantityError, format_quantity
from bayplan.api.requests import pod_requests, to_amounts
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota

__all__ = ["is_up_to_date", "used_by"]


def used_by(quota: ElasticQuota, pods: Iterable[Pod]) -> dict[str, Quantity]:
    """Amounts by name, for every resource that the quota's min or max names."""
    total = dict.fromkeys(sorted({*(quota.spec.min or ()), *(quota.spec.max or ())}), 0)
    for pod in pods:
        if pod.spec.node_name and not pod.is_finished:
            requests = pod_requests(pod, status=True) | {"pods": 1}
            for name in total:
                total[name] += requests.get(name, 0)
    return {name: format_quantity(amount, name) for name, amount in total.items()}


def is_up_to_date(quota: ElasticQuota, used: dict[str, Quantity]) -> bool:
    """Whether the quota has this status already, in whatever notation."""
    try:
        return quota.status.used is not None and to_amounts(quota.status.used) == to_amounts(used)
    except QuantityError:
        return False
