"""How long decisions take with one plugin alone on a large cluster. Reported, never asserted by the suite itself."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from bayplan.framework.plugin import Plugin
from bayplan.testing.build import node, pod
from bayplan.testing.harness import Harness

__all__ = ["measure"]

_LATER = 200


def measure(plugin: type[Plugin], args: Mapping[str, Any], nodes: int) -> tuple[float, float]:
    """(seconds of the first decision, seconds of each that follows); every pod is counted on the node it gets."""
    harness = Harness(
        nodes=[node(f"n{number}", zone="abc"[number % 3]) for number in range(nodes)],
        plugins=[plugin],
        args={plugin.name: args} if args else None,
        default_plugins=False,
    )
    pods = [harness.info(pod(f"p{number}", cpu="100m", labels={"app": "web"})) for number in range(_LATER + 1)]
    first = _decide(harness, pods[0])
    start = perf_counter()
    for info in pods[1:]:
        _decide(harness, info)
    return first, (perf_counter() - start) / _LATER


def _decide(harness: Harness, info: Any) -> float:
    start = perf_counter()
    decision = harness.scheduler.decide(info)
    if decision.node_name:
        harness.scheduler.assume(info, decision.node_name)
    return perf_counter() - start
