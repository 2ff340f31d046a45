"""CapacityScheduling: the plugin, its `elastic_quota` resource, `quotas` and their use, `victims` of preemption."""

from bayplan.plugins.community.capacity_scheduling.plugin import CapacityScheduling

__all__ = ["CapacityScheduling"]
