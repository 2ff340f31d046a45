"""Random objects of every kind, made from the types that the server declares; zero values are among them.

`random_value` makes anything that decodes. `grown` adds one field to an object that is valid, so that a server can be
asked whether it still is; `valid_objects` are the objects to begin with.
"""

from __future__ import annotations

import base64
import copy
import random
from collections.abc import Iterator
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bayplan.apiserver.kinds.type_table import FieldType
from tests.apiconformance.client import Json

TEXTS = ["", "a", "ä", "0", "true"]
SCALARS: dict[str, list[Any]] = {
    "string": TEXTS,
    "int32": [0, 1, -1, 2**31 - 1, -(2**31)],
    "int64": [0, 1, -1, 2**63 - 1, -(2**63)],
    "bool": [True, False],
    "number": [0, 1, 0.5, -2.25],
    "quantity": ["0", "1", "500m", "1Gi"],
    "intorstring": [0, 8080, "", "http", "25%"],
    "time": ["2026-01-31T12:00:00Z", "1969-12-31T23:59:59Z"],
    "microtime": ["2026-01-31T12:00:00.000001Z", "2026-01-31T12:00:00.250000Z"],
    "bytes": ["", "AA==", "YWJj"],
    "any": [{"a": [1, None, 0.5]}, "text", 0, False, [1]],
}
# What valid objects are made of: names, labels, paths, and the words of the enumerations that many kinds share.
_VALID_TEXTS = [
    *("", "a", "b-1", "example.com/a", "d.example.com", "/a", "10.0.0.1", "1", "true == true", "system:a"),
    *("Always", "Never", "IfNotPresent", "OnFailure", "TCP", "UDP", "Exists", "In", "Equal", "DoesNotExist", "NotIn"),
    *(
        "NoSchedule",
        "NoExecute",
        "Retain",
        "Delete",
        "Recycle",
        "Filesystem",
        "Block",
        "ReadWriteOnce",
        "Local",
        "None",
    ),
    *(
        "Cluster",
        "ClusterFirst",
        "ClientIP",
        "SingleStack",
        "IPv4",
        "RollingUpdate",
        "Recreate",
        "OnDelete",
        "Parallel",
    ),
    *("OrderedReady", "Indexed", "NonIndexed", "Allow", "Forbid", "Replace", "Honor", "Ignore", "Fail", "Exact", "All"),
    *(
        "DoNotSchedule",
        "ScheduleAnyway",
        "File",
        "FallbackToLogsOnError",
        "RuntimeDefault",
        "Unconfined",
        "HTTP",
        "Egress",
    ),
    *(
        "Immediate",
        "WaitForFirstConsumer",
        "PreferNoSchedule",
        "LowerPriority",
        "Prefix",
        "Ingress",
        "Limited",
        "Exempt",
    ),
    *("Terminating", "BestEffort", "requests.cpu", "cpu", "pods", "Container", "Running", "Pending", "Ready", "True"),
]
_VALID_SCALARS = SCALARS | {
    "string": _VALID_TEXTS,
    "int32": [0, 1, 2, 30, 100, 8080],
    "int64": [0, 1, 2, 30, 100],
    "quantity": ["0", "1", "500m", "1Gi", "2k"],
    "intorstring": [0, 1, 8080, "http", "25%", "0%"],
    "any": [{}, {"a": [1, None, 0.5]}, {"kind": "A", "apiVersion": "v1"}],
}


# Fields of alpha features, which kube-apiserver drops by default and the embedded server stores.
OFF_BY_DEFAULT = {
    "apps.v1.RollingUpdateStatefulSetStrategy": {"maxUnavailable"},
    "coordination.v1.LeaseSpec": {"strategy", "preferredHolder"},
    "core.v1.Lifecycle": {"stopSignal"},
    "core.v1.ContainerStatus": {"stopSignal"},
    "core.v1.PodSpec": {"schedulingGroup"},
    "core.v1.PodStatus": {"nodeAllocatableResourceClaimStatuses"},
    "core.v1.VolumeMountStatus": {"volumeStatus"},
    "core.v1.VolumeProjection": {"clusterTrustBundle", "podCertificate"},
    "resource.v1.Device": {"nodeAllocatableResourceMappings"},
    "resource.v1.DeviceAttribute": {"ints", "bools", "strings", "versions"},
    "storage.v1.CSIDriverSpec": {"preventPodSchedulingIfMissing"},
}


