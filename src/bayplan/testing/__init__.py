"""THE KIT, public: builders, a harness, expectations and strategies for people who write plugins.

    from bayplan.testing import Harness, expect, node, pod

    def test_prefers_the_labelled_node():
        harness = Harness(nodes=["n1", node("n2", labels={"score-by-label": "10"})], plugins=[ScoreByLabel])
        expect(harness.schedule(pod("web"))).scheduled_on("n2")

`bayplan.testing.contract` puts a plugin through everything the engine relies on; `bayplan.testing.strategies` makes
random clusters for Hypothesis; `bayplan.testing.oracle` states the default rules once more, slowly. With pytest the
fixture `harness` builds harnesses.
"""

from typing import TYPE_CHECKING, Any

from bayplan.testing.build import LONG_AGO, container, node, pod
from bayplan.testing.build_objects import (
    csi_node,
    namespace,
    owned_by,
    pdb,
    priority_class,
    pv,
    pvc,
    replica_set,
    replication_controller,
    service,
    stateful_set,
    storage_class,
)
from bayplan.testing.expect import Expectation, Score, expect
from bayplan.testing.harness import Harness
from bayplan.testing.outcome import Outcome
from bayplan.testing.parts import (
    HOSTNAME,
    REGION,
    ZONE,
    apart,
    near,
    node_term,
    port,
    prefer_nodes,
    require_nodes,
    selector,
    spread,
    taint,
    toleration,
)
from bayplan.testing.tables import verdict_table

if TYPE_CHECKING:
    from bayplan.testing.local_cluster import TestCluster, cluster

__all__ = [
    "HOSTNAME",
    "LONG_AGO",
    "REGION",
    "ZONE",
    "Expectation",
    "Harness",
    "Outcome",
    "Score",
    "TestCluster",
    "apart",
    "cluster",
    "container",
    "csi_node",
    "expect",
    "namespace",
    "near",
    "node",
    "node_term",
    "owned_by",
    "pdb",
    "pod",
    "port",
    "prefer_nodes",
    "priority_class",
    "pv",
    "pvc",
    "replica_set",
    "replication_controller",
    "require_nodes",
    "selector",
    "service",
    "spread",
    "stateful_set",
    "storage_class",
    "taint",
    "toleration",
    "verdict_table",
]


def __getattr__(name: str) -> Any:
    """The embedded cluster is imported when a test asks for it; most plugin tests need the harness alone."""
    if name in ("TestCluster", "cluster"):
        from bayplan.testing import local_cluster

        return getattr(local_cluster, name)
    raise AttributeError(f"module `bayplan.testing` has no attribute `{name}`")
