"""Files for a control-plane node that replace the default scheduler, and the role that they need.

The kubelet runs the scheduler of a kubeadm cluster as a static pod, without ConfigMaps or service accounts:
configuration and plugins are mounted from the node's disk, and the scheduler uses the kubeconfig of kube-scheduler.
That file belongs to root, so this pod is the one that runs as root, without capabilities and on a read-only file
system.
"""

from __future__ import annotations

from typing import Any

import yaml

from bayplan.deploy.bundle import CONFIG_FILE, OWN_CONFIG_FILE, Bundle
from bayplan.deploy.crds import crd_documents, owned_kinds
from bayplan.deploy.manifests import container
from bayplan.deploy.rbac import merged_rules, needed_permissions

__all__ = ["static_pod", "static_pod_files"]

_FOLDER = "/etc/kubernetes/bayplan"
_KUBECONFIG = "/etc/kubernetes/scheduler.conf"
_ROLE = "bayplan:system:kube-scheduler"
_USER = "system:kube-scheduler"
Document = dict[str, Any]

_STEPS = """\
1. Allow what the plugins need, from any machine that reaches the cluster:
     kubectl apply -f cluster.yaml
2. On each control-plane node, keep the old scheduler and put the configuration in place:
     cp /etc/kubernetes/manifests/kube-scheduler.yaml /root/kube-scheduler.yaml.bak
     mkdir -p /etc/kubernetes/bayplan && cp bayplan/* /etc/kubernetes/bayplan/
3. Check both before the kubelet does, since it drops a scheduler that it cannot read without a word:
     bayplan run ARGUMENTS --write-config-to -
4. Replace the scheduler:
     cp kube-scheduler.yaml /etc/kubernetes/manifests/kube-scheduler.yaml
5. To go back:
     cp /root/kube-scheduler.yaml.bak /etc/kubernetes/manifests/kube-scheduler.yaml
"""


def static_pod_files(bundle: Bundle, *, image: str) -> dict[str, str | bytes]:
    """File name to content; `README.txt` says what goes where."""
    documents = [*crd_documents(owned_kinds(bundle.watches)), *_rbac(bundle)]
    return {
        "README.txt": _steps(bundle),
        "cluster.yaml": yaml.safe_dump_all(documents, sort_keys=False, width=120),
        "kube-scheduler.yaml": yaml.safe_dump(static_pod(bundle, image=image), sort_keys=False, width=120),
        f"bayplan/{CONFIG_FILE}": _config_text(bundle),
        **({f"bayplan/{OWN_CONFIG_FILE}": bundle.own_text} if bundle.own else {}),
        **{f"bayplan/{name}": text for name, text in sorted(bundle.carried.texts.items())},
        **{f"bayplan/{name}": archive for name, archive in sorted(bundle.carried.archives.items())},
    }


def _steps(bundle: Bundle) -> str:
    return _STEPS.replace("ARGUMENTS", " ".join(bundle.run_arguments(_FOLDER)))


def _config_text(bundle: Bundle) -> str:
    """As written, with the lease and the kubeconfig of kube-scheduler, whose place this takes."""
    election = {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}
    given = bundle.config.get("leaderElection") or {}
    connection = {**(bundle.config.get("clientConnection") or {}), "kubeconfig": _KUBECONFIG}
    document = {**bundle.config, "leaderElection": {**election, **given}, "clientConnection": connection}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def static_pod(bundle: Bundle, *, image: str) -> Document:
    """The pod for /etc/kubernetes/manifests/kube-scheduler.yaml."""
    mounts = [
        {"name": "kubeconfig", "mountPath": _KUBECONFIG, "readOnly": True},
        {"name": "config", "mountPath": _FOLDER, "readOnly": True},
    ]
    arguments = [*bundle.run_arguments(_FOLDER), f"--kubeconfig={_KUBECONFIG}", "--bind-address=127.0.0.1"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kube-scheduler",
            "namespace": "kube-system",
            "labels": {"component": "kube-scheduler", "tier": "control-plane"},
        },
        "spec": {
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "securityContext": {"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{**container(image, arguments, mounts=mounts, host="127.0.0.1"), "name": "kube-scheduler"}],
            "volumes": [
                {"name": "kubeconfig", "hostPath": {"path": _KUBECONFIG, "type": "File"}},
                {"name": "config", "hostPath": {"path": _FOLDER, "type": "Directory"}},
            ],
        },
    }


def _rbac(bundle: Bundle) -> list[Document]:
    group = "rbac.authorization.k8s.io"
    rules = merged_rules(needed_permissions(bundle.plugins))
    return [
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": _ROLE}, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _ROLE},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": _ROLE},
            "subjects": [{"apiGroup": group, "kind": "User", "name": _USER}],
        },
    ]
