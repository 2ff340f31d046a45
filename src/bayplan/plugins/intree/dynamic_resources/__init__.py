"""DynamicResources: pods get the devices that their claims ask for.

`claims` finds the claims of a pod, `requests` what they ask for, `pools` what a node has, `search` the first way to
satisfy one with the other, `columns` the same for all nodes at once where counting is enough, `extended` the claims
that stand for extended resources, `writing` what goes to the API server.
"""

from bayplan.plugins.intree.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
