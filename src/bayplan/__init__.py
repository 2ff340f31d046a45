"""Bayplan: the Kubernetes scheduler and its scheduling framework, in Python.

`ARCHITECTURE.md` names the rooms of this package and which may import which. Start reading at
`bayplan.loop.scheduling_cycle`; plugin authors need `bayplan.framework` alone.
"""

__version__ = "0.1.0"
