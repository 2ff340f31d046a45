"""Discovery, OpenAPI, custom resources, scale, reviews, events and everything else about the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiconformance.client import JSON_PATCH, ApiClient, Json, deployment, unique
from tests.waiting import wait_until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_the_version_is_the_one_promised(api: ApiClient) -> None:
    answer = api.get("/version")

    assert (answer.body["major"], answer.body["minor"]) == ("1", "36")
    assert answer.body["gitVersion"].startswith("v1.36.")


def test_health_is_plain_text(api: ApiClient) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        answer = api.get(path)
        assert (answer.status, answer.body) == (200, "ok")


def test_groups_are_discovered(api: ApiClient) -> None:
    groups = {group["name"]: group["preferredVersion"]["version"] for group in api.get("/apis").body["groups"]}

    assert groups["apps"] == "v1"
    assert groups["policy"] == "v1"
    assert groups["scheduling.k8s.io"] == "v1"
    assert api.get("/api").body["versions"] == ["v1"]


@pytest.mark.parametrize(
    ("path", "name", "kind", "namespaced", "short_names"),
    [
        ("/api/v1", "pods", "Pod", True, ["po"]),
        ("/api/v1", "nodes", "Node", False, ["no"]),
        ("/apis/apps/v1", "deployments", "Deployment", True, ["deploy"]),
        ("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ["pdb"]),
        ("/apis/storage.k8s.io/v1", "storageclasses", "StorageClass", False, ["sc"]),
        ("/apis/coordination.k8s.io/v1", "leases", "Lease", True, None),
    ],
)
def test_resources_are_discovered(
    api: ApiClient, path: str, name: str, kind: str, namespaced: bool, short_names: list[str] | None
) -> None:
    resources = {one["name"]: one for one in api.get(path).body["resources"]}
    found = resources[name]

    assert (found["kind"], found["namespaced"], found.get("shortNames")) == (kind, namespaced, short_names)
    assert set(found["verbs"]) >= {"create", "delete", "get", "list", "patch", "update", "watch"}


def test_subresources_are_discovered(api: ApiClient) -> None:
    names = {one["name"]: one for one in api.get("/api/v1").body["resources"]}
    assert {"pods/binding", "pods/status", "pods/eviction", "nodes/status", "serviceaccounts/token"} <= set(names)
    assert names["pods/eviction"]["group"] == "policy"
    apps = {one["name"]: one for one in api.get("/apis/apps/v1").body["resources"]}
    assert apps["deployments/scale"]["kind"] == "Scale"


def test_discovery_comes_aggregated_too(api: ApiClient) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    answer = api.get("/apis", accept=accept)

    assert answer.body["kind"] == "APIGroupDiscoveryList"
    apps = next(item for item in answer.body["items"] if item["metadata"]["name"] == "apps")
    resources = {one["resource"]: one for one in apps["versions"][0]["resources"]}
    assert resources["deployments"]["responseKind"]["kind"] == "Deployment"


def test_openapi_describes_fields_and_query_parameters(api: ApiClient) -> None:
    paths = api.get("/openapi/v3").body["paths"]
    document = api.get(paths["apis/apps/v1"]["serverRelativeURL"]).body

    schemas = document["components"]["schemas"]
    spec = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]
    assert spec["replicas"]["type"] == "integer"
    item = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    identity = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert item["patch"]["x-kubernetes-group-version-kind"] == identity
    names = {one.get("name") for one in item["patch"]["parameters"]}
    assert {"fieldValidation", "fieldManager", "force", "dryRun"} <= names


def test_unknown_paths_are_not_found(api: ApiClient) -> None:
    for path in ("/api/v1/nonsense", "/apis/nonsense.example/v1/things", "/apis/apps/v9/deployments", "/nonsense"):
        assert api.get(path).status == 404


# ---- workloads


def test_a_deployment_gets_its_defaults(api: ApiClient, deployments: str) -> None:
    body = deployment("a")
    del body["spec"]["replicas"]
    spec = api.create(deployments, body)["spec"]

    assert spec["replicas"] == 1
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["schedulerName"] == "default-scheduler"


def test_a_selector_must_match_the_template(api: ApiClient, deployments: str) -> None:
    body = deployment("a")
    body["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    answer = api.post(deployments, body)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "`selector` does not match template `labels`" in answer.message


def test_a_job_selects_its_pods_by_its_uid(api: ApiClient, namespace: str) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example/app:1"}]}}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    job = api.create(path, {"metadata": {"name": "a"}, "spec": {"template": template}})

    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}}
    assert job["spec"]["selector"] == selector
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (1, 1, 6)
    assert job["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "a"


def test_priority_classes_are_checked(api: ApiClient) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    assert api.post(path, {"metadata": {"name": "system-mine"}, "value": 1}).status == 422
    assert api.post(path, {"metadata": {"name": "too-high"}, "value": 1_000_000_001}).status == 422
    name = unique("class")
    created = api.create(path, {"metadata": {"name": name}, "value": 10})
    assert created["preemptionPolicy"] == "PreemptLowerPriority"
    assert api.patch(f"{path}/{name}", {"value": 11}).status == 422
    api.delete(f"{path}/{name}")


def test_storage_objects_get_their_defaults(api: ApiClient, namespace: str) -> None:
    name = unique("fast")
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    made = api.create(classes, {"metadata": {"name": name}, "provisioner": "example.com/fast"})
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}}}
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    claim = api.create(claims, {"metadata": {"name": "data"}, "spec": spec})
    assert (claim["spec"]["volumeMode"], claim["status"]["phase"]) == ("Filesystem", "Pending")
    refused = api.post(claims, {"metadata": {"name": "bad"}, "spec": {"accessModes": ["ReadWriteOnce"]}})
    assert refused.status == 422
    api.delete(f"{claims}/data")
    api.delete(f"{classes}/{name}")


# ---- leases and events


def test_a_lease_is_updated_only_from_its_latest_version(api: ApiClient, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-31T12:00:00.000000Z"}
    lease = api.create(path, {"metadata": {"name": "lock"}, "spec": spec})
    taken = api.put(f"{path}/lock", lease | {"spec": spec | {"holderIdentity": "b"}})
    late = api.put(f"{path}/lock", lease | {"spec": spec | {"holderIdentity": "c"}})

    assert taken.body["spec"]["holderIdentity"] == "b"
    assert (late.status, late.reason) == (409, "Conflict")


def test_an_event_is_seen_through_both_groups(api: ApiClient, namespace: str) -> None:
    event = {
        "metadata": {"name": "happened"},
        "eventTime": "2026-01-31T12:00:00.000000Z",
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-1",
        "action": "Testing",
        "reason": "Tested",
        "type": "Normal",
        "note": "it works",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": "a", "apiVersion": "v1"},
    }
    created = api.create(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)
    old = api.get(f"/api/v1/namespaces/{namespace}/events/happened").body

    assert created["note"] == "it works"
    assert (old["message"], old["involvedObject"]["name"]) == ("it works", "a")
    assert old["reportingComponent"] == "example.com/tester"
    query = {"fieldSelector": "involvedObject.name=a,reason=Tested"}
    found = api.get(f"/api/v1/namespaces/{namespace}/events", query=query).body["items"]
    assert [one["metadata"]["name"] for one in found] == ["happened"]


def test_events_are_selected_by_their_source_or_else_by_who_reported_them(api: ApiClient, namespace: str) -> None:
    events = f"/api/v1/namespaces/{namespace}/events"
    target = {"kind": "Pod", "name": "a", "namespace": namespace}
    old = {"involvedObject": target, "source": {"component": "kubelet"}, "reportingComponent": "example.com/other"}
    new = {"involvedObject": target, "reportingComponent": "example.com/reporter"}
    for name, event in (("old", old), ("new", new)):
        api.create(events, event | {"metadata": {"name": name}, "reason": "A", "type": "Normal"})

    def found(source: str) -> list[str]:
        items = api.get(events, query={"fieldSelector": f"source={source}"}).body["items"]
        return [item["metadata"]["name"] for item in items]

    assert found("kubelet") == ["old"]
    assert found("example.com/reporter") == ["new"]
    assert found("example.com/other") == []


def test_an_event_without_its_duties_is_invalid(api: ApiClient, namespace: str) -> None:
    body = {"metadata": {"name": "x"}, "regarding": {"namespace": namespace}, "type": "Normal", "reason": "R"}
    answer = api.post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)

    assert (answer.status, answer.reason) == (422, "Invalid")


# ---- access


def test_the_administrator_may_do_everything(api: ApiClient) -> None:
    attributes = {"verb": "delete", "resource": "nodes"}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body |= {"spec": {"resourceAttributes": attributes}}
    answer = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)

    assert answer.status == 201
    assert answer.body["status"]["allowed"] is True


def test_a_review_is_no_table(api: ApiClient) -> None:
    attributes = {"verb": "delete", "resource": "nodes"}
    accepted = "application/json;as=Table;v=v1;g=meta.k8s.io"
    path, body = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}

    assert api.post(path, body, accept=accepted).status == 406


def test_a_review_of_nothing_is_invalid(api: ApiClient) -> None:
    answer = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}})

    assert (answer.status, answer.reason) == (422, "Invalid")


def test_a_token_of_a_service_account_is_recognised(api: ApiClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    issued = api.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    token = issued.body["status"]["token"]
    review = api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})

    assert issued.status == 201
    status = review.body["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:default"
    wrong = api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "nonsense"}})
    assert not wrong.body["status"].get("authenticated")


def test_a_wrong_token_is_unauthorized(stranger: ApiClient) -> None:
    answer = stranger.get("/api/v1/pods")

    assert (answer.status, answer.reason) == (401, "Unauthorized")


# ---- custom resources


@pytest.fixture
def foos(api: ApiClient, namespace: str) -> Iterator[str]:
    group = f"{unique('g')}.example.com"
    schema: Json = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                    "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                    "word": {"type": "string", "pattern": "^[a-z]+$"},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "port": {"x-kubernetes-int-or-string": True},
                },
            },
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    names = {"plural": "foos", "kind": "Foo", "singular": "foo", "shortNames": ["fo"]}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    api.create(CRDS, body | {"metadata": {"name": f"foos.{group}"}, "spec": spec})
    path = f"/apis/{group}/v1/namespaces/{namespace}/foos"
    wait_until(lambda: api.get(path).status == 200, what="the resource served")
    yield path
    api.delete(f"{CRDS}/foos.{group}")


def foo(path: str, name: str, **spec: object) -> Json:
    return {"apiVersion": "/".join(path.split("/")[2:4]), "kind": "Foo", "metadata": {"name": name}, "spec": spec}


def test_a_definition_is_established(api: ApiClient, foos: str) -> None:
    group = foos.split("/")[2]
    definition = api.get(f"{CRDS}/foos.{group}").body
    conditions = {one["type"]: one["status"] for one in definition["status"]["conditions"]}

    assert (conditions["NamesAccepted"], conditions["Established"]) == ("True", "True")
    assert definition["status"]["acceptedNames"]["kind"] == "Foo"
    assert definition["status"]["storedVersions"] == ["v1"]


def test_custom_objects_are_pruned_and_defaulted(api: ApiClient, foos: str) -> None:
    created = api.create(foos, foo(foos, "a", size=3, nonsense=1, free={"any": {"thing": 1}}))

    assert created["spec"] == {"size": 3, "color": "red", "free": {"any": {"thing": 1}}}
    assert created["metadata"]["generation"] == 1


def test_stored_objects_are_read_with_the_schema_as_it_is_now(api: ApiClient, foos: str) -> None:
    created = api.create(foos, foo(foos, "a", size=3, word="kept"))
    properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
    change = [
        {"op": "add", "path": f"{properties}/shape", "value": {"type": "string", "default": "round"}},
        {"op": "remove", "path": f"{properties}/color"},
    ]
    assert api.patch(f"{CRDS}/foos.{foos.split('/')[2]}", change, JSON_PATCH).status == 200
    wait_until(lambda: "shape" in api.get(f"{foos}/a").body["spec"], what="the new default filled in")
    read, listed = api.get(f"{foos}/a").body, api.get(foos).body["items"][0]
    with api.watch(foos, resourceVersion="0") as watch:
        watched = watch.next_object()["object"]

    assert read["spec"] == listed["spec"] == watched["spec"] == {"size": 3, "word": "kept", "shape": "round"}
    assert read["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"size": "big"}, 'spec.size: Invalid value: "string"'),
        ({"size": 11}, "should be less than or equal to 10"),
        ({}, "spec.size: Required value"),
        ({"size": 1, "color": "green"}, 'spec.color: Unsupported value: "green"'),
        ({"size": 1, "word": "UPPER"}, "should match '^[a-z]+$'"),
        ({"size": 1, "port": True}, "spec.port"),
    ],
)
def test_custom_objects_are_validated(api: ApiClient, foos: str, spec: Json, expected: str) -> None:
    answer = api.post(foos, foo(foos, "a", **spec))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert expected in answer.message


def test_custom_objects_have_a_status_of_their_own(api: ApiClient, foos: str) -> None:
    api.create(foos, foo(foos, "a", size=1) | {"status": {"ready": True}})
    assert "status" not in api.get(f"{foos}/a").body
    answer = api.patch(f"{foos}/a/status", {"status": {"ready": True}, "spec": {"size": 5}})

    assert answer.body["status"] == {"ready": True}
    assert answer.body["spec"]["size"] == 1
    assert answer.body["metadata"]["generation"] == 1


def test_custom_objects_need_a_version_to_be_updated(api: ApiClient, foos: str) -> None:
    created = api.create(foos, foo(foos, "a", size=1))
    blind = api.put(f"{foos}/a", foo(foos, "a", size=2))

    assert blind.status == 422
    assert "metadata.resourceVersion: Invalid value: 0" in blind.message
    body = foo(foos, "a", size=2)
    body["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    changed = api.put(f"{foos}/a", body)
    assert changed.body["metadata"]["generation"] == 2


def test_custom_objects_can_be_applied_but_not_patched_strategically(api: ApiClient, foos: str) -> None:
    applied = api.apply(f"{foos}/a", foo(foos, "a", size=1), "alice")
    assert applied.status == 201
    refused = api.patch(f"{foos}/a", {}, "application/strategic-merge-patch+json")
    assert refused.status == 415
    conflict = api.apply(f"{foos}/a", foo(foos, "a", size=2), "bob")
    assert conflict.message == 'Apply failed with 1 conflict: conflict with "alice": .spec.size'


def test_custom_objects_are_shown_with_their_columns(api: ApiClient, foos: str) -> None:
    api.create(foos, foo(foos, "a", size=4))
    answer = api.get(foos, accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    assert [column["name"] for column in answer.body["columnDefinitions"]] == ["Name", "Size"]
    assert answer.body["rows"][0]["cells"] == ["a", 4]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"versions": []}, "spec.versions"),
        ({"names": {"plural": "bars"}}, "spec.names.kind"),
    ],
)
def test_a_bad_definition_is_invalid(api: ApiClient, change: Json, expected: str) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "bars", "kind": "Bar"}
    spec: Json = {"group": "bad.example.com", "scope": "Cluster", "names": names, "versions": [version]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    answer = api.post(CRDS, body | {"metadata": {"name": "bars.bad.example.com"}, "spec": spec | change})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert expected in answer.message
