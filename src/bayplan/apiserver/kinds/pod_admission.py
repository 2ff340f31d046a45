"""What the API server fills in on a pod, and what admission adds: everything scheduling depends on.

`default_pod_spec` is shared with pod templates of workloads. `admit_pod` resolves the priority class, adds the
default tolerations, merges matchLabelKeys and sets the first status of a new pod.
"""

from __future__ import annotations

import functools
import re

from bayplan.apiserver.kinds.kind import Admission
from bayplan.apiserver.kinds.limit_rules import apply_limits_to_pod, apply_runtime_class
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS = 300
_SPEC_DEFAULTS = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_VOLUME_MODES = ("secret", "configMap", "projected", "downwardAPI")
_DEFAULT_FILE_MODE = 420
_RBD_DEFAULTS = {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}
_AZURE_DEFAULTS = {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}
_VOLUME_DEFAULTS: dict[str, Json] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": _RBD_DEFAULTS,
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": _AZURE_DEFAULTS,
}


# Names of images
_HOST = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REST = rf"(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?"
_IMAGE = re.compile(_REST, re.ASCII)
_IMAGE_WITH_DOMAIN = re.compile(f"{_DOMAIN}/{_REST}", re.ASCII)


def default_pod(document: Json) -> None:
    spec = document.setdefault("spec", {})
    default_pod_spec(spec, is_pod=True)


def default_pod_spec(spec: Json, *, is_pod: bool = False) -> None:
    """Defaults of a pod or of a pod template."""
    for name, value in _SPEC_DEFAULTS.items():
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    if is_pod:
        spec.setdefault("enableServiceLinks", True)
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    host_network = bool(spec.get("hostNetwork"))
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            _default_container(container, host_network=host_network, requests_from_limits=is_pod)
    if spec.get("resources") and is_pod:
        _requests_from_limits(spec["resources"])
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("maxSkew", 1)


def _default_container(container: Json, *, host_network: bool, requests_from_limits: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = container.get("image", "")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(image)
    resources = container.setdefault("resources", {})
    if requests_from_limits and resources.get("limits"):
        _requests_from_limits(resources)
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort") and isinstance(port.get("containerPort"), int):
            port["hostPort"] = port["containerPort"]
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(name), dict):  # an empty one too
            _default_probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        _default_request(hook)
    for variable in container.get("env") or ():
        _default_reference(variable.get("valueFrom") or {})


def _requests_from_limits(resources: Json) -> None:
    limits = resources.get("limits") or {}
    requests = resources.setdefault("requests", {})
    for name, value in limits.items():
        requests.setdefault(name, value)


def _default_probe(probe: Json) -> None:
    for name, value in _PROBE_DEFAULTS.items():
        probe.setdefault(name, value)
    _default_request(probe)
    if isinstance(probe.get("grpc"), dict):
        probe["grpc"].setdefault("service", "")


def _default_request(action: JsonValue) -> None:
    if isinstance(action, dict) and isinstance(action.get("httpGet"), dict):
        request = action["httpGet"]
        request["scheme"] = request.get("scheme") or "HTTP"
        request["path"] = request.get("path") or "/"


@functools.lru_cache(maxsize=1024)
def _pull_policy(image: str) -> str:
    """`Always` for an image without tag and digest or with the tag `latest`; what is no name of an image has no tag."""
    first, slash, _ = image.partition("/")
    # The part before the first slash is a domain if it cannot be a part of a path on the usual registry.
    has_domain = bool(slash) and ("." in first or ":" in first or first == "localhost" or first != first.lower())
    found = (_IMAGE_WITH_DOMAIN if has_domain else _IMAGE).fullmatch(image)
    if found is None:
        return "IfNotPresent"
    return "Always" if (found["tag"] or ("" if found["digest"] else "latest")) == "latest" else "IfNotPresent"


def _default_reference(source: Json) -> None:
    """Of a field of the pod or a key of a file, for a variable or a file."""
    if isinstance(source.get("fieldRef"), dict):
        source["fieldRef"]["apiVersion"] = source["fieldRef"].get("apiVersion") or "v1"
    if isinstance(source.get("fileKeyRef"), dict):
        source["fileKeyRef"].setdefault("optional", False)


def default_volume_source(volume: Json) -> None:
    """Defaults that volumes of pods and persistent volumes share."""
    for name, defaults in _VOLUME_DEFAULTS.items():
        if isinstance(volume.get(name), dict):
            for field, value in defaults.items():
                volume[name].setdefault(field, value)


