"""NodeVolumeLimits: the plugin and its parts.

`attached_volumes` of pods and nodes, `limit_columns` by driver, exact `usage` of nodes near a limit.
"""

from bayplan.plugins.intree.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
