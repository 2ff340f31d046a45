"""Hypothesis strategies: nodes, pods and clusters that shrink, and pods that are odd on purpose.

    @given(cluster=clusters(), pod=pods())
    def test_my_plugin(cluster, pod): ...

Needs Hypothesis, which Bayplan itself does not: `pip install hypothesis`.
"""

from __future__ import annotations

from random import Random

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.testing.generate import Cluster, random_cluster, random_node, random_pod
from bayplan.testing.odd import ODD_PODS

try:
    from hypothesis import strategies as st
except ImportError as error:  # pragma: no cover - Hypothesis is installed wherever our own tests run
    raise ImportError(
        "bayplan.testing.strategies needs Hypothesis; install it with `pip install hypothesis`"
    ) from error

__all__ = ["clusters", "nodes", "odd_pods", "pods"]


def _randoms() -> st.SearchStrategy[Random]:
    return st.randoms(use_true_random=False)


def nodes(name: str = "node") -> st.SearchStrategy[Node]:
    """Nodes of all kinds: with and without zones, tainted, cordoned, small and large."""
    return _randoms().map(lambda rng: random_node(rng, name))


def pods(name: str = "pod", *, node: str = "") -> st.SearchStrategy[Pod]:
    """Pods with any mixture of requests, constraints and preferences; with `node` they run there."""
    return _randoms().map(lambda rng: random_pod(rng, name, node=node))


def clusters(*, most_nodes: int = 8, most_pods: int = 16) -> st.SearchStrategy[Cluster]:
    """Nodes with running pods, nominated ones, services, budgets and namespaces."""
    return _randoms().map(lambda rng: random_cluster(rng, most_nodes=most_nodes, most_pods=most_pods))


def odd_pods() -> st.SearchStrategy[Pod]:
    """Pods that no plugin should stumble over: empty, huge, contradictory, or such as no API server would accept."""
    return st.sampled_from(sorted(ODD_PODS)).map(lambda name: ODD_PODS[name]())
