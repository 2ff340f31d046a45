"""The table of built-in kinds. One row declares a kind; everything else about it is derived (see `kinds`)."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.kinds import cluster_rules as rules
from bayplan.apiserver.kinds import columns, events, pod_admission, pod_validation
from bayplan.apiserver.kinds import limit_rules as limits
from bayplan.apiserver.kinds import quota_rules as quotas
from bayplan.apiserver.kinds import workload_columns as show
from bayplan.apiserver.kinds import workload_rules as workloads
from bayplan.apiserver.kinds.builtin_certificates import certificate_kinds
from bayplan.apiserver.kinds.builtin_flow_control import flow_control_kinds
from bayplan.apiserver.kinds.builtin_networking import networking_kinds
from bayplan.apiserver.kinds.builtin_services import access_kinds, admission_kinds, other_kinds, storage_kinds
from bayplan.apiserver.kinds.kind import Scale, ServedKind
from bayplan.apiserver.kinds.rows import CREATE_ONLY, builtin_kind, selectable

_POD_FIELDS = selectable(
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
    spec__hostNetwork="false",
)
_EVENT_FIELDS = selectable(
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
) | {"source": (("source", "component"), ("reportingComponent",))}
_NEW_EVENT_FIELDS = {
    name.replace("involvedObject", "regarding").replace("reportingComponent", "reportingController"): selectable
    for name, selectable in _EVENT_FIELDS.items()
}
_RC_SCALE = Scale()


def builtin_kinds() -> list[ServedKind]:
    """Fresh rows of every built-in kind, in the order discovery shows them."""
    return [
        *_running(),
        *_surroundings(),
        *_limits(),
        *_volumes(),
        *_events(),
        *_workloads(),
        *_policy_and_priorities(),
        *networking_kinds(),
        *storage_kinds(),
        *access_kinds(),
        *admission_kinds(),
        *flow_control_kinds(),
        *certificate_kinds(),
        *other_kinds(),
    ]


def _running() -> list[ServedKind]:
    return [
        builtin_kind(
            "core.v1.Pod",
            "pods",
            short_names=("po",),
            categories=("all",),
            columns=columns.POD,
            status=True,
            kept_by_status=("ownerReferences",),
            generation=True,
            graceful=True,
            returns_deleted=True,
            selectable=_POD_FIELDS,
            default=pod_admission.default_pod,
            admit=pod_admission.admit_pod,
            admit_status=pod_admission.admit_pod_status,
            validate=pod_validation.validate_pod,
            keeps_status_on_create=True,
        ),
        builtin_kind("core.v1.Binding", "bindings", verbs=CREATE_ONLY),
        builtin_kind(
            "core.v1.Node",
            "nodes",
            namespaced=False,
            short_names=("no",),
            columns=columns.NODE,
            status=True,
            keeps_status_on_create=True,
            selectable=selectable(spec__unschedulable="false"),
            default=rules.default_node,
            validate=rules.validate_node,
        ),
        builtin_kind(
            "core.v1.ReplicationController",
            "replicationcontrollers",
            short_names=("rc",),
            categories=("all",),
            columns=show.REPLICATED,
            status=True,
            generation=True,
            scale=_RC_SCALE,
            selectable=selectable(status__replicas="0"),
            default=workloads.default_replication_controller,
            validate=workloads.validate_replication_controller,
        ),
    ]


def _surroundings() -> list[ServedKind]:
    return [
        builtin_kind(
            "core.v1.Namespace",
            "namespaces",
            namespaced=False,
            short_names=("ns",),
            columns=show.NAMESPACE,
            status=True,
            name_rule="label",
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            selectable=selectable("status.phase"),
            default=rules.default_namespace,
            admit=rules.admit_namespace,
            admit_status=rules.admit_namespace_status,
            default_status=rules.namespace_status,
        ),
        builtin_kind(
            "core.v1.ConfigMap",
            "configmaps",
            short_names=("cm",),
            columns=show.CONFIG_MAP,
            validate=rules.validate_config_map,
        ),
        builtin_kind(
            "core.v1.Secret",
            "secrets",
            columns=show.SECRET,
            selectable=selectable("type"),
            default=rules.default_secret,
            admit=rules.admit_secret,
            validate=rules.validate_secret,
        ),
        builtin_kind(
            "core.v1.ServiceAccount",
            "serviceaccounts",
            short_names=("sa",),
            columns=show.SERVICE_ACCOUNT,
            returns_deleted=True,
        ),
        builtin_kind(
            "core.v1.Service",
            "services",
            short_names=("svc",),
            categories=("all",),
            columns=show.SERVICE,
            status=True,
            name_rule="label",
            returns_deleted=True,
            keeps_status_on_create=True,
            selectable=selectable("spec.clusterIP", "spec.type"),
            default=rules.default_service,
            admit=rules.admit_service,
            validate=rules.validate_service,
        ),
        builtin_kind(
            "core.v1.Endpoints",
            "endpoints",
            singular="endpoints",
            short_names=("ep",),
            columns=show.ENDPOINTS,
            default=rules.default_endpoints,
            creates_on_update=True,
        ),
    ]


def _limits() -> list[ServedKind]:
    return [
        builtin_kind(
            "core.v1.LimitRange",
            "limitranges",
            short_names=("limits",),
            columns=show.LIMIT_RANGE,
            default=limits.default_limit_range,
            validate=limits.validate_limit_range,
        ),
        builtin_kind(
            "core.v1.ResourceQuota",
            "resourcequotas",
            short_names=("quota",),
            columns=show.RESOURCE_QUOTA,
            status=True,
            returns_deleted=True,
            validate=quotas.validate_quota,
        ),
        builtin_kind(
            "core.v1.PodTemplate",
            "podtemplates",
            columns=show.POD_TEMPLATE,
            generation=True,
            returns_deleted=True,
            default=workloads.default_pod_template,
            validate=workloads.validate_pod_template,
        ),
        builtin_kind(
            "node.v1.RuntimeClass",
            "runtimeclasses",
            group="node.k8s.io",
            namespaced=False,
            columns=show.RUNTIME_CLASS,
            validate=limits.validate_runtime_class,
        ),
    ]


def _volumes() -> list[ServedKind]:
    return [
        builtin_kind(
            "core.v1.PersistentVolume",
            "persistentvolumes",
            namespaced=False,
            short_names=("pv",),
            columns=show.PERSISTENT_VOLUME,
            status=True,
            returns_deleted=True,
            default=rules.default_persistent_volume,
            admit=rules.admit_persistent_volume,
            admit_status=rules.admit_persistent_volume_status,
            validate=rules.validate_persistent_volume,
        ),
        builtin_kind(
            "core.v1.PersistentVolumeClaim",
            "persistentvolumeclaims",
            short_names=("pvc",),
            columns=show.PERSISTENT_VOLUME_CLAIM,
            status=True,
            returns_deleted=True,
            default=rules.default_claim,
            admit=rules.admit_claim,
            admit_status=rules.admit_claim_status,
            default_status=rules.claim_status,
            validate=rules.validate_claim,
        ),
    ]


def _events() -> list[ServedKind]:
    return [
        builtin_kind(
            "core.v1.Event",
            "events",
            short_names=("ev",),
            columns=show.EVENT,
            selectable=_EVENT_FIELDS,
            creates_on_update=True,
            validate=events.validate_core_event,
        ),
        builtin_kind(
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


def _workloads() -> list[ServedKind]:
    replicated: dict[str, Any] = {"categories": ("all",), "status": True, "generation": True, "scale": _RC_SCALE}
    return [
        builtin_kind(
            "apps.v1.Deployment",
            "deployments",
            short_names=("deploy",),
            kept_by_status=("labels",),
            columns=show.DEPLOYMENT,
            default=workloads.default_deployment,
            validate=workloads.validate_template,
            **replicated,
        ),
        builtin_kind(
            "apps.v1.ReplicaSet",
            "replicasets",
            short_names=("rs",),
            columns=show.REPLICATED,
            selectable=selectable(status__replicas="0"),
            default=workloads.default_replica_set,
            validate=workloads.validate_template,
            **replicated,
        ),
        builtin_kind(
            "apps.v1.StatefulSet",
            "statefulsets",
            short_names=("sts",),
            columns=show.STATEFUL_SET,
            default=workloads.default_stateful_set,
            validate=workloads.validate_template,
            **replicated,
        ),
        builtin_kind(
            "apps.v1.DaemonSet",
            "daemonsets",
            short_names=("ds",),
            categories=("all",),
            columns=show.DAEMON_SET,
            status=True,
            generation=True,
            default=workloads.default_daemon_set,
            admit=workloads.admit_daemon_set,
            validate=workloads.validate_template,
        ),
        builtin_kind("apps.v1.ControllerRevision", "controllerrevisions"),
        builtin_kind(
            "batch.v1.Job",
            "jobs",
            categories=("all",),
            columns=show.JOB,
            status=True,
            generation=True,
            selectable=selectable(status__successful="0"),
            default=workloads.default_job,
            admit=workloads.admit_job,
            validate=workloads.validate_job,
        ),
        builtin_kind(
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


def _policy_and_priorities() -> list[ServedKind]:
    return [
        builtin_kind(
            "policy.v1.PodDisruptionBudget",
            "poddisruptionbudgets",
            short_names=("pdb",),
            columns=show.POD_DISRUPTION_BUDGET,
            status=True,
            generation=True,
            validate=workloads.validate_disruption_budget,
        ),
        builtin_kind(
            "scheduling.v1.PriorityClass",
            "priorityclasses",
            group="scheduling.k8s.io",
            namespaced=False,
            short_names=("pc",),
            generation=True,
            columns=show.PRIORITY_CLASS,
            default=rules.default_priority_class,
            admit=rules.admit_priority_class,
            validate=rules.validate_priority_class,
        ),
    ]
