"""The table of built-in kinds. One row declares a kind; everything else about it is derived (see `kinds`)."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.kinds import cluster_rules as rules
from bayplan.apiserver.kinds import columns, crd_rules, device_rules, events, pod_admission, pod_validation
from bayplan.apiserver.kinds import limit_rules as limits
from bayplan.apiserver.kinds import quota_rules as quotas
from bayplan.apiserver.kinds import workload_columns as show
from bayplan.apiserver.kinds import workload_rules as workloads
from bayplan.apiserver.kinds.kind import Kind, Scale, Selectable
from bayplan.apiserver.kinds.type_table import builtin_types

_CREATE_ONLY = ("create",)


def _selectable(*names: str, **defaults: str) -> dict[str, Selectable]:
    """Selectable fields; keyword arguments (dots as `__`) give what an absent field counts as."""
    found: dict[str, Selectable] = {name: (tuple(name.split(".")), "") for name in names}
    for name, default in defaults.items():
        path = tuple(name.split("__"))
        found[".".join(path)] = (path, default)
    return found


_POD_FIELDS = _selectable(
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
    spec__hostNetwork="false",
)
_EVENT_FIELDS = _selectable(
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "type",
) | {"source": (("source", "component"), "")}
_NEW_EVENT_FIELDS = {
    name.replace("involvedObject", "regarding").replace("reportingComponent", "reportingController"): selectable
    for name, selectable in _EVENT_FIELDS.items()
}
_RC_SCALE = Scale()


def _kind(type_name: str, plural: str, *, group: str | None = None, **options: Any) -> Kind:
    package, version, kind = type_name.split(".")
    if group is None:
        group = "" if package == "core" else package
    declared = builtin_types()[type_name]
    options.setdefault("singular", kind.lower())
    return Kind(group, version, kind, plural, type=declared, **options)


def builtin_kinds() -> list[Kind]:
    """Fresh rows of every built-in kind, in the order discovery shows them."""
    return [
        *_running(),
        *_surroundings(),
        *_limits(),
        *_volumes(),
        *_events(),
        *_workloads(),
        *_policy_and_priorities(),
        *_storage(),
        *_access(),
        *_others(),
    ]


def _running() -> list[Kind]:
    return [
        _kind(
            "core.v1.Pod",
            "pods",
            short_names=("po",),
            categories=("all",),
            columns=columns.POD,
            status=True,
            generation=True,
            graceful=True,
            returns_deleted=True,
            selectable=_POD_FIELDS,
            default=pod_admission.default_pod,
            admit=pod_admission.admit_pod,
            validate=pod_validation.validate_pod,
            keeps_status_on_create=True,
        ),
        _kind("core.v1.Binding", "bindings", verbs=_CREATE_ONLY),
        _kind(
            "core.v1.Node",
            "nodes",
            namespaced=False,
            short_names=("no",),
            columns=columns.NODE,
            status=True,
            keeps_status_on_create=True,
            selectable=_selectable(spec__unschedulable="false"),
            default=rules.default_node,
            validate=rules.validate_node,
        ),
        _kind(
            "core.v1.ReplicationController",
            "replicationcontrollers",
            short_names=("rc",),
            categories=("all",),
            columns=show.REPLICATED,
            status=True,
            generation=True,
            scale=_RC_SCALE,
            selectable=_selectable(status__replicas="0"),
            default=workloads.default_replication_controller,
            validate=workloads.validate_replication_controller,
        ),
    ]


def _surroundings() -> list[Kind]:
    return [
        _kind(
            "core.v1.Namespace",
            "namespaces",
            namespaced=False,
            short_names=("ns",),
            columns=show.NAMESPACE,
            status=True,
            name_rule="label",
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            selectable=_selectable("status.phase"),
            default=rules.default_namespace,
            admit=rules.admit_namespace,
            default_status=rules.namespace_status,
        ),
        _kind(
            "core.v1.ConfigMap",
            "configmaps",
            short_names=("cm",),
            columns=show.CONFIG_MAP,
            validate=rules.validate_config_map,
        ),
        _kind(
            "core.v1.Secret",
            "secrets",
            columns=show.SECRET,
            selectable=_selectable("type"),
            default=rules.default_secret,
            admit=rules.admit_secret,
            validate=rules.validate_secret,
        ),
        _kind(
            "core.v1.ServiceAccount",
            "serviceaccounts",
            short_names=("sa",),
            columns=show.SERVICE_ACCOUNT,
            returns_deleted=True,
        ),
        _kind(
            "core.v1.Service",
            "services",
            short_names=("svc",),
            categories=("all",),
            columns=show.SERVICE,
            status=True,
            name_rule="dns1035",
            returns_deleted=True,
            keeps_status_on_create=True,
            selectable=_selectable("spec.clusterIP", "spec.type"),
            default=rules.default_service,
            admit=rules.admit_service,
            validate=rules.validate_service,
        ),
        _kind(
            "core.v1.Endpoints",
            "endpoints",
            singular="endpoints",
            short_names=("ep",),
            columns=show.ENDPOINTS,
            creates_on_update=True,
        ),
    ]


def _limits() -> list[Kind]:
    return [
        _kind(
            "core.v1.LimitRange",
            "limitranges",
            short_names=("limits",),
            columns=show.LIMIT_RANGE,
            default=limits.default_limit_range,
            validate=limits.validate_limit_range,
        ),
        _kind(
            "core.v1.ResourceQuota",
            "resourcequotas",
            short_names=("quota",),
            columns=show.RESOURCE_QUOTA,
            status=True,
            returns_deleted=True,
            validate=quotas.validate_quota,
        ),
        _kind(
            "core.v1.PodTemplate",
            "podtemplates",
            columns=show.POD_TEMPLATE,
            generation=True,
            returns_deleted=True,
            default=workloads.default_pod_template,
            validate=workloads.validate_pod_template,
        ),
        _kind(
            "node.v1.RuntimeClass",
            "runtimeclasses",
            group="node.k8s.io",
            namespaced=False,
            columns=show.RUNTIME_CLASS,
            validate=limits.validate_runtime_class,
        ),
    ]


def _volumes() -> list[Kind]:
    return [
        _kind(
            "core.v1.PersistentVolume",
            "persistentvolumes",
            namespaced=False,
            short_names=("pv",),
            columns=show.PERSISTENT_VOLUME,
            status=True,
            returns_deleted=True,
            default=rules.default_persistent_volume,
            default_status=rules.persistent_volume_status,
            validate=rules.validate_persistent_volume,
        ),
        _kind(
            "core.v1.PersistentVolumeClaim",
            "persistentvolumeclaims",
            short_names=("pvc",),
            columns=show.PERSISTENT_VOLUME_CLAIM,
            status=True,
            returns_deleted=True,
            default=rules.default_claim,
            admit=rules.admit_claim,
            default_status=rules.claim_status,
            validate=rules.validate_claim,
        ),
    ]


def _events() -> list[Kind]:
    return [
        _kind(
            "core.v1.Event",
            "events",
            short_names=("ev",),
            columns=show.EVENT,
            selectable=_EVENT_FIELDS,
            creates_on_update=True,
            validate=events.validate_core_event,
        ),
        _kind(
            "events.v1.Event",
            "events",
            group="events.k8s.io",
            short_names=("ev",),
            columns=show.EVENT,
            storage="events",
            selectable=_NEW_EVENT_FIELDS,
            creates_on_update=True,
            validate=events.validate_event,
            to_storage=events.to_core,
            from_storage=events.from_core,
        ),
    ]


def _workloads() -> list[Kind]:
    replicated: dict[str, Any] = {"categories": ("all",), "status": True, "generation": True, "scale": _RC_SCALE}
    return [
        _kind(
            "apps.v1.Deployment",
            "deployments",
            short_names=("deploy",),
            columns=show.DEPLOYMENT,
            default=workloads.default_deployment,
            validate=workloads.validate_template,
            **replicated,
        ),
        _kind(
            "apps.v1.ReplicaSet",
            "replicasets",
            short_names=("rs",),
            columns=show.REPLICATED,
            selectable=_selectable(status__replicas="0"),
            default=workloads.default_replica_set,
            validate=workloads.validate_template,
            **replicated,
        ),
        _kind(
            "apps.v1.StatefulSet",
            "statefulsets",
            short_names=("sts",),
            columns=show.STATEFUL_SET,
            default=workloads.default_stateful_set,
            validate=workloads.validate_template,
            **replicated,
        ),
        _kind(
            "apps.v1.DaemonSet",
            "daemonsets",
            short_names=("ds",),
            categories=("all",),
            columns=show.DAEMON_SET,
            status=True,
            generation=True,
            default=workloads.default_daemon_set,
            validate=workloads.validate_template,
        ),
        _kind("apps.v1.ControllerRevision", "controllerrevisions"),
        _kind(
            "batch.v1.Job",
            "jobs",
            categories=("all",),
            columns=show.JOB,
            status=True,
            generation=True,
            selectable=_selectable(status__successful="0"),
            default=workloads.default_job,
            admit=workloads.admit_job,
            validate=workloads.validate_job,
        ),
        _kind(
            "batch.v1.CronJob",
            "cronjobs",
            short_names=("cj",),
            categories=("all",),
            columns=show.CRON_JOB,
            status=True,
            generation=True,
            default=workloads.default_cron_job,
            validate=workloads.validate_cron_job,
        ),
    ]


def _policy_and_priorities() -> list[Kind]:
    return [
        _kind(
            "policy.v1.PodDisruptionBudget",
            "poddisruptionbudgets",
            short_names=("pdb",),
            columns=show.POD_DISRUPTION_BUDGET,
            status=True,
            generation=True,
            validate=workloads.validate_disruption_budget,
        ),
        _kind(
            "scheduling.v1.PriorityClass",
            "priorityclasses",
            group="scheduling.k8s.io",
            namespaced=False,
            short_names=("pc",),
            columns=show.PRIORITY_CLASS,
            default=rules.default_priority_class,
            admit=rules.admit_priority_class,
            validate=rules.validate_priority_class,
        ),
    ]


def _storage() -> list[Kind]:
    group: dict[str, Any] = {"group": "storage.k8s.io"}
    return [
        _kind(
            "storage.v1.StorageClass",
            "storageclasses",
            namespaced=False,
            short_names=("sc",),
            columns=show.STORAGE_CLASS,
            default=rules.default_storage_class,
            validate=rules.validate_storage_class,
            **group,
        ),
        _kind("storage.v1.CSINode", "csinodes", namespaced=False, columns=show.CSI_NODE, **group),
        _kind(
            "storage.v1.CSIDriver",
            "csidrivers",
            namespaced=False,
            columns=show.CSI_DRIVER,
            default=rules.default_csi_driver,
            **group,
        ),
        _kind("storage.v1.CSIStorageCapacity", "csistoragecapacities", columns=show.CSI_STORAGE_CAPACITY, **group),
        _kind(
            "storage.v1.VolumeAttachment",
            "volumeattachments",
            namespaced=False,
            columns=show.VOLUME_ATTACHMENT,
            status=True,
            **group,
        ),
    ]


def _access() -> list[Kind]:
    roles: dict[str, Any] = {"group": "rbac.authorization.k8s.io", "name_rule": "path"}
    bind: dict[str, Any] = {
        "columns": show.BINDING,
        "default": rules.default_role_binding,
        "validate": rules.validate_role_binding,
    }
    define: dict[str, Any] = {"columns": show.ROLE, "validate": rules.validate_role}
    review: dict[str, Any] = {"group": "authorization.k8s.io", "verbs": _CREATE_ONLY, "namespaced": False}
    identity: dict[str, Any] = {"group": "authentication.k8s.io", "verbs": _CREATE_ONLY, "namespaced": False}
    return [
        _kind("rbac.v1.Role", "roles", **roles, **define),
        _kind("rbac.v1.RoleBinding", "rolebindings", **roles, **bind),
        _kind("rbac.v1.ClusterRole", "clusterroles", namespaced=False, **roles, **define),
        _kind("rbac.v1.ClusterRoleBinding", "clusterrolebindings", namespaced=False, **roles, **bind),
        _kind("authorization.v1.SelfSubjectAccessReview", "selfsubjectaccessreviews", **review),
        _kind("authorization.v1.SubjectAccessReview", "subjectaccessreviews", **review),
        _kind(
            "authorization.v1.LocalSubjectAccessReview", "localsubjectaccessreviews", **review | {"namespaced": True}
        ),
        _kind("authorization.v1.SelfSubjectRulesReview", "selfsubjectrulesreviews", **review),
        _kind("authentication.v1.TokenReview", "tokenreviews", **identity),
        _kind("authentication.v1.SelfSubjectReview", "selfsubjectreviews", **identity),
    ]


def _others() -> list[Kind]:
    devices: dict[str, Any] = {"group": "resource.k8s.io"}
    return [
        _kind(
            "coordination.v1.Lease",
            "leases",
            group="coordination.k8s.io",
            columns=show.LEASE,
            creates_on_update=True,
            validate=rules.validate_lease,
        ),
        _kind("discovery.v1.EndpointSlice", "endpointslices", group="discovery.k8s.io", columns=show.ENDPOINT_SLICE),
        _kind(
            "resource.v1.ResourceClaim",
            "resourceclaims",
            status=True,
            columns=show.RESOURCE_CLAIM,
            default=device_rules.default_claim,
            admit=device_rules.admit_claim,
            validate=device_rules.validate_claim,
            **devices,
        ),
        _kind(
            "resource.v1.ResourceClaimTemplate",
            "resourceclaimtemplates",
            default=device_rules.default_template,
            admit=device_rules.admit_template,
            validate=device_rules.validate_template,
            **devices,
        ),
        _kind(
            "resource.v1.ResourceSlice",
            "resourceslices",
            namespaced=False,
            columns=show.RESOURCE_SLICE,
            selectable=_selectable("spec.nodeName", "spec.driver"),
            admit=device_rules.admit_slice,
            validate=device_rules.validate_slice,
            **devices,
        ),
        _kind(
            "resource.v1.DeviceClass",
            "deviceclasses",
            namespaced=False,
            validate=device_rules.validate_class,
            **devices,
        ),
        _kind(
            "apiextensions.v1.CustomResourceDefinition",
            "customresourcedefinitions",
            group="apiextensions.k8s.io",
            namespaced=False,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            columns=show.CUSTOM_RESOURCE_DEFINITION,
            status=True,
            generation=True,
            default=crd_rules.default_definition,
            admit=crd_rules.admit_definition,
            validate=crd_rules.validate_definition,
            warn=crd_rules.warn_of_definition,
        ),
    ]
