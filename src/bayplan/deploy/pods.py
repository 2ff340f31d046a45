"""Settings of every pod: no root, no capabilities, a read-only file system, and replicas spread over nodes."""

from __future__ import annotations

from typing import Any

__all__ = ["LOCKED_CONTAINER", "LOCKED_POD", "spread"]

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
