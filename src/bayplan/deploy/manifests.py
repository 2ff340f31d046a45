"""Manifests of a second scheduler: everything that `kubectl apply` needs, derived from a bundle.

Each pod runs without root, without capabilities and on a read-only file system; what it may do in the API is what its
plugins declare. The template carries a digest of the configuration, so applying a changed one replaces the pods.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Literal

from bayplan import __version__
from bayplan.app.controllers.status_controllers import kinds_among, permissions_for
from bayplan.app.settings import SettingsError
from bayplan.deploy.bundle import CONFIG_FILE, OWN_CONFIG_FILE, Bundle
from bayplan.deploy.controllers import ControllersDeployment, controllers_documents
from bayplan.deploy.crds import crd_documents, owned_kinds
from bayplan.deploy.plugin_files import CONFIG_MAP_BYTES
from bayplan.deploy.pods import LOCKED_CONTAINER, LOCKED_POD, network_policy, spread
from bayplan.deploy.rbac import merged_rules, needed_permissions
from bayplan.deploy.role_documents import (
    Account,
    authentication_reader_document,
    cluster_role_documents,
    lease_documents,
    service_account,
    unbound_role_documents,
)

__all__ = [
    "DEFAULT_IMAGE",
    "DEFAULT_MEMORY_LIMIT",
    "Controllers",
    "ManifestOptions",
    "container",
    "manifests",
    "rbac_documents",
    "role_name",
]

DEFAULT_IMAGE = f"bayplan:{__version__}"
PORT = 10259
_FOLDER = "/etc/bayplan"
_PLUGIN_FOLDER = "/etc/bayplan-plugins"
DEFAULT_MEMORY_LIMIT = "2Gi"
"""Three times what 5,000 nodes with 150,000 pods take; without a limit, a fault would take memory from the node."""
_PRESENT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
Document = dict[str, Any]
Controllers = Literal["none", "scheduler", "deployment"]
"""Where the controllers of PodGroups and ElasticQuotas run: nowhere, in the scheduler's process, or beside it."""


@dataclass(frozen=True, kw_only=True)
class ManifestOptions:
    namespace: str = "kube-system"
    image: str = DEFAULT_IMAGE
    replicas: int = 1
    priority_class: str = "system-cluster-critical"
    controllers: Controllers = "none"
    memory_limit: str = DEFAULT_MEMORY_LIMIT
    """Of the scheduler's container; empty for none."""
    plugin_volume: str = ""
    """PersistentVolumeClaim with the zips and wheels of the plugins, which are then not in the ConfigMap."""


def manifests(bundle: Bundle, options: ManifestOptions) -> list[Document]:
    """All documents, in an order in which they can be applied."""
    elects = bundle.elects or options.replicas > 1
    config = _config_map(bundle, options, elects=elects)
    return [
        *_namespace(options.namespace),
        *crd_documents(owned_kinds(bundle.watches)),
        service_account(Account(name=bundle.name, namespace=options.namespace, labels=_labels(bundle))),
        *unbound_role_documents(role_name(bundle, options), _labels(bundle)),
        *rbac_documents(bundle, options, elects=elects),
        config,
        _deployment(bundle, options, digest=_digest(config)),
        network_policy(_metadata(bundle, options), ports=(PORT,)),
        *([_disruption_budget(bundle, options)] if options.replicas > 1 else []),
        *(_controllers(bundle, options) if options.controllers == "deployment" else []),
    ]


def _namespace(name: str) -> list[Document]:
    """The namespace, unless every cluster has it."""
    if name in _PRESENT_NAMESPACES:
        return []
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}]


def _controlled(bundle: Bundle) -> tuple[type[Any], ...]:
    return kinds_among(bundle.watches)


def _controllers(bundle: Bundle, options: ManifestOptions) -> list[Document]:
    given = ControllersDeployment(
        name=f"{bundle.name}-controllers",
        instance=bundle.name,
        role=f"{role_name(bundle, options)}-controllers",
        namespace=options.namespace,
        image=options.image,
        kinds=_controlled(bundle),
        replicas=options.replicas,
        priority_class=options.priority_class,
    )
    return controllers_documents(given)


def role_name(bundle: Bundle, options: ManifestOptions) -> str:
    """Cluster-wide names carry the namespace, so that two installations do not share one."""
    return f"bayplan:{options.namespace}:{bundle.name}"


def _labels(bundle: Bundle) -> dict[str, str]:
    return {"app.kubernetes.io/name": "bayplan", "app.kubernetes.io/instance": bundle.name}


def _metadata(bundle: Bundle, options: ManifestOptions) -> Document:
    return {"name": bundle.name, "namespace": options.namespace, "labels": _labels(bundle)}


