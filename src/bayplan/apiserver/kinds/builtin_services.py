"""Built-in kinds, continued: storage, access, leases, devices, definitions of custom resources."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.kinds import cluster_rules as rules
from bayplan.apiserver.kinds import crd_rules, device_rules
from bayplan.apiserver.kinds import policy_rules as policies
from bayplan.apiserver.kinds import workload_columns as show
from bayplan.apiserver.kinds.kind import CONTROLLED_METADATA, ServedKind
from bayplan.apiserver.kinds.rows import CREATE_ONLY, builtin_kind, selectable


def storage_kinds() -> list[ServedKind]:
    group: dict[str, Any] = {"group": "storage.k8s.io"}
    return [
        builtin_kind(
            "storage.v1.StorageClass",
            "storageclasses",
            namespaced=False,
            short_names=("sc",),
            columns=show.STORAGE_CLASS,
            default=rules.default_storage_class,
            validate=rules.validate_storage_class,
            **group,
        ),
        builtin_kind("storage.v1.CSINode", "csinodes", namespaced=False, columns=show.CSI_NODE, **group),
        builtin_kind(
            "storage.v1.CSIDriver",
            "csidrivers",
            namespaced=False,
            columns=show.CSI_DRIVER,
            default=rules.default_csi_driver,
            **group,
        ),
        builtin_kind(
            "storage.v1.CSIStorageCapacity", "csistoragecapacities", columns=show.CSI_STORAGE_CAPACITY, **group
        ),
        builtin_kind(
            "storage.v1.VolumeAttachment",
            "volumeattachments",
            namespaced=False,
            columns=show.VOLUME_ATTACHMENT,
            status=True,
            kept_by_status=CONTROLLED_METADATA,
            **group,
        ),
    ]


def admission_kinds() -> list[ServedKind]:
    group: dict[str, Any] = {"group": "admissionregistration.k8s.io", "namespaced": False, "generation": True}
    called: dict[str, Any] = {"default": policies.default_webhooks, "validate": policies.validate_webhooks}
    return [
        builtin_kind(
            "admissionregistration.v1.ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            columns=show.WEBHOOKS,
            **called,
            **group,
        ),
        builtin_kind(
            "admissionregistration.v1.MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            columns=show.WEBHOOKS,
            **called,
            **group,
        ),
        builtin_kind(
            "admissionregistration.v1.ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
            columns=show.ADMISSION_POLICY,
            status=True,
            kept_by_status=CONTROLLED_METADATA,
            default=policies.default_policy,
            default_status=policies.default_policy_status,
            validate=policies.validate_policy,
            **group,
        ),
        builtin_kind(
            "admissionregistration.v1.ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            columns=show.ADMISSION_POLICY_BINDING,
            default=policies.default_policy_binding,
            validate=policies.validate_policy_binding,
            **group,
        ),
        builtin_kind(
            "admissionregistration.v1.MutatingAdmissionPolicy",
            "mutatingadmissionpolicies",
            columns=show.MUTATING_POLICY,
            default=policies.default_policy,
            validate=policies.validate_mutating_policy,
            **group,
        ),
        builtin_kind(
            "admissionregistration.v1.MutatingAdmissionPolicyBinding",
            "mutatingadmissionpolicybindings",
            columns=show.ADMISSION_POLICY_BINDING,
            default=policies.default_policy_binding,
            validate=policies.validate_mutating_policy_binding,
            **group,
        ),
    ]


def access_kinds() -> list[ServedKind]:
    roles: dict[str, Any] = {"group": "rbac.authorization.k8s.io", "name_rule": "path"}
    bind: dict[str, Any] = {
        "columns": show.BINDING,
        "default": rules.default_role_binding,
        "validate": rules.validate_role_binding,
    }
    define: dict[str, Any] = {"columns": show.ROLE, "validate": rules.validate_role}
    review: dict[str, Any] = {"group": "authorization.k8s.io", "verbs": CREATE_ONLY, "namespaced": False}
    identity: dict[str, Any] = {"group": "authentication.k8s.io", "verbs": CREATE_ONLY, "namespaced": False}
    return [
        builtin_kind("rbac.v1.Role", "roles", **roles, **define),
        builtin_kind("rbac.v1.RoleBinding", "rolebindings", **roles, **bind),
        builtin_kind("rbac.v1.ClusterRole", "clusterroles", namespaced=False, **roles, **define),
        builtin_kind("rbac.v1.ClusterRoleBinding", "clusterrolebindings", namespaced=False, **roles, **bind),
        builtin_kind("authorization.v1.SelfSubjectAccessReview", "selfsubjectaccessreviews", **review),
        builtin_kind("authorization.v1.SubjectAccessReview", "subjectaccessreviews", **review),
        builtin_kind(
            "authorization.v1.LocalSubjectAccessReview", "localsubjectaccessreviews", **review | {"namespaced": True}
        ),
        builtin_kind("authorization.v1.SelfSubjectRulesReview", "selfsubjectrulesreviews", **review),
        builtin_kind("authentication.v1.TokenReview", "tokenreviews", **identity),
        builtin_kind("authentication.v1.SelfSubjectReview", "selfsubjectreviews", **identity),
    ]


def other_kinds() -> list[ServedKind]:
    devices: dict[str, Any] = {"group": "resource.k8s.io"}
    return [
        builtin_kind(
            "coordination.v1.Lease",
            "leases",
            group="coordination.k8s.io",
            columns=show.LEASE,
            creates_on_update=True,
            validate=rules.validate_lease,
        ),
        builtin_kind(
            "discovery.v1.EndpointSlice",
            "endpointslices",
            group="discovery.k8s.io",
            generation=True,
            columns=show.ENDPOINT_SLICE,
            default=rules.default_endpoint_slice,
        ),
        builtin_kind(
            "resource.v1.ResourceClaim",
            "resourceclaims",
            status=True,
            kept_by_status=CONTROLLED_METADATA,
            columns=show.RESOURCE_CLAIM,
            default=device_rules.default_claim,
            admit=device_rules.admit_claim,
            validate=device_rules.validate_claim,
            **devices,
        ),
        builtin_kind(
            "resource.v1.ResourceClaimTemplate",
            "resourceclaimtemplates",
            default=device_rules.default_template,
            admit=device_rules.admit_template,
            validate=device_rules.validate_template,
            **devices,
        ),
        builtin_kind(
            "resource.v1.ResourceSlice",
            "resourceslices",
            namespaced=False,
            columns=show.RESOURCE_SLICE,
            selectable=selectable("spec.nodeName", "spec.driver"),
            admit=device_rules.admit_slice,
            validate=device_rules.validate_slice,
            **devices,
        ),
        builtin_kind(
            "resource.v1.DeviceClass",
            "deviceclasses",
            namespaced=False,
            generation=True,
            validate=device_rules.validate_class,
            **devices,
        ),
        builtin_kind(
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
