"""Parts that are there and empty get the defaults of parts that are there."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.kinds.pod_admission import default_pod_spec
from bayplan.apiserver.kinds.workload_rules import default_job

PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def test_an_empty_probe_has_the_numbers_of_a_probe() -> None:
    spec: dict[str, Any] = {"containers": [{"name": "a", "readinessProbe": {}}]}
    default_pod_spec(spec)

    assert spec["containers"][0]["readinessProbe"] == PROBE


def test_an_empty_token_source_expires_in_an_hour() -> None:
    spec: dict[str, Any] = {"volumes": [{"name": "a", "projected": {"sources": [{"serviceAccountToken": {}}]}}]}
    default_pod_spec(spec)

    assert spec["volumes"][0]["projected"]["sources"] == [{"serviceAccountToken": {"expirationSeconds": 3600}}]


def test_an_empty_failure_policy_replaces_pods_once_they_have_failed() -> None:
    job: dict[str, Any] = {
        "metadata": {"uid": "u", "name": "a"},
        "spec": {"podFailurePolicy": {}, "template": {"spec": {}}},
    }
    default_job(job)

    assert job["spec"]["podReplacementPolicy"] == "Failed"
