"""VolumeBinding: the plugin and its parts.

`pod_volumes` says what a pod needs, `matching` and `provisioning` which nodes can give it, `places` from where volumes
are reachable; `binder` and `assumed_objects` lead from the choice of a node to bound claims.
"""

from bayplan.plugins.intree.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
