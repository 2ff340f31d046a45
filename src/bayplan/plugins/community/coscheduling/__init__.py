"""Coscheduling: the plugin, its `pod_group` resource, and `gang_room`, which tells whether a whole group fits."""

from bayplan.plugins.community.coscheduling.plugin import Coscheduling

__all__ = ["Coscheduling"]
