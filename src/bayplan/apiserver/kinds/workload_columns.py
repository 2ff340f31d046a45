"""Columns of everything that is neither a pod nor a node. See `columns` for what a column is."""

from __future__ import annotations

from bayplan.apiserver.kinds.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    Compute,
    at,
    container_columns,
    get,
    selector_text,
    since,
)
from bayplan.apiserver.protocol.encoding import Json, parse_timestamp


def _number(*path: str) -> Compute:
    return lambda doc, _: get(doc, *path, default=0)


def _selector(*path: str) -> Column:
    return Column("Selector", lambda doc, _: selector_text(get(doc, *path)), wide=True)


def _of(ready: tuple[str, ...], wanted: tuple[str, ...]) -> Compute:
    return lambda doc, _: f"{get(doc, *ready, default=0)}/{get(doc, *wanted, default=0)}"


_READY = Column("Ready", _of(("status", "readyReplicas"), ("spec", "replicas")))

NAMESPACE = (NAME, Column("Status", at("status", "phase")), AGE)
CONFIG_MAP = (
    NAME,
    Column("Data", lambda doc, _: len(doc.get("data", {})) + len(doc.get("binaryData", {})), type="string"),
    AGE,
)
SECRET = (
    NAME,
    Column("Type", at("type")),
    Column("Data", lambda doc, _: len(doc.get("data", {})), type="string"),
    AGE,
)
SERVICE_ACCOUNT = (NAME, Column("Secrets", lambda doc, _: len(doc.get("secrets", [])), type="string"), AGE)
REPLICATED = (
    NAME,
    Column("Desired", _number("spec", "replicas"), type="integer"),
    Column("Current", _number("status", "replicas"), type="integer"),
    Column("Ready", _number("status", "readyReplicas"), type="integer"),
    AGE,
    *container_columns("spec", "template", "spec"),
    _selector("spec", "selector"),
)
DEPLOYMENT = (
    NAME,
    _READY,
    Column("Up-to-date", _number("status", "updatedReplicas"), type="string"),
    Column("Available", _number("status", "availableReplicas"), type="string"),
    AGE,
    *container_columns("spec", "template", "spec"),
    _selector("spec", "selector"),
)
STATEFUL_SET = (NAME, _READY, AGE, *container_columns("spec", "template", "spec"))
DAEMON_SET = (
    NAME,
    Column("Desired", _number("status", "desiredNumberScheduled"), type="integer"),
    Column("Current", _number("status", "currentNumberScheduled"), type="integer"),
    Column("Ready", _number("status", "numberReady"), type="integer"),
    Column("Up-to-date", _number("status", "updatedNumberScheduled"), type="integer"),
    Column("Available", _number("status", "numberAvailable"), type="integer"),
    Column(
        "Node Selector", lambda doc, _: selector_text(get(doc, "spec", "template", "spec", "nodeSelector", default={}))
    ),
    AGE,
    *container_columns("spec", "template", "spec"),
    _selector("spec", "selector"),
)


def _job_status(doc: Json, _: float) -> str:
    true_conditions = [c for c in get(doc, "status", "conditions", default=[]) if c.get("status") == "True"]
    held = {condition.get("type") for condition in true_conditions}
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        if kind in held:
            return word
    return "Terminating" if get(doc, "metadata", "deletionTimestamp") else "Running"


def _job_duration(doc: Json, now: float) -> str:
    started = get(doc, "status", "startTime")
    finished = get(doc, "status", "completionTime")
    return since(started, parse_timestamp(finished) if finished else now) if started else ""


JOB = (
    NAME,
    Column("Status", _job_status),
    Column(
        "Completions",
        lambda doc, _: f"{get(doc, 'status', 'succeeded', default=0)}/{get(doc, 'spec', 'completions', default=1)}",
    ),
    Column("Duration", _job_duration),
    AGE,
    *container_columns("spec", "template", "spec"),
    _selector("spec", "selector"),
)


def _ports(doc: Json, _: float) -> str:
    def one(port: Json) -> str:
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"

    return ",".join(one(port) for port in get(doc, "spec", "ports", default=[])) or NONE


SERVICE = (
    NAME,
    Column("Type", at("spec", "type")),
    Column("Cluster-IP", lambda doc, _: get(doc, "spec", "clusterIP") or NONE),
    Column("External-IP", lambda doc, _: ",".join(get(doc, "spec", "externalIPs", default=[])) or NONE),
    Column("Port(s)", _ports),
    AGE,
    _selector("spec", "selector"),
)


def _modes(*path: str) -> Compute:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    return lambda doc, _: ",".join(short.get(mode, mode) for mode in get(doc, *path, default=[]))


def _claim(doc: Json, _: float) -> str:
    reference = get(doc, "spec", "claimRef", default={})
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""


def _phase(doc: Json, _: float) -> str:
    deleting = get(doc, "metadata", "deletionTimestamp")
    return "Terminating" if deleting else str(get(doc, "status", "phase", default=""))


