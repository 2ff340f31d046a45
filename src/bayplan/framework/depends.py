"""What an answer depends on, which decides how long it may be remembered.

The default is the cautious one: ask again for every pod. A plugin that declares less lets the engine ask once per
pod shape and then only for the rows that changed; the answers are the same, only cheaper.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Depends"]


class Depends(IntEnum):
    """On the pod's shape (or what `sign` returns), the plugin's `version`, and:"""

    NODE = 0
    """the node's own object. Asked again for a node when that object changes."""
    USE = 1
    """the node's object and what the pods on that node use: amounts, ports, volumes, and how many pods there are. Asked
    again for a node when its object changes and when pods come and go; not when a pod there gets other labels, as every
    pod does that the API server binds."""
    ROW = 2
    """the node's object and the pods on that node. Asked again for a node when either changes."""
    NODES = 3
    """all node objects. Asked again for all nodes when any node object changes."""
    CLUSTER = 4
    """anything at all. Asked again for every decision."""
