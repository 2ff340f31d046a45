"""Zero values over JSON and protobuf: what is sent in one form is what the other shows."""

from __future__ import annotations

import pytest

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.protobuf import MEDIA_TYPE, write_protobuf
from tests.apiconformance.client import ApiClient, Json, deployment, pod, unique

TYPES = {kind.kind: kind.type for kind in builtin_kinds()}


def cases() -> list[tuple[str, Json]]:
    rolling = deployment("")
    rolling["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    rolling["spec"]["minReadySeconds"] = 0
    user = pod(hostUsers=False, terminationGracePeriodSeconds=0)
    user["spec"]["tolerations"] = [{"key": "k", "operator": "Exists", "value": "", "effect": "NoExecute"}]
    user["spec"]["tolerations"][0]["tolerationSeconds"] = 0
    user["spec"]["containers"][0] |= {"stdin": False, "command": [], "env": [{"name": "A", "value": ""}]}
    job_template = {"spec": {"restartPolicy": "Never", "containers": user["spec"]["containers"]}}
    job_spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 0, "backoffLimitPerIndex": 0}
    job: Json = {"apiVersion": "batch/v1", "kind": "Job", "spec": {**job_spec, "template": job_template}}
    driver: Json = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "spec": {"attachRequired": False}}
    storage_node: Json = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    storage_node["spec"] = {"drivers": [{"name": "d.e.com", "nodeID": "n", "allocatable": {"count": 0}}]}
    return [
        ("/api/v1/namespaces/{}/pods", user | {"apiVersion": "v1", "kind": "Pod"}),
        ("/apis/apps/v1/namespaces/{}/deployments", rolling | {"apiVersion": "apps/v1", "kind": "Deployment"}),
        ("/apis/batch/v1/namespaces/{}/jobs", job),
        ("/apis/storage.k8s.io/v1/csidrivers", driver),
        ("/apis/storage.k8s.io/v1/csinodes", storage_node),
    ]


@pytest.mark.parametrize(("path", "body"), cases(), ids=lambda value: value["kind"] if isinstance(value, dict) else "")
def test_both_forms_of_one_object_are_stored_alike(api: ApiClient, namespace: str, path: str, body: Json) -> None:
    path = path.format(namespace)
    shown = []
    for form in ("json", "protobuf"):
        name = unique("zeros")
        named = body | {"metadata": {"name": name}}
        if form == "json":
            answer = api.post(path, named)
        else:
            answer = api.post(path, write_protobuf(named, TYPES[body["kind"]]), content_type=MEDIA_TYPE)
        assert answer.status == 201, answer.body
        stored = api.get(f"{path}/{name}").body["spec"]
        api.delete(f"{path}/{name}")
        for field in ("selector", "template") if body["kind"] == "Job" else ():
            stored.pop(field)
        for volume in stored.get("volumes", ()) if body["kind"] == "Pod" else ():
            volume["name"] = "generated"
        for container in stored.get("containers", ()) if body["kind"] == "Pod" else ():
            container.pop("volumeMounts", None)
        shown.append(stored)

    assert shown[0] == shown[1]
    assert wanted_in(shown[0], body["spec"])


def wanted_in(found: Json, wanted: Json) -> bool:
    """Whether zeros that differ from absence were kept, and those that do not were left out."""
    rolling = (wanted.get("strategy") or {}).get("rollingUpdate") or {}
    if rolling:
        return found["strategy"]["rollingUpdate"]["maxSurge"] == 0 and "minReadySeconds" not in found
    for name in ("hostUsers", "attachRequired", "backoffLimitPerIndex", "parallelism"):
        if name in wanted and found.get(name) != wanted[name]:
            return False
    tolerations = [one for one in found.get("tolerations") or () if one["key"] == "k"]
    return all("value" not in one and one["tolerationSeconds"] == 0 for one in tolerations)