PERSISTENT_VOLUME = (
    NAME,
    Column("Capacity", at("spec", "capacity", "storage")),
    Column("Access Modes", _modes("spec", "accessModes")),
    Column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy")),
    Column("Status", _phase),
    Column("Claim", _claim),
    Column("StorageClass", at("spec", "storageClassName")),
    Column("VolumeAttributesClass", lambda doc, _: get(doc, "spec", "volumeAttributesClassName") or "<unset>"),
    Column("Reason", at("status", "reason")),
    AGE,
    Column("VolumeMode", lambda doc, _: get(doc, "spec", "volumeMode") or "<unset>", wide=True),
)
PERSISTENT_VOLUME_CLAIM = (
    NAME,
    Column("Status", _phase),
    Column("Volume", at("spec", "volumeName")),
    Column("Capacity", at("status", "capacity", "storage")),
    Column("Access Modes", _modes("status", "accessModes")),
    Column("StorageClass", at("spec", "storageClassName")),
    Column("VolumeAttributesClass", lambda doc, _: get(doc, "spec", "volumeAttributesClassName") or "<unset>"),
    AGE,
    Column("VolumeMode", lambda doc, _: get(doc, "spec", "volumeMode") or "<unset>", wide=True),
)


def _budget(field: str) -> Compute:
    return lambda doc, _: str(get(doc, "spec", field, default="N/A"))


POD_DISRUPTION_BUDGET = (
    NAME,
    Column("Min Available", _budget("minAvailable")),
    Column("Max Unavailable", _budget("maxUnavailable")),
    Column("Allowed Disruptions", _number("status", "disruptionsAllowed"), type="integer"),
    AGE,
)
PRIORITY_CLASS = (
    NAME,
    Column("Value", at("value", default=0), type="integer"),
    Column("Global-Default", at("globalDefault", default=False), type="boolean"),
    AGE,
    Column("PreemptionPolicy", at("preemptionPolicy")),
)


def _storage_class_name(doc: Json, _: float) -> str:
    default = get(doc, "metadata", "annotations", "storageclass.kubernetes.io/is-default-class", default="")
    return str(get(doc, "metadata", "name")) + (" (default)" if default == "true" else "")


STORAGE_CLASS = (
    Column("Name", _storage_class_name, format="name"),
    Column("Provisioner", at("provisioner")),
    Column("ReclaimPolicy", at("reclaimPolicy")),
    Column("VolumeBindingMode", at("volumeBindingMode")),
    Column("AllowVolumeExpansion", at("allowVolumeExpansion", default=False)),
    AGE,
)
CSI_NODE = (NAME, Column("Drivers", lambda doc, _: len(get(doc, "spec", "drivers", default=[])), type="integer"), AGE)
CSI_DRIVER = (
    NAME,
    Column("AttachRequired", at("spec", "attachRequired", default=True), type="boolean"),
    Column("PodInfoOnMount", at("spec", "podInfoOnMount", default=False), type="boolean"),
    Column("StorageCapacity", at("spec", "storageCapacity", default=False)),
    Column("TokenRequests", lambda doc, _: get(doc, "spec", "tokenRequests") or "<unset>"),
    Column("RequiresRepublish", at("spec", "requiresRepublish", default=False)),
    Column("Modes", lambda doc, _: ",".join(get(doc, "spec", "volumeLifecycleModes", default=[])) or NONE),
    AGE,
)
CSI_STORAGE_CAPACITY = (
    NAME,
    Column("StorageClassName", at("storageClassName")),
    Column("Capacity", at("capacity")),
    AGE,
)
VOLUME_ATTACHMENT = (
    NAME,
    Column("Attacher", at("spec", "attacher")),
    Column("PV", at("spec", "source", "persistentVolumeName")),
    Column("Node", at("spec", "nodeName")),
    Column("Attached", at("status", "attached", default=False), type="boolean"),
    AGE,
)
LEASE = (NAME, Column("Holder", at("spec", "holderIdentity")), AGE)


def _event_seen(doc: Json, now: float) -> str:
    last = doc.get("lastTimestamp") or get(doc, "series", "lastObservedTime") or doc.get("eventTime")
    return since(last or get(doc, "metadata", "creationTimestamp"), now)


def _event_object(doc: Json, _: float) -> str:
    target = doc.get("involvedObject") or doc.get("regarding") or {}
    return f"{str(target.get('kind', '')).lower()}/{target.get('name', '')}"


def _event_source(doc: Json, _: float) -> str:
    component = get(doc, "source", "component") or doc.get("reportingComponent") or doc.get("reportingController") or ""
    node = get(doc, "source", "host") or ""
    return f"{component}, {node}" if node else str(component)


def _event_count(doc: Json, _: float) -> int:
    return int(get(doc, "series", "count") or doc.get("count") or doc.get("deprecatedCount") or 1)


EVENT = (
    Column("Last Seen", _event_seen),
    Column("Type", at("type")),
    Column("Reason", at("reason")),
    Column("Object", _event_object),
    Column("Subobject", lambda doc, _: get(doc, "involvedObject", "fieldPath", default=""), wide=True),
    Column("Source", _event_source, wide=True),
    Column("Message", lambda doc, _: str(doc.get("message") or doc.get("note") or "").strip()),
    Column("First Seen", lambda doc, now: since(doc.get("firstTimestamp") or doc.get("eventTime"), now), wide=True),
    Column("Count", _event_count, wide=True),
    Column("Name", at("metadata", "name"), wide=True),
)


