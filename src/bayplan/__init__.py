"""Bayplan: the Kubernetes scheduler and its scheduling framework, in Python.

`ARCHITECTURE.md` names the rooms of this package and which may import which. Start reading at
`bayplan.loop.scheduling_cycle`; plugin authors need `bayplan.framework` alone. `bayplan.simulate` is imported when
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayplan.sim.notebook import simulate

__all__ = ["simulate"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "simulate":
        from bayplan.sim.notebook import simulate

        return simulate
    raise AttributeError(f"module `bayplan` has no attribute `{name}`")
