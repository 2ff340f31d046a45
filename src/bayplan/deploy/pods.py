"""Settings of every pod: no root, no capabilities, a read-only file system, replicas spread, ports closed."""

from __future__ import annotations

from typing import Any

__all__ = ["LOCKED_CONTAINER", "LOCKED_POD", "network_policy", "spread"]

Document = dict[str, Any]
_USER = 65532

LOCKED_POD: Document = {"runAsNonRoot": True, "runAsUser": _USER, "seccompProfile": {"type": "RuntimeDefault"}}
LOCKED_CONTAINER: Document = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def spread(labels: dict[str, str]) -> list[Document]:
    """Replicas on different nodes where there are several; one node alone still runs them all."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
    ]


def network_policy(metadata: Document, *, ports: tuple[int, ...] = ()) -> Document:
    """Only these ports of the pods can be reached. What the pods may reach is left open: where the API server is, and
    what plugins call, is not known here."""
    opened = [{"ports": [{"protocol": "TCP", "port": port} for port in ports]}] if ports else []
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": {"matchLabels": metadata["labels"]},
            "policyTypes": ["Ingress"],
            "ingress": opened,
        },
    }
