"""NodeResourceTopologyMatch: the plugin, its `node_resource_topology` resource, and NUMA cells: `topology`, `columns`,
`requests`, `fit`, `least_numa`, `placement`, `eviction`, `caches`, `fingerprint`."""

from bayplan.plugins.community.node_resource_topology_match.plugin import NodeResourceTopologyMatch

__all__ = ["NodeResourceTopologyMatch"]
