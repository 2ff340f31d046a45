"""The policies of the published evaluation as configurations of the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.app.settings import Settings, resolve_settings
from bayplan.config.loading import load_config
from bayplan.plugins.community.gpu_share import typical_pods
from bayplan.plugins.intree import default_registry
from bayplan.sim.workloads.openb import OpenbPod

__all__ = ["POLICIES", "policy_config", "policy_settings"]

POLICIES = {
    "Random": "GpuShareRandom",
    "DotProd": "GpuShareDotProd",
    "GpuClustering": "GpuShareClustering",
    "GpuPacking": "GpuSharePacking",
    "BestFit": "GpuShareBestFit",
    "FGD": "GpuShareFGD",
}
"""Published name to plugin, in the order of the published results."""
_BESIDE = ("PrioritySort", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit", "DefaultBinder")


def policy_config(policy: str, pods: Sequence[OpenbPod], *, second_key: str = "NodeNumber") -> dict[str, Any]:
    """The configuration: the filters that the trace needs, and one score."""
    plugin = POLICIES[policy]
    args: dict[str, Any] = {"secondKey": second_key}
    if policy == "FGD":
        args["typicalPods"] = msgspec.to_builtins(typical_pods(pod.request for pod in pods))
    score = [] if policy == "Random" else [{"name": plugin, "weight": 1}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": name} for name in (*_BESIDE, plugin)],
                    },
                    "score": {"disabled": [{"name": "*"}], "enabled": score},
                },
                "pluginConfig": [{"name": plugin, "args": args}],
            }
        ],
    }


def policy_settings(policy: str, pods: Sequence[OpenbPod], *, second_key: str = "NodeNumber") -> Settings:
    return resolve_settings(load_config(policy_config(policy, pods, second_key=second_key)), default_registry())