def random_value(
    declared: FieldType, chance: random.Random, depth: int, scalars: dict[str, list[Any]] = SCALARS
) -> Any:
    """A value of a type, zeros among them."""
    element = declared.element or declared
    inner = max(0, depth - 1)
    if declared.kind == "struct":
        names = chance.sample(sorted(declared.fields), min(len(declared.fields), chance.randrange(6))) if depth else []
        return {name: random_value(declared.fields[name].type, chance, depth - 1, scalars) for name in names}
    if declared.kind == "list":
        return [random_value(element, chance, inner, scalars) for _ in range(chance.randrange(3))]
    if declared.kind == "map":
        texts = scalars["string"]
        return {
            name: random_value(element, chance, inner, scalars) for name in chance.sample(texts, chance.randrange(3))
        }
    if declared.kind == "union":
        schema = random_value(element, chance, inner, scalars)
        lists: dict[str, Any] = {"schema-or-bool": chance.random() < 0.5, "schema-or-strings": ["a", ""]}
        return chance.choice([schema, lists.get(declared.name, [schema])])
    return chance.choice(scalars[declared.kind])


def grown(document: Json, declared: FieldType, chance: random.Random, parts: tuple[str, ...]) -> Json:
    """The object with one field more or another value in one of its parts (top-level fields); it may not be valid."""
    changed = copy.deepcopy(document)
    place, shape = chance.choice(list(_structs(changed, declared, parts)))
    names = [name for name in _usual_fields(shape) if place is not changed or name in parts]
    if names:
        name = chance.choice(names)
        place[name] = _plausible(shape.fields[name].type, chance, 3)
    return changed


def _usual_fields(declared: FieldType) -> list[str]:
    return sorted(set(declared.fields) - OFF_BY_DEFAULT.get(declared.name, set()))


def _structs(value: Any, declared: FieldType, parts: tuple[str, ...] | None) -> Iterator[tuple[Json, FieldType]]:
    """Every struct of a document with its type, the document first."""
    if declared.kind == "struct" and isinstance(value, dict):
        yield value, declared
        for name, item in value.items():
            if parts is None or name in parts:
                yield from _structs(item, declared.fields[name].type, None)
    elif declared.kind in ("list", "map") and declared.element is not None:
        for item in value.values() if isinstance(value, dict) else value or ():  # null in new definitions
            yield from _structs(item, declared.element, None)


def _plausible(declared: FieldType, chance: random.Random, depth: int) -> Any:
    """A value that may be valid: what is required is there, and a little more."""
    element = declared.element or declared
    if declared.kind == "struct" and depth:
        required = declared.required_fields()
        optional = [name for name in _usual_fields(declared) if name not in required]
        chosen = required + chance.sample(optional, min(len(optional), chance.choice((0, 1, 1, 2))))
        return {name: _plausible(declared.fields[name].type, chance, depth - 1) for name in chosen}
    if declared.kind == "list":
        return [_plausible(element, chance, depth - 1) for _ in range(chance.choice((0, 1, 1, 2)))] if depth else []
    if declared.kind == "map":
        return {chance.choice(_VALID_TEXTS): _plausible(element, chance, depth - 1)} if depth else {}
    return random_value(declared, chance, depth, _VALID_SCALARS)


def without_empty_parts(value: Any, declared: FieldType) -> Any:
    """Without nulls, empty lists and maps, and empty parts that are no pointers: protobuf cannot tell any of them from
    absent ones, so that they say nothing."""
    if isinstance(value, list):
        return [without_empty_parts(item, declared.element or declared) for item in value]
    if not isinstance(value, dict) or declared.kind == "any":
        return value
    if declared.kind != "struct":
        return {name: without_empty_parts(item, declared.element or declared) for name, item in value.items()}
    kept = {}
    for name, item in value.items():
        member = declared.fields[name]
        found = without_empty_parts(item, member.type)
        is_empty = found == {} and not (member.is_pointer and member.type.kind == "struct")
        if found is not None and found != [] and (not is_empty or member.type.kind == "any"):
            kept[name] = found
    return kept