def rbac_documents(bundle: Bundle, options: ManifestOptions, *, elects: bool) -> list[Document]:
    """A cluster role for what the plugins need, and a role for the lease in its namespace."""
    account = Account(name=bundle.name, namespace=options.namespace, labels=_labels(bundle))
    carried = permissions_for(_controlled(bundle)) if options.controllers == "scheduler" else ()
    rules = merged_rules(needed_permissions(bundle.plugins, others=carried))
    lease = lease_documents(account, bundle.lease(options.namespace)) if elects else []
    name = role_name(bundle, options)
    return [
        *cluster_role_documents(account, name, rules),
        authentication_reader_document(account, name),
        *lease,
    ]


def _config_map(bundle: Bundle, options: ManifestOptions, *, elects: bool) -> Document:
    text = bundle.config_text(namespace=options.namespace, leader_elect=elects)
    own = {OWN_CONFIG_FILE: bundle.own_text} if bundle.own else {}
    document: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(bundle, options),
        "data": {CONFIG_FILE: text, **own, **dict(sorted(bundle.carried.texts.items()))},
    }
    archives = {} if options.plugin_volume else bundle.carried.archives
    if archives:
        document["binaryData"] = {name: b64encode(archives[name]).decode() for name in sorted(archives)}
    size = sum(len(value.encode()) for value in document["data"].values()) + sum(map(len, archives.values()))
    if size > CONFIG_MAP_BYTES:
        raise SettingsError([_too_large(size)])
    return document


def _too_large(size: int) -> str:
    return (
        f"configuration and plugins have {size:,} bytes, and a ConfigMap holds {CONFIG_MAP_BYTES:,}; put the zip or "
        "wheel onto a volume (--plugin-volume CLAIM), or the package into an image (`bayplan render image`)"
    )


def _digest(config_map: Document) -> str:
    parts = [*config_map["data"].items(), *config_map.get("binaryData", {}).items()]
    return hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()[:16]


def _deployment(bundle: Bundle, options: ManifestOptions, *, digest: str) -> Document:
    labels = _labels(bundle)
    claim = options.plugin_volume
    carried = bundle.run_arguments(_FOLDER, archives=_PLUGIN_FOLDER if claim else None)
    arguments = [*carried, "--bind-address=0.0.0.0", f"--secure-port={PORT}"]
    if options.controllers == "scheduler":
        arguments.append("--with-controllers")
    pod: Document = {
        "serviceAccountName": bundle.name,
        "priorityClassName": options.priority_class,
        "securityContext": LOCKED_POD,
        "containers": [
            container(
                options.image,
                arguments,
                mounts=[_mount("config", _FOLDER), *([_mount("plugins", _PLUGIN_FOLDER)] if claim else [])],
                memory_limit=options.memory_limit,
            )
        ],
        "volumes": [{"name": "config", "configMap": {"name": bundle.name}}],
    }
    if claim:
        pod["volumes"].append({"name": "plugins", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    if options.replicas > 1:
        pod["topologySpreadConstraints"] = spread(labels)
    if not options.priority_class:
        del pod["priorityClassName"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(bundle, options),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"bayplan/config-digest": digest}},
                "spec": pod,
            },
        },
    }


def _mount(name: str, path: str) -> Document:
    return {"name": name, "mountPath": path, "readOnly": True}


def container(
    image: str,
    arguments: list[str],
    *,
    mounts: list[Document],
    memory_limit: str = DEFAULT_MEMORY_LIMIT,
    host: str | None = None,
) -> Document:
    """The scheduler's container, as Deployment and static pod share it."""
    limits = {"limits": {"memory": memory_limit}} if memory_limit else {}
    return {
        "name": "scheduler",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["bayplan", "run"],
        "args": arguments,
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "ports": [{"name": "https", "containerPort": PORT}],
        "livenessProbe": _probe("/livez", host, delay=15, failures=8),
        "readinessProbe": _probe("/readyz", host, delay=1, failures=3),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, **limits},
        "securityContext": LOCKED_CONTAINER,
        "volumeMounts": mounts,
    }


def _probe(path: str, host: str | None, *, delay: int, failures: int) -> Document:
    get: Document = {"path": path, "port": PORT, "scheme": "HTTPS"} | ({"host": host} if host else {})
    return {"httpGet": get, "initialDelaySeconds": delay, "timeoutSeconds": 5, "failureThreshold": failures}


def _disruption_budget(bundle: Bundle, options: ManifestOptions) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(bundle, options),
        "spec": {"minAvailable": 1, "selector": {"matchLabels": _labels(bundle)}},
    }