def _role_ref(doc: Json, _: float) -> str:
    return f"{get(doc, 'roleRef', 'kind')}/{get(doc, 'roleRef', 'name')}"


def _subjects(kind: str) -> Compute:
    def listed(doc: Json, _: float) -> str:
        found = [s for s in doc.get("subjects", []) if s.get("kind") == kind]
        return ", ".join(f"{s['namespace']}/{s['name']}" if s.get("namespace") else s.get("name", "") for s in found)

    return listed


CREATED_AT = Column("Created At", lambda doc, _: get(doc, "metadata", "creationTimestamp", default=UNKNOWN))
ROLE = (NAME, CREATED_AT)
BINDING = (
    NAME,
    Column("Role", _role_ref),
    AGE,
    Column("Users", _subjects("User"), wide=True),
    Column("Groups", _subjects("Group"), wide=True),
    Column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)


def _endpoint_addresses(doc: Json, _: float) -> str:
    subsets = doc.get("subsets", [])
    found = [address.get("ip", "") for subset in subsets for address in subset.get("addresses", [])]
    return ",".join(found[:3]) or NONE


ENDPOINTS = (NAME, Column("Endpoints", _endpoint_addresses), AGE)
ENDPOINT_SLICE = (NAME, Column("AddressType", at("addressType")), AGE)
LIMIT_RANGE = (NAME, CREATED_AT)
POD_TEMPLATE = (
    NAME,
    Column(
        "Containers", lambda doc, _: ",".join(one["name"] for one in get(doc, "template", "spec", "containers") or ())
    ),
    Column("Images", lambda doc, _: ",".join(one["image"] for one in get(doc, "template", "spec", "containers") or ())),
    Column("Pod Labels", lambda doc, _: selector_text(get(doc, "template", "metadata", "labels"))),
)
RUNTIME_CLASS = (NAME, Column("Handler", at("handler")), AGE)


def _used_of_hard(prefixes: tuple[str, ...], *, matching: bool) -> Compute:
    def shown(document: Json, now: float) -> str:
        hard, used = get(document, "status", "hard") or {}, get(document, "status", "used") or {}
        names = [name for name in sorted(hard) if name.startswith(prefixes) == matching]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return shown


RESOURCE_QUOTA = (
    NAME,
    Column("Request", _used_of_hard(("limits.",), matching=False)),
    Column("Limit", _used_of_hard(("limits.",), matching=True)),
    AGE,
)
CRON_JOB = (
    NAME,
    Column("Schedule", at("spec", "schedule")),
    Column("Timezone", lambda doc, _: get(doc, "spec", "timeZone") or NONE),
    Column("Suspend", lambda doc, _: str(bool(get(doc, "spec", "suspend")))),
    Column("Active", lambda doc, _: len(get(doc, "status", "active") or ())),
    Column("Last Schedule", lambda doc, now: since(get(doc, "status", "lastScheduleTime"), now) or NONE),
    AGE,
)
RESOURCE_CLAIM = (
    NAME,
    Column("State", lambda doc, _: "allocated" if get(doc, "status", "allocation") else "pending"),
    AGE,
)
RESOURCE_SLICE = (
    NAME,
    Column("Node", lambda doc, _: get(doc, "spec", "nodeName") or NONE),
    Column("Driver", at("spec", "driver")),
    Column("Pool", at("spec", "pool", "name")),
    AGE,
)
CUSTOM_RESOURCE_DEFINITION = (NAME, CREATED_AT)
WEBHOOKS = (NAME, Column("Webhooks", lambda doc, _: len(doc.get("webhooks") or ()), type="integer"), AGE)
ADMISSION_POLICY = (
    NAME,
    Column("Validations", lambda doc, _: len(get(doc, "spec", "validations", default=[])), type="integer"),
    Column("ParamKind", lambda doc, _: _param_kind(doc)),
    AGE,
)
MUTATING_POLICY = (
    NAME,
    Column("Mutations", lambda doc, _: len(get(doc, "spec", "mutations", default=[])), type="integer"),
    Column("ParamKind", lambda doc, _: _param_kind(doc)),
    AGE,
)
ADMISSION_POLICY_BINDING = (
    NAME,
    Column("PolicyName", at("spec", "policyName")),
    Column("ParamRef", lambda doc, _: _param_ref(doc)),
    AGE,
)


def _param_kind(document: Json) -> str:
    kind = get(document, "spec", "paramKind")
    return f"{kind['apiVersion']}/{kind['kind']}" if kind else "<unset>"


def _param_ref(document: Json) -> str:
    reference = get(document, "spec", "paramRef")
    if not reference:
        return "<unset>"
    name = reference.get("name") or "*"
    return f"{reference['namespace']}/{name}" if reference.get("namespace") else name
