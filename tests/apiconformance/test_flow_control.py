"""FlowSchemas and PriorityLevelConfigurations: defaults and validation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiconformance.client import ApiClient, Json, unique

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = f"{GROUP}/flowschemas", f"{GROUP}/prioritylevelconfigurations"
DRY = {"dryRun": "All"}


def schema(**changes: Any) -> Json:
    subject = {"kind": "User", "user": {"name": "nobody"}}
    rule = {"subjects": [subject], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}
    spec = {"priorityLevelConfiguration": {"name": "global-default"}, "rules": [rule]}
    return {"metadata": {"name": unique("flow")}, "spec": spec | changes}


def level(**changes: Any) -> Json:
    spec = {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}
    return {"metadata": {"name": unique("level")}, "spec": spec | changes}


def test_defaults_are_filled_in(api: ApiClient) -> None:
    flow, priority = api.post(SCHEMAS, schema(), query=DRY).body, api.post(LEVELS, level(), query=DRY).body

    assert flow["spec"]["matchingPrecedence"] == 1000
    queuing = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
    assert priority["spec"]["limited"] == {
        "nominalConcurrencyShares": 30,
        "lendablePercent": 0,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (SCHEMAS, schema(matchingPrecedence=10001), "must not be greater than 10000"),
        (SCHEMAS, schema(matchingPrecedence=1), "only the schema named 'exempt' may have matchingPrecedence 1"),
        (SCHEMAS, schema(priorityLevelConfiguration={"name": ""}), "must reference a priority level"),
        (SCHEMAS, schema(distinguisherMethod={"type": "ByLuck"}), "spec.distinguisherMethod.type: Unsupported value"),
        (SCHEMAS, schema(rules=[{"subjects": []}]), "subjects must contain at least one value"),
        (LEVELS, level(type="Exempt"), "must be 'Exempt' if and only if `name` is 'exempt'"),
        (LEVELS, level(limited=None), "spec.limited: Required value: must not be empty when type is Limited"),
        (LEVELS, level(limited={"limitResponse": {"type": "Queue"}}), "spec.limited.limitResponse.queuing"),
        (LEVELS, level(limited={"limitResponse": {"type": "Reject"}, "lendablePercent": 101}), "lendablePercent"),
    ],
)
def test_bad_objects_are_invalid(api: ApiClient, path: str, body: Json, expected: str) -> None:
    answer = api.post(path, body, query=DRY)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert expected in answer.message
