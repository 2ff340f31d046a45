"""Ten thousand hostile requests: each gets a Status in the 400s or succeeds, and the store stays consistent."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

from bayplan.apiserver.bootstrap import bootstrap
from bayplan.apiserver.protocol.encoding import decode_object, encode
from bayplan.apiserver.protocol.exchange import Request
from bayplan.apiserver.server.api import Api, ApiSettings

REQUESTS = 10_000
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"]
CONTENT_TYPES = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/html",
    "",
    ";;;",
]
PATHS = [
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/a",
    "/api/v1/namespaces/default/pods/a/binding",
    "/api/v1/namespaces/default/pods/a/eviction",
    "/api/v1/namespaces/default/pods/a/status",
    "/api/v1/namespaces/default/pods/a/log",
    "/api/v1/nodes",
    "/api/v1/nodes/n",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/finalize",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/secrets/a",
    "/api/v1/namespaces/default/serviceaccounts/default/token",
    "/api/v1/namespaces/default/bindings",
    "/api/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/default/events/a",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/deployments/a",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets/a",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com",
    "/apis/example.com/v1/namespaces/default/foos",
    "/apis/example.com/v1/namespaces/default/foos/a",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases/a",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/a",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/openapi/v3/apis/apps/v1",
    "/openapi/v2",
    "/api",
    "/version",
    "/",
    "",
    "/../../etc/passwd",
    "/api/v1/namespaces/../nodes",
    "/api/v1/namespaces/%2e%2e/pods",
    "/api/v1/namespaces/default/pods/a%2Fb",
    "/api/v1/namespaces/default/pods/%00",
    "/api/v1//pods",
    "/apis/apps",
    "/a" * 40,
]
QUERY_NAMES = [
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "propagationPolicy",
    "timeoutSeconds",
    "sendInitialEvents",
    "container",
]
ODD_TEXTS = [
    "",
    "a",
    "A_B",
    "x" * 300,
    "a b",
    "\0",
    "é",
    "🦄",
    "..",
    "-1",
    "0",
    "99999999999999999999",
    "1e400",
    "true",
    "All",
    "Strict",
    "Exact",
    "a=b,c in (d",
    "!(",
    "spec.nodeName=",
    "metadata.name!=a",
    "eyJ2IjoieCJ9",
    "500m",
    "1Zi",
]
FIELDS = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "resourceVersion",
    "uid",
    "generateName",
    "containers",
    "resources",
    "requests",
    "replicas",
    "selector",
    "template",
    "versions",
    "schema",
    "openAPIV3Schema",
    "properties",
    "type",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "op",
    "path",
    "value",
    "from",
    "target",
    "tolerations",
    "topologySpreadConstraints",
    "affinity",
    "data",
    "group",
    "names",
    "plural",
    "scope",
    "deleteOptions",
    "preconditions",
    "gracePeriodSeconds",
    "token",
    "rules",
]
SEEDS: list[Any] = [
    {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    {"metadata": {"name": "a"}, "data": {"k": "v"}},
    {"metadata": {"name": "a"}, "target": {"name": "n"}},
    {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}},
    [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
    [{"op": "remove", "path": "/spec/containers/0"}],
    {"metadata": {"labels": {"x": None}}},
    {
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    },
    {
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    },
    {"metadata": {"name": "a"}, "value": 5},
    {"spec": {"replicas": 3}},
    {"spec": {"token": "x"}},
    {"spec": {"resourceAttributes": {"verb": "get"}}},
]


class Fuzzer:
    """Makes requests from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> Request:
        pick = self._random.choice
        path = pick(PATHS)
        method = self._method(path)
        query = {pick(QUERY_NAMES): pick(ODD_TEXTS) for _ in range(self._random.choice([0, 0, 0, 1, 2]))}
        headers = {"authorization": "Bearer t", "content-type": self._content_type(method)}
        if self._random.random() < 0.1:
            headers["accept"] = pick(["text/html", "application/json;as=Table;v=v1;g=meta.k8s.io", ",;,", "*/*"])
        return Request(method, path, query, headers, self._body())

    def _method(self, path: str) -> str:
        """Mostly one that the path takes, so that requests get past the door."""
        if self._random.random() < 0.1:
            return self._random.choice(METHODS)
        is_action = path.endswith(("/binding", "/eviction", "/token"))
        if is_action or path.rpartition("/")[2].endswith("s"):
            return "POST" if self._random.random() < 0.9 else self._random.choice(["GET", "DELETE"])
        return self._random.choice(["GET", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "PATCH", "DELETE"])

    def _content_type(self, method: str) -> str:
        if self._random.random() < 0.2:
            return self._random.choice(CONTENT_TYPES)
        return self._random.choice(CONTENT_TYPES[2:6]) if method == "PATCH" else "application/json"

    def _body(self) -> bytes:
        roll = self._random.random()
        if roll < 0.1:
            return self._random.randbytes(self._random.randrange(40))
        if roll < 0.2:
            body = encode(self._random.choice(SEEDS))
            cut = self._random.randrange(len(body))
            return body[:cut]
        if roll < 0.22:
            return b"[" * 5000
        if roll < 0.24:
            return b'{"a":' * 3000
        if roll < 0.26:
            return b"a: &a [*a]\n" + b"b: &b [x,x]\n"
        if roll < 0.27:
            return b'{"metadata":{"name":"a","annotations":{"x":"' + b"y" * 300_000 + b'"}}}'
        return encode(self._mutated(self._random.choice(SEEDS), 0))

    def _mutated(self, value: Any, depth: int) -> Any:
        if self._random.random() < 0.08:
            return self._anything(depth)
        if isinstance(value, dict):
            changed = {name: self._mutated(inner, depth + 1) for name, inner in value.items()}
            if self._random.random() < 0.15:
                changed[self._random.choice(FIELDS)] = self._anything(depth)
            return changed
        if isinstance(value, list):
            return [self._mutated(inner, depth + 1) for inner in value]
        return value

    def _anything(self, depth: int) -> Any:
        roll = self._random.randrange(9)
        if roll == 0:
            return self._random.choice(ODD_TEXTS)
        if roll == 1:
            return self._random.choice([0, -1, 1, 2**31, 2**63, -(2**63), 10**18])
        if roll == 2:
            return self._random.choice([True, False, None])
        if roll == 3:
            return self._random.choice([0.5, 1.0, -1e300])
        if depth > 4 or roll == 4:
            return [] if roll % 2 else {}
        if roll < 7:
            return [self._anything(depth + 1) for _ in range(self._random.randrange(3))]
        return {self._random.choice(FIELDS): self._anything(depth + 1) for _ in range(self._random.randrange(4))}