_LABELS = {"app": "a"}
_POD_SPEC: Json = {"containers": [{"name": "main", "image": "example/app:1"}]}
_TEMPLATE: Json = {"metadata": {"labels": _LABELS}, "spec": _POD_SPEC}
_JOB: Json = {"template": {"spec": _POD_SPEC | {"restartPolicy": "Never"}}}
_SELECTOR = {"matchLabels": _LABELS}
_CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_HOOK: Json = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/a"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "namespaceSelector": {"matchLabels": {"nobody": "has-this"}},
    "objectSelector": {"matchLabels": {"nobody": "has-this"}},
}
_RULES: Json = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["none"], "operations": ["*"]}
_LEVEL: Json = {"limitResponse": {"type": "Reject"}}
_SCHEMA: Json = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
_CLAIM_REQUEST: Json = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "a.example.com"}}]}}
_POOL: Json = {"name": "a", "generation": 1, "resourceSliceCount": 1}


def valid_objects(name: str, namespace: str) -> dict[str, Json]:
    """By resource, an object that every API server accepts, with as little as possible in it."""
    return {
        resource: {"metadata": {"name": name}} | body
        for resource, body in (*_workloads(), *_others(name, namespace), *_definitions(name), *_reviews(namespace))
    }


def _workloads() -> list[tuple[str, Json]]:
    return [
        ("pods", {"spec": _POD_SPEC | {"serviceAccountName": "default", "automountServiceAccountToken": False}}),
        ("replicationcontrollers", {"spec": {"selector": _LABELS, "template": _TEMPLATE}}),
        ("podtemplates", {"template": _TEMPLATE}),
        ("deployments.apps", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
        ("replicasets.apps", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
        ("statefulsets.apps", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE, "serviceName": "a"}}),
        ("daemonsets.apps", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
        ("controllerrevisions.apps", {"revision": 0, "data": {"a": 1}}),
        ("jobs.batch", {"spec": _JOB}),
        ("cronjobs.batch", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}}),
        ("poddisruptionbudgets.policy", {"spec": {"selector": _SELECTOR, "minAvailable": 0}}),
    ]


