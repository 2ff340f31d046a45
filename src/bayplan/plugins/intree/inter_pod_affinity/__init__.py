"""InterPodAffinity: the plugin, and `counts` of running pods by topology value."""

from bayplan.plugins.intree.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
