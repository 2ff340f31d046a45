"""Defaults and validation of everything that is not a pod or a workload: nodes, namespaces, storage, priorities, …"""

from __future__ import annotations

import base64
import ipaddress
import re
import zlib

from bayplan.apiserver.kinds.kind import Admission
from bayplan.apiserver.kinds.limit_rules import apply_limits_to_claim
from bayplan.apiserver.kinds.pod_admission import default_volume_source
from bayplan.apiserver.kinds.pod_validation import validate_selector
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.selectors import is_label_key, is_label_value

_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_HIGHEST_USER_PRIORITY = 1_000_000_000
_AFFINITY_SECONDS = 3 * 3600
_SERVICE_NETWORK = ipaddress.ip_network("10.96.0.0/12")
_CONFIG_KEY = re.compile(r"^[-._a-zA-Z0-9]{1,253}\Z")
_RBAC_GROUP = "rbac.authorization.k8s.io"
_DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def default_namespace(document: Json) -> None:
    document.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    labels = document["metadata"].setdefault("labels", {})
    if document["metadata"].get("name"):
        labels["kubernetes.io/metadata.name"] = document["metadata"]["name"]


def namespace_status(document: Json) -> None:
    document["status"] = {"phase": "Active"}


def admit_namespace_status(document: Json, old: Json, admission: Admission) -> None:
    document["status"] = {"phase": "Active"} | (document.get("status") or {})


def admit_namespace(document: Json, old: Json | None, admission: Admission) -> None:
    if old is not None and "finalizers" in old.get("spec", {}):
        # Only the finalize subresource removes the finalizer.
        document.setdefault("spec", {})["finalizers"] = old["spec"]["finalizers"]


# ---- nodes


