"""NodeResourcesFit: the plugin, and `combined_scores`, its score and NodeResourcesBalancedAllocation's in one pass."""

from bayplan.plugins.intree.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