def _default_volume(volume: Json) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    default_volume_source(volume)
    for source in _VOLUME_MODES:
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", _DEFAULT_FILE_MODE)
    if isinstance(volume.get("image"), dict):
        image = volume["image"]
        image["pullPolicy"] = image.get("pullPolicy") or _pull_policy(image.get("reference", ""))
    for projected in (volume.get("projected") or {}).get("sources") or ():
        if isinstance(projected.get("serviceAccountToken"), dict):
            projected["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in (projected.get("downwardAPI") or {}).get("items") or ():
            _default_reference(item)
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _default_reference(item)
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if isinstance(claim, dict):
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


# ---- admission


def admit_pod(document: Json, old: Json | None, admission: Admission) -> None:
    spec = document["spec"]
    if old is not None:
        _add_default_tolerations(spec)
        return
    apply_runtime_class(document, admission)
    apply_limits_to_pod(document, admission)
    _resolve_priority(document, spec, admission)
    _admit_service_account(document, spec, admission)
    _add_default_tolerations(spec)
    _merge_match_label_keys(document, spec)
    document["status"] = _first_status(document, spec, admission)


def admit_pod_status(document: Json, old: Json, admission: Admission) -> None:
    """The class of service stays what it is."""
    known = (old.get("status") or {}).get("qosClass")
    if known and not (document.get("status") or {}).get("qosClass"):
        document["status"] = (document.get("status") or {}) | {"qosClass": known}


def _admit_service_account(document: Json, spec: Json, admission: Admission) -> None:
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = document["metadata"].get("namespace", "")
    if name != "default" and admission.store.get("serviceaccounts", namespace, name) is None:
        problem = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise errors.forbidden("pods", document["metadata"].get("name", ""), problem)


def _resolve_priority(document: Json, spec: Json, admission: Admission) -> None:
    name = spec.get("priorityClassName", "")
    found = admission.find("priorityclasses.scheduling.k8s.io", "", name) if name else _global_default(admission)
    if name and found is None:
        problem = f"no PriorityClass with name {name} was found"
        raise errors.forbidden("pods", document["metadata"].get("name", ""), problem)
    value = found.get("value", 0) if found else 0
    if spec.get("priority") is not None and spec["priority"] != value:
        problem = (
            "the integer value of priority must not be provided in pod spec; priority admission controller computed "
        )
        problem += f"{value} from the given PriorityClass name"
        raise errors.forbidden("pods", document["metadata"].get("name", ""), problem)
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("preemptionPolicy") not in (None, policy):
        problem = (
            "the string value of PreemptionPolicy must not be provided in pod spec; priority admission controller "
        )
        problem += f"computed {policy} from the given PriorityClass name"
        raise errors.forbidden("pods", document["metadata"].get("name", ""), problem)
    if found and not name:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec["priority"] = value
    spec["preemptionPolicy"] = policy


def _global_default(admission: Admission) -> Json | None:
    entries = admission.store.collection("priorityclasses.scheduling.k8s.io").entries
    defaults = [entry for entry in entries.values() if b'"globalDefault":true' in entry.raw]
    found = [admission.find("priorityclasses.scheduling.k8s.io", "", entry.name) for entry in defaults]
    return min((doc for doc in found if doc is not None), key=lambda doc: doc.get("value", 0), default=None)


def _add_default_tolerations(spec: Json) -> None:
    tolerations = spec.get("tolerations") or []
    for key in (NOT_READY, UNREACHABLE):
        if not any(_tolerates_no_execute(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_SECONDS,
                }
            )
    spec["tolerations"] = tolerations


def _tolerates_no_execute(toleration: Json, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def _merge_match_label_keys(document: Json, spec: Json) -> None:
    """Turn matchLabelKeys of spread constraints and pod affinity into selector requirements."""
    labels = document["metadata"].get("labels") or {}
    for constraint in spec.get("topologySpreadConstraints") or ():
        _add_requirements(constraint, constraint.get("matchLabelKeys"), "In", labels)
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        for term in _terms(affinity.get(name) or {}):
            _add_requirements(term, term.get("matchLabelKeys"), "In", labels)
            _add_requirements(term, term.get("mismatchLabelKeys"), "NotIn", labels)


def _terms(affinity: Json) -> list[Json]:
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return [*required, *(weighted.get("podAffinityTerm") or {} for weighted in preferred)]


def _add_requirements(term: Json, keys: JsonValue, operator: str, labels: Json) -> None:
    selector = term.get("labelSelector")
    if not keys or selector is None:
        return
    for key in keys:
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(requirement)


def _first_status(document: Json, spec: Json, admission: Admission) -> Json:
    status: Json = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": admission.now(),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return status


def quality_of_service(spec: Json) -> str:
    """BestEffort without any request or limit, Guaranteed when limits equal requests for cpu and memory everywhere."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    asked = False
    guaranteed = bool(containers)
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        asked = asked or any(name in ("cpu", "memory") for name in (*requests, *limits))
        for name in ("cpu", "memory"):
            guaranteed = guaranteed and name in limits and requests.get(name, limits[name]) == limits[name]
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
