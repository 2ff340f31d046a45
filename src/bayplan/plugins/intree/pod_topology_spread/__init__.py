"""PodTopologySpread: the plugin, compiled `constraints`, `counts` by domain, `scores` from counts."""

from bayplan.plugins.intree.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
