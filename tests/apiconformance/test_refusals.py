"""Objects that are refused, with the same sentence by both servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiconformance.client import ApiClient

_JOB = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
_SELECTOR = {"matchLabels": {"a": "b"}}


def quota(hard: dict[str, str], *scopes: str) -> dict[str, Any]:
    return {"metadata": {"name": "o"}, "spec": {"hard": hard, "scopes": list(scopes)}}


def selected(hard: dict[str, str], *requirements: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "o"}, "spec": {"hard": hard, "scopeSelector": {"matchExpressions": requirements}}}


def budget(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "o"}, "spec": {"selector": _SELECTOR, **spec}}


def cron_job(schedule: str) -> dict[str, Any]:
    return {"metadata": {"name": "o"}, "spec": {"schedule": schedule, "jobTemplate": _JOB}}


def service(**port: Any) -> dict[str, Any]:
    return {"metadata": {"name": "o"}, "spec": {"ports": [port]}}


def secret(kind: str) -> dict[str, Any]:
    return {"metadata": {"name": "o"}, "type": f"kubernetes.io/{kind}", "data": {"other": "aGk="}}


REFUSED = [
    (
        "api/v1",
        "resourcequotas",
        quota({"foo": "1"}),
        'ResourceQuota "o" is invalid: '
        '[spec.hard[foo]: Invalid value: "foo": must be a standard resource type or fully '
        'qualified, spec.hard[foo]: Invalid value: "foo": must be a standard resource for quota]',
    ),
    (
        "api/v1",
        "resourcequotas",
        quota({"count/deployments.apps": "1", "services.nodeports": "0"}, "BestEffort"),
        'ResourceQuota "o" is invalid: '
        'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
    ),
    (
        "api/v1",
        "resourcequotas",
        quota({"pods": "1"}, "Nope"),
        'ResourceQuota "o" is invalid: spec.scopes: Invalid value: ["Nope"]: unsupported scope',
    ),
    (
        "api/v1",
        "resourcequotas",
        quota({"pods": "1"}, "Terminating", "NotTerminating"),
        'ResourceQuota "o" is invalid: '
        'spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
    ),
    (
        "api/v1",
        "resourcequotas",
        selected({"pods": "1"}, {"scopeName": "Nope", "operator": "Exists"}),
        'ResourceQuota "o" is invalid: '
        'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Nope": unsupported scope',
    ),
    (
        "api/v1",
        "resourcequotas",
        selected({"pods": "1"}, {"scopeName": "BestEffort", "operator": "In", "values": ["a"]}),
        'ResourceQuota "o" is invalid: spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be '
        "'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
        "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
    ),
    (
        "api/v1",
        "resourcequotas",
        selected({"pods": "1"}, {"scopeName": "PriorityClass", "operator": "NotIn"}),
        'ResourceQuota "o" is invalid: spec.scopeSelector.matchExpressions.values: Required value: must be at least '
        "one value when `operator` is 'In' or 'NotIn' for scope selector",
    ),
    (
        "api/v1",
        "resourcequotas",
        selected({"pods": "1"}, {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}),
        'ResourceQuota "o" is invalid: spec.scopeSelector.matchExpressions.values: Invalid value: ["a"]: must be no '
        "value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
    ),
    (
        "api/v1",
        "resourcequotas",
        selected({"pods": "1"}, {"scopeName": "VolumeAttributesClass", "operator": "Exists"}),
        'ResourceQuota "o" is invalid: spec.scopeSelector.matchExpressions: Invalid value: '
        '{"MatchExpressions":[{"ScopeName":"VolumeAttributesClass","Operator":"Exists","Values":null}]}: '
        "unsupported scope applied to resource",
    ),
    (
        "api/v1",
        "resourcequotas",
        quota({"services": "1500m"}),
        'ResourceQuota "o" is invalid: spec.hard[services]: Invalid value: "1500m": must be an integer',
    ),
    (
        "apis/policy/v1",
        "poddisruptionbudgets",
        budget(maxUnavailable="150%"),
        'PodDisruptionBudget.policy "o" is invalid: '
        'spec.maxUnavailable: Invalid value: "150%": must not be greater than '
        "100%",
    ),
    (
        "apis/batch/v1",
        "cronjobs",
        cron_job("TZ=UTC * * * * *"),
        'CronJob.batch "o" is invalid: '
        'spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in '
        "schedule, use timeZone field instead",
    ),
    (
        "api/v1",
        "services",
        service(port=99999),
        'Service "o" is invalid: '
        "[spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive, "
        "spec.ports[0].targetPort: Invalid value: 99999: must be between 1 and 65535, inclusive]",
    ),
    (
        "api/v1",
        "secrets",
        secret("tls"),
        'Secret "o" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]',
    ),
    ("api/v1", "secrets", secret("ssh-auth"), 'Secret "o" is invalid: data[ssh-privatekey]: Required value'),
    (
        "api/v1",
        "secrets",
        secret("basic-auth"),
        'Secret "o" is invalid: [data[username]: Required value, data[password]: Required value]',
    ),
    ("api/v1", "secrets", secret("dockerconfigjson"), 'Secret "o" is invalid: data[.dockerconfigjson]: Required value'),
    (
        "api/v1",
        "secrets",
        secret("service-account-token"),
        'Secret "o" is invalid: metadata.annotations[kubernetes.io/service-account.name]: Required value',
    ),
]


@pytest.mark.parametrize(("group", "resource", "document", "message"), REFUSED)
def test_what_is_refused_is_told_in_the_same_words(
    api: ApiClient, namespace: str, group: str, resource: str, document: dict[str, Any], message: str
) -> None:
    answer = api.post(f"/{group}/namespaces/{namespace}/{resource}", document)

    assert (answer.status, answer.message) == (422, message)


@pytest.mark.parametrize(
    "document",
    [
        quota({"pods": "1", "requests.cpu": "1", "limits.memory": "1Gi"}, "NotTerminating", "NotBestEffort"),
        quota({"hugepages-2Mi": "1", "requests.nvidia.com/gpu": "1", "requests.storage": "1Gi", "services": "1"}),
        quota({"gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "count/jobs.batch": "1"}),
        quota({"limits.ephemeral-storage": "1", "services.loadbalancers": "0"}),
        quota({"gpu.deviceclass.resource.k8s.io/devices": "1", "persistentvolumeclaims": "1"}, "VolumeAttributesClass"),
        selected({"pods": "1"}, {"scopeName": "PriorityClass", "operator": "DoesNotExist"}),
    ],
)
def test_quotas_of_all_kinds_of_resources_are_taken(api: ApiClient, namespace: str, document: dict[str, Any]) -> None:
    answer = api.post(f"/api/v1/namespaces/{namespace}/resourcequotas", document)

    assert answer.status == 201, answer.body


def test_a_list_brings_no_initial_events(api: ApiClient, config_maps: str) -> None:
    answer = api.get(f"{config_maps}?sendInitialEvents=true")

    assert (answer.status, answer.message) == (
        422,
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
    )