def default_node(document: Json) -> None:
    # Kubelets that read their configuration from the API are gone; the field is not stored any more.
    spec = document.setdefault("spec", {})
    spec.pop("configSource", None)
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs") or []
    if first and ranges[:1] != [first]:
        spec["podCIDRs"] = [first]
    elif ranges and ranges[0]:
        spec["podCIDR"] = ranges[0]
    status = document.setdefault("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def validate_node(document: Json, old: Json | None) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(document.get("spec", {}).get("taints") or []):
        where = f"spec.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if not is_label_key(key):
            causes.append(errors.invalid_value(f"{where}.key", key, "must be a label key"))
        if not is_label_value(taint.get("value", "")):
            causes.append(errors.invalid_value(f"{where}.value", taint.get("value"), "must be a label value"))
        if effect not in _EFFECTS:
            causes.append(errors.not_supported(f"{where}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            causes.append(errors.duplicate_value(f"{where}", key))
        seen.add((key, effect))
    return causes


# ---- priorities


def default_priority_class(document: Json) -> None:
    document.setdefault("preemptionPolicy", "PreemptLowerPriority")
    document.setdefault("value", 0)


def validate_priority_class(document: Json, old: Json | None) -> list[Cause]:
    name, value = document["metadata"].get("name", ""), document.get("value", 0)
    causes = []
    if old is not None and old.get("value", 0) != value:
        causes.append(errors.forbidden_field("value", "may not be changed in an update."))
    if old is not None and old.get("preemptionPolicy") != document.get("preemptionPolicy"):
        causes.append(errors.invalid_value("preemptionPolicy", document.get("preemptionPolicy"), "field is immutable"))
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        detail = "priority class names with 'system-' prefix are reserved for system use only"
        causes.append(errors.forbidden_field("metadata.name", detail))
    elif not name.startswith("system-") and value > _HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        causes.append(errors.forbidden_field("value", detail))
    if document.get("preemptionPolicy") not in ("PreemptLowerPriority", "Never"):
        allowed = ["Never", "PreemptLowerPriority"]
        causes.append(errors.not_supported("preemptionPolicy", document.get("preemptionPolicy"), allowed))
    return causes


def admit_priority_class(document: Json, old: Json | None, admission: Admission) -> None:
    if not document.get("globalDefault"):
        return
    mine = document["metadata"].get("name")
    for other in admission.all("priorityclasses.scheduling.k8s.io"):
        if other.get("globalDefault") and other["metadata"]["name"] != mine:
            problem = (
                f"PriorityClass {other['metadata']['name']} is already marked as default. Only one default can exist"
            )
            raise errors.forbidden("priorityclasses", str(mine), problem, group="scheduling.k8s.io")


# ---- storage


def default_storage_class(document: Json) -> None:
    document.setdefault("reclaimPolicy", "Delete")
    document.setdefault("volumeBindingMode", "Immediate")


def validate_storage_class(document: Json, old: Json | None) -> list[Cause]:
    causes = [] if document.get("provisioner") else [errors.required("provisioner")]
    if document.get("volumeBindingMode") not in ("Immediate", "WaitForFirstConsumer"):
        allowed = ["Immediate", "WaitForFirstConsumer"]
        causes.append(errors.not_supported("volumeBindingMode", document.get("volumeBindingMode"), allowed))
    fixed = ("provisioner", "parameters", "volumeBindingMode", "reclaimPolicy")
    changed = [name for name in fixed if old is not None and old.get(name) != document.get(name)]
    return causes + [errors.forbidden_field(name, f"updates to {name} are forbidden.") for name in changed]


def default_persistent_volume(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_volume_source(spec)


def admit_persistent_volume(document: Json, old: Json | None, admission: Admission) -> None:
    if old is None:
        document["status"] = {"phase": "Pending", "lastPhaseTransitionTime": admission.now()}


def admit_persistent_volume_status(document: Json, old: Json, admission: Admission) -> None:
    """Note the time of a change of the phase, unless the client that changed it has done so."""
    before, after = old.get("status") or {}, {"phase": "Pending"} | (document.get("status") or {})
    document["status"] = after
    stamp = "lastPhaseTransitionTime"
    if after["phase"] != before.get("phase") and after.get(stamp) in (None, before.get(stamp)):
        after[stamp] = admission.now()
    elif stamp in before:
        after.setdefault(stamp, before[stamp])


def validate_persistent_volume(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec", {})
    causes = []
    if not spec.get("capacity", {}).get("storage"):
        causes.append(errors.required("spec.capacity"))
    if not spec.get("accessModes"):
        causes.append(errors.required("spec.accessModes"))
    return causes


def default_claim(document: Json) -> None:
    document.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def claim_status(document: Json) -> None:
    document["status"] = {"phase": "Pending"}


def admit_claim_status(document: Json, old: Json, admission: Admission) -> None:
    document["status"] = {"phase": "Pending"} | (document.get("status") or {})


def admit_claim(document: Json, old: Json | None, admission: Admission) -> None:
    """Keep a claim within the limits of its namespace; one that names no class gets the cluster's default class."""
    if old is None:
        _normalize_data_source(document["spec"])
        apply_limits_to_claim(document, admission)
    if old is not None or "storageClassName" in document["spec"]:
        return
    for storage_class in admission.all("storageclasses.storage.k8s.io"):
        annotations = storage_class["metadata"].get("annotations") or {}
        if annotations.get("storageclass.kubernetes.io/is-default-class") == "true":
            document["spec"]["storageClassName"] = storage_class["metadata"]["name"]
            return


def _normalize_data_source(spec: Json) -> None:
    """The two fields for the source of a claim's data say the same; what neither may name is dropped."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace"):
        reference = None
    if reference is None and source is not None and _source_kind(source) not in _DATA_SOURCES:
        source = None
    if reference is None and source is not None:
        reference = dict(source)
    elif source is None and reference is not None:
        source = {name: value for name, value in reference.items() if name != "namespace"}
    for name, value in (("dataSource", source), ("dataSourceRef", reference)):
        spec.pop(name, None)
        if value is not None:
            spec[name] = value


def _source_kind(source: Json) -> tuple[str, str]:
    return source.get("apiGroup") or "", source.get("kind", "")


def validate_claim(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec", {})
    causes = []
    if not spec.get("accessModes"):
        causes.append(errors.required("spec.accessModes", "at least 1 access mode is required"))
    if not (spec.get("resources") or {}).get("requests", {}).get("storage"):
        causes.append(errors.required("spec.resources[storage]"))
    return causes + validate_selector(spec.get("selector"), "spec.selector")


def default_csi_driver(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


# ---- services, configuration, accounts, roles


def default_service(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    if spec["type"] in ("LoadBalancer", "NodePort") or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        # Where neither an address nor a selector says what it is for, it may have addresses of both kinds.
        is_open = spec.get("clusterIP") == "None" and not spec.get("selector") and "ipFamilies" not in spec
        policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_open else "SingleStack")
        both = is_open and policy != "SingleStack"
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])


def admit_service(document: Json, old: Json | None, admission: Admission) -> None:
    """Give a service an address of its own; the simulated cluster routes nothing to it."""
    spec = document["spec"]
    if old is not None:
        for name in ("clusterIP", "clusterIPs"):
            if name in old["spec"] and name not in spec:
                spec[name] = old["spec"][name]
    elif spec["type"] != "ExternalName" and "clusterIP" not in spec:
        seed = f"{document['metadata'].get('namespace')}/{document['metadata'].get('name')}".encode()
        offset = 10 + zlib.crc32(seed) % (_SERVICE_NETWORK.num_addresses - 20)
        spec["clusterIP"] = str(_SERVICE_NETWORK[offset])
    if "clusterIP" in spec:
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    document.setdefault("status", {"loadBalancer": {}})


def validate_service(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec", {})
    types = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    causes = [] if spec.get("type") in types else [errors.not_supported("spec.type", spec.get("type"), types)]
    if not spec.get("ports") and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        causes.append(errors.required("spec.ports"))
    for index, port in enumerate(spec.get("ports") or []):
        for field in ("port", "targetPort"):
            given = port.get(field, 0)
            if isinstance(given, int) and not 0 < given < 65536:
                detail = "must be between 1 and 65535, inclusive"
                causes.append(errors.invalid_value(f"spec.ports[{index}].{field}", given, detail))
    return causes


def default_endpoints(document: Json) -> None:
    for subset in document.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def default_endpoint_slice(document: Json) -> None:
    for endpoint in document.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)  # of versions before v1
    for port in document.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def validate_config_map(document: Json, old: Json | None) -> list[Cause]:
    return _data_keys(document, ("data", "binaryData")) + _keys_in_both(document) + _immutable_data(document, old)


_PARTS_OF_SECRETS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/basic-auth": ("username", "password"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}


def default_secret(document: Json) -> None:
    document.setdefault("type", "Opaque")


def admit_secret(document: Json, old: Json | None, admission: Admission) -> None:
    """stringData is for writing only: it becomes data."""
    text = document.pop("stringData", None)
    if text:
        data = document.setdefault("data", {})
        data.update({key: base64.b64encode(value.encode()).decode() for key, value in text.items()})


def validate_secret(document: Json, old: Json | None) -> list[Cause]:
    causes = _data_keys(document, ("data",)) + _immutable_data(document, old)
    if old is not None and old.get("type") != document.get("type"):
        causes.append(errors.invalid_value("type", document.get("type"), "field is immutable"))
    return causes + _missing_parts(document)


def _missing_parts(secret: Json) -> list[Cause]:
    """What a secret of its type must have."""
    kind, data = secret.get("type"), secret.get("data") or {}
    if kind == "kubernetes.io/service-account-token":
        annotations = (secret.get("metadata") or {}).get("annotations") or {}
        name = "kubernetes.io/service-account.name"
        return [] if annotations.get(name) else [errors.required(f"metadata.annotations[{name}]")]
    needed = _PARTS_OF_SECRETS.get(str(kind), ())
    if kind == "kubernetes.io/basic-auth" and any(key in data for key in needed):
        return []
    return [errors.required(f"data[{key}]") for key in needed if key not in data]


def _data_keys(document: Json, fields: tuple[str, ...]) -> list[Cause]:
    hint = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    bad = [(field, key) for field in fields for key in document.get(field) or {} if not _CONFIG_KEY.match(key)]
    return [errors.invalid_value(f"{field}[{key}]", key, hint) for field, key in bad]


def _keys_in_both(document: Json) -> list[Cause]:
    doubled = [key for key in document.get("data") or {} if key in (document.get("binaryData") or {})]
    return [errors.invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData") for key in doubled]


def _immutable_data(document: Json, old: Json | None) -> list[Cause]:
    if old is None or not old.get("immutable"):
        return []
    changed = [] if document.get("immutable") else ["immutable"]
    changed += [name for name in ("data", "binaryData") if old.get(name) != document.get(name)]
    return [errors.forbidden_field(name, "field is immutable when `immutable` is set") for name in changed]


def default_role_binding(document: Json) -> None:
    reference = document.get("roleRef")
    if isinstance(reference, dict):
        reference["apiGroup"] = reference.get("apiGroup") or _RBAC_GROUP
    for subject in document.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC_GROUP)


def validate_role_binding(document: Json, old: Json | None) -> list[Cause]:
    reference = document.get("roleRef") or {}
    causes = [] if reference.get("name") else [errors.required("roleRef.name")]
    if reference.get("kind") not in ("Role", "ClusterRole"):
        causes.append(errors.not_supported("roleRef.kind", reference.get("kind", ""), ["ClusterRole", "Role"]))
    if old is not None and old.get("roleRef") != reference:
        causes.append(errors.invalid_value("roleRef", str(reference.get("name")), "cannot change roleRef"))
    return causes


def validate_role(document: Json, old: Json | None) -> list[Cause]:
    return [
        errors.required(f"rules[{index}].verbs", "verbs must contain at least one value")
        for index, rule in enumerate(document.get("rules") or [])
        if not rule.get("verbs")
    ]


def validate_lease(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes = []
    if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
        causes.append(
            errors.invalid_value("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
        )
    if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
        detail = "must be greater than or equal to 0"
        causes.append(errors.invalid_value("spec.leaseTransitions", spec["leaseTransitions"], detail))
    return causes