def _others(name: str, namespace: str) -> list[tuple[str, Json]]:
    event = {"kind": "Pod", "apiVersion": "v1", "name": "a", "namespace": namespace}
    core_event = {"involvedObject": event, "reason": "A", "type": "Normal", "count": 1}
    said = {"reportingController": "a.example.com/b", "reportingInstance": "a", "action": "A", "reason": "A"}
    new_event = {"regarding": event, "type": "Normal", "eventTime": "2026-01-31T12:00:00.000001Z", **said}
    host_path = {"hostPath": {"path": "/a"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    role = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "name": "a"}}
    parent = {"resource": "services", "namespace": namespace, "name": "a"}
    return [
        ("nodes", {}),
        ("namespaces", {}),
        ("configmaps", {"data": {"a": ""}}),
        ("secrets", {"data": {"a": ""}}),
        ("serviceaccounts", {}),
        ("services", {"spec": {"ports": [{"port": 80}], "clusterIP": "None"}}),
        ("endpoints", {"subsets": [{"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80}]}]}),
        ("limitranges", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}}]}}),
        ("resourcequotas", {"spec": {"hard": {"configmaps": "1k"}}}),
        ("runtimeclasses.node.k8s.io", {"handler": "a"}),
        ("persistentvolumes", {"spec": host_path}),
        ("persistentvolumeclaims", {"spec": _CLAIM}),
        ("events", core_event | {"metadata": {"name": name, "namespace": namespace}}),
        ("events.events.k8s.io", new_event),
        ("priorityclasses.scheduling.k8s.io", {"value": 0}),
        (
            "ingresses.networking.k8s.io",
            {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
        ),
        ("ingressclasses.networking.k8s.io", {"spec": {"controller": "example.com/a"}}),
        ("networkpolicies.networking.k8s.io", {"spec": {"podSelector": {}}}),
        ("servicecidrs.networking.k8s.io", {"spec": {"cidrs": ["10.200.0.0/24"]}}),
        ("ipaddresses.networking.k8s.io", {"metadata": {"name": "10.201.0.1"}, "spec": {"parentRef": parent}}),
        ("storageclasses.storage.k8s.io", {"provisioner": "a.example.com"}),
        ("csinodes.storage.k8s.io", {"spec": {"drivers": [{"name": "a.example.com", "nodeID": "a"}]}}),
        ("csidrivers.storage.k8s.io", {"spec": {}}),
        ("csistoragecapacities.storage.k8s.io", {"storageClassName": "a"}),
        ("volumeattachments.storage.k8s.io", _attachment()),
        ("roles.rbac.authorization.k8s.io", {"rules": []}),
        ("clusterroles.rbac.authorization.k8s.io", {"rules": []}),
        ("rolebindings.rbac.authorization.k8s.io", {"roleRef": role["roleRef"] | {"kind": "Role"}}),
        ("clusterrolebindings.rbac.authorization.k8s.io", {"roleRef": role["roleRef"] | {"kind": "ClusterRole"}}),
        ("leases.coordination.k8s.io", {"spec": {"leaseDurationSeconds": 15}}),
        ("endpointslices.discovery.k8s.io", {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"]}]}),
        ("flowschemas.flowcontrol.apiserver.k8s.io", {"spec": {"priorityLevelConfiguration": {"name": "a"}}}),
        ("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", {"spec": {"type": "Limited", "limited": _LEVEL}}),
        ("resourceclaims.resource.k8s.io", {"spec": _CLAIM_REQUEST}),
        ("resourceclaimtemplates.resource.k8s.io", {"spec": {"spec": _CLAIM_REQUEST}}),
        ("resourceslices.resource.k8s.io", {"spec": {"driver": "a.example.com", "pool": _POOL, "nodeName": "a"}}),
        ("deviceclasses.resource.k8s.io", {"spec": {}}),
        ("certificatesigningrequests.certificates.k8s.io", _signing_request()),
    ]


def _signing_request() -> Json:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    encoded = base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
    return {"spec": {"signerName": "example.com/a", "request": encoded, "usages": ["digital signature"]}}


def _attachment() -> Json:
    return {"spec": {"attacher": "a.example.com", "nodeName": "a", "source": {"persistentVolumeName": "a"}}}


def _reviews(namespace: str) -> list[tuple[str, Json]]:
    """What is answered and not stored; it has no name."""
    unnamed: Json = {"metadata": {}}
    attributes = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}}
    access, identity = "authorization.k8s.io", "authentication.k8s.io"
    return [
        (f"selfsubjectaccessreviews.{access}", unnamed | {"spec": attributes}),
        (f"subjectaccessreviews.{access}", unnamed | {"spec": attributes | {"user": "nobody-at-all"}}),
        (f"localsubjectaccessreviews.{access}", unnamed | {"spec": attributes | {"user": "nobody-at-all"}}),
        (f"selfsubjectrulesreviews.{access}", unnamed | {"spec": {"namespace": "default"}}),
        (f"tokenreviews.{identity}", unnamed | {"spec": {"token": "nonsense"}}),
        (f"selfsubjectreviews.{identity}", unnamed),
    ]


def _definitions(name: str) -> list[tuple[str, Json]]:
    group = "admissionregistration.k8s.io"
    constraints = {"resourceRules": [_RULES]}
    mutation = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": '[JSONPatch{op: "test", path: "/kind", value: "A"}]'},
    }
    names = {"plural": f"{name}s", "singular": name, "kind": "Made", "listKind": "MadeList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": _SCHEMA}]
    custom = {"group": "made.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    binding = {"policyName": "a"}
    return [
        (f"validatingwebhookconfigurations.{group}", {"webhooks": [_HOOK | {"rules": [_RULES]}]}),
        (f"mutatingwebhookconfigurations.{group}", {"webhooks": [_HOOK | {"rules": [_RULES]}]}),
        (
            f"validatingadmissionpolicies.{group}",
            {"spec": {"matchConstraints": constraints, "validations": [{"expression": "true"}]}},
        ),
        (f"validatingadmissionpolicybindings.{group}", {"spec": binding | {"validationActions": ["Deny"]}}),
        (
            f"mutatingadmissionpolicies.{group}",
            {"spec": {"matchConstraints": constraints, "mutations": [mutation], "reinvocationPolicy": "Never"}},
        ),
        (f"mutatingadmissionpolicybindings.{group}", {"spec": binding}),
        (
            "customresourcedefinitions.apiextensions.k8s.io",
            {"metadata": {"name": f"{name}s.made.example.com"}, "spec": custom},
        ),
    ]
