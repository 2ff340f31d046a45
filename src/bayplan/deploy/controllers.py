"""The controllers of PodGroups and ElasticQuotas as a deployment of their own.

They have a service account of their own, which may do what `status_controllers` declares and nothing else, so that
their permissions are separate from those of the scheduler. Their definitions come with the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bayplan.app.controllers.status_controllers import permissions_for
from bayplan.deploy.pods import LOCKED_CONTAINER, LOCKED_POD, network_policy, spread
from bayplan.deploy.rbac import Lease, merged_rules
from bayplan.deploy.role_documents import Account, cluster_role_documents, lease_documents, service_account

__all__ = ["ControllersDeployment", "controllers_documents"]

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ControllersDeployment:
    name: str
    instance: str
    """The instance label."""
    role: str
    """Name of the cluster role."""
    namespace: str
    image: str
    kinds: tuple[type[Any], ...]
    """Those whose status they write."""
    replicas: int = 1
    priority_class: str = ""

    @property
    def labels(self) -> dict[str, str]:
        # Not the labels of the scheduler, whose selector would match these pods.
        return {"app.kubernetes.io/name": "bayplan-controllers", "app.kubernetes.io/instance": self.instance}


def controllers_documents(given: ControllersDeployment) -> list[Document]:
    """In an order in which they can be applied. Two replicas or more elect a leader."""
    account = Account(name=given.name, namespace=given.namespace, labels=given.labels)
    elects = given.replicas > 1
    return [
        service_account(account),
        *cluster_role_documents(account, given.role, merged_rules(permissions_for(given.kinds))),
        *(lease_documents(account, Lease(given.name, given.namespace)) if elects else []),
        _deployment(given, elects=elects),
        network_policy(_metadata(given)),
    ]


def _metadata(given: ControllersDeployment) -> Document:
    return {"name": given.name, "namespace": given.namespace, "labels": given.labels}


def _arguments(given: ControllersDeployment, *, elects: bool) -> list[str]:
    kinds = [f"--kind={kind.__name__}" for kind in given.kinds]
    election = [f"--leader-elect-resource-name={given.name}", f"--leader-elect-resource-namespace={given.namespace}"]
    return [*kinds, *(["--leader-elect", *election] if elects else [])]


def _deployment(given: ControllersDeployment, *, elects: bool) -> Document:
    container: Document = {
        "name": "controllers",
        "image": given.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["bayplan", "controllers"],
        "args": _arguments(given, elects=elects),
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": LOCKED_CONTAINER,
    }
    pod: Document = {"serviceAccountName": given.name, "securityContext": LOCKED_POD, "containers": [container]}
    if given.priority_class:
        pod["priorityClassName"] = given.priority_class
    if elects:
        pod["topologySpreadConstraints"] = spread(given.labels)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(given),
        "spec": {
            "replicas": given.replicas,
            "selector": {"matchLabels": given.labels},
            "template": {"metadata": {"labels": given.labels}, "spec": pod},
        },
    }
