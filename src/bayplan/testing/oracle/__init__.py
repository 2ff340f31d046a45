"""The oracle: kube-scheduler's default rules stated a second time, slowly, one node at a time.

It is written from the rules and not from the engine: it imports API structs and nothing of cluster, framework or
plugins, walks plain lists, and remembers nothing. Property tests compare the engine with it. It covers what the default
profile says about resources, taints, node affinity, host ports, spread, pod affinity, images and preemption; pods with
volumes, device claims or required features are beyond it.
"""

from bayplan.testing.oracle.cluster import OracleCluster, Verdict
from bayplan.testing.oracle.decision import OracleDecision, oracle_decide
from bayplan.testing.oracle.preemption import OracleVictims, oracle_candidates, oracle_choice

__all__ = [
    "OracleCluster",
    "OracleDecision",
    "OracleVictims",
    "Verdict",
    "oracle_candidates",
    "oracle_choice",
    "oracle_decide",
]
