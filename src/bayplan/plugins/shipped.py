"""The community plugins that come with Bayplan, by name, without importing any of them.

The registry gets them in the form in which installed packages declare theirs, so a configuration may name them, and a
module is imported only then. A plugin of the same name from a file or another package takes precedence.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint

__all__ = ["COMMUNITY", "community_entry_points"]

COMMUNITY: dict[str, str] = {
    "BlockAllScheduler": "block_all_scheduler:BlockAllScheduler",
    "NetworkScheduling": "network_scheduling:NetworkScheduling",
    "TopologyScheduling": "topology_scheduling:TopologyScheduling",
    "ScoreByNameLength": "score_by_name_length:ScoreByNameLength",
    "ScoreByLabel": "score_by_label:ScoreByLabel",
    "SchedulingTimestamp": "scheduling_timestamp:SchedulingTimestamp",
    "alnaircostsaving": "alnair_cost_saving:AlnairCostSaving",
    "alnairhighperformance": "alnair_high_performance:AlnairHighPerformance",
    "NodeCRDResourceFit": "node_crd_resource_fit:NodeCRDResourceFit",
    "Coscheduling": "coscheduling:Coscheduling",
    "CapacityScheduling": "capacity_scheduling:CapacityScheduling",
    "NodeResourceTopologyMatch": "node_resource_topology_match:NodeResourceTopologyMatch",
    "ExpressionPolicy": "expression_policy:ExpressionPolicy",
    "GpuShareRandom": "gpu_share:GpuShareRandom",
    "GpuShareDotProd": "gpu_share:GpuShareDotProd",
    "GpuShareBestFit": "gpu_share:GpuShareBestFit",
    "GpuSharePacking": "gpu_share:GpuSharePacking",
    "GpuShareClustering": "gpu_share:GpuShareClustering",
    "GpuShareFGD": "gpu_share:GpuShareFGD",
    "NodeResourcesAllocatable": "node_resources_allocatable:NodeResourcesAllocatable",
}
"""Plugin name to `module:class` inside `bayplan.plugins.community`."""

_GROUP = "bayplan.plugins"


def community_entry_points() -> list[EntryPoint]:
    return [EntryPoint(name, f"bayplan.plugins.community.{target}", _GROUP) for name, target in COMMUNITY.items()]