GOOD = [
    ("/api/v1/namespaces/default/pods", SEEDS[0]),
    ("/api/v1/namespaces/default/configmaps", SEEDS[1]),
    ("/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}}),
    ("/api/v1/nodes", SEEDS[3]),
    ("/apis/apps/v1/namespaces/default/deployments", SEEDS[7]),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", SEEDS[8]),
    ("/apis/example.com/v1/namespaces/default/foos", {"metadata": {"name": "a"}}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"metadata": {"name": "a"}, "spec": {}}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "a"}, "spec": {}}),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "a"}, "rules": []}),
]


def put_targets_in_place(api: Api) -> None:
    """Objects for hostile updates to hit; those that still exist are left as they are."""
    for path, document in GOOD:
        headers = {"authorization": "Bearer t", "content-type": "application/json"}
        assert api.handle(Request("POST", path, {}, headers, encode(document))).status < 500


def check_consistency(api: Api) -> None:
    """Every stored object is what its key, its facts and its revision say it is."""
    revisions: set[int] = set()
    for resource in api.store.resources():
        listing = api.store.listing(resource)
        assert [entry.key for entry in listing.entries] == sorted(entry.key for entry in listing.entries)
        for entry in listing.entries:
            document = decode_object(entry.raw)
            metadata = document["metadata"]
            assert (metadata.get("namespace", ""), metadata["name"]) == entry.key
            assert metadata["resourceVersion"] == str(entry.revision)
            assert metadata["uid"] == entry.uid
            assert (metadata.get("labels") or {}) == entry.labels
            assert entry.revision <= api.store.revision
            assert entry.revision not in revisions
            revisions.add(entry.revision)


@pytest.mark.parametrize("seed", [1, 2])
async def test_hostile_requests_get_statuses_and_the_store_stays_consistent(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    api = Api(settings=ApiSettings(token="t", seed=seed))
    bootstrap(api)
    fuzzer = Fuzzer(seed)
    counts: dict[int, int] = {}

    with caplog.at_level(logging.WARNING):
        for number in range(REQUESTS // 2):
            if number % 25 == 0:
                put_targets_in_place(api)
            request = fuzzer.request()
            answer = api.handle(request)
            counts[answer.status] = counts.get(answer.status, 0) + 1
            if answer.stream is not None:
                answer.stream.close()
            assert answer.status < 500 or answer.status == 504, (request, answer.body)
            if answer.status >= 400:
                status = decode_object(answer.body)
                assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", answer.status)

    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert counts.get(201, 0) > 20, "the fuzzer must also get through, or it tests nothing"
    check_consistency(api)
