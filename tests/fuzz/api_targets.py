"""Targets for what clients send to the embedded API server: objects, definitions, and objects of such definitions."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping
from random import Random
from typing import Any

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.exchange import Request
from bayplan.observe.clock import VirtualClock
from tests.e2e.objects import node, pod
from tests.fuzz.file_targets import Failed
from tests.fuzz.mutation import mutated_bytes, mutated_document

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_THINGS = "/apis/example.com/v1/namespaces/default/things"
_UNDECLARED = b"failed to create typed patch object"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                "s": {"type": "string", "pattern": "^a+$", "enum": ["a", "aa"]},
                "l": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                "q": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            },
            "required": ["n"],
        }
    },
}
_THING: Mapping[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "t", "labels": {"a": "b"}},
    "spec": {"n": 1, "s": "a", "l": ["x"], "q": 5},
}


def _definition(schema: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"plural": "things", "kind": "Thing", "singular": "thing", "shortNames": ["th"]}
    versions = [{**version, "schema": {"openAPIV3Schema": schema}}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }


class Server:
    """An embedded API server that is called in this process."""

    def __init__(self) -> None:
        logging.getLogger("bayplan.apiserver").setLevel(logging.CRITICAL)
        cluster = EmbeddedCluster(nodes=1, listen=False, clock=VirtualClock(), simulate=False)
        self._api, self._token = cluster.api, cluster.token
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        self.call("POST", "/api/v1/namespaces", json.dumps(namespace).encode())

    def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        query: Mapping[str, str] | None = None,
        *,
        media_type: str = "",
    ) -> int:
        """The status of the answer; 0 where kube-apiserver answers 500 itself, to an apply of undeclared fields."""
        kind = media_type or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        headers = {"content-type": kind, "accept": "application/json", "authorization": f"Bearer {self._token}"}
        answer = self._api.handle(Request(method, path, dict(query or {}), headers, body))
        return 0 if answer.status == 500 and _UNDECLARED in answer.body else answer.status


class ApiRequests:
    """Objects and definitions as clients may send them to the embedded API server: never an answer of 500."""

    def __init__(self) -> None:
        self._server = Server()
        pods, definition = "/api/v1/namespaces/default/pods", _definition(_SCHEMA)
        self._seeds = [(pods, pod("p", ports=[80])), ("/api/v1/nodes", node("n"))]
        self._seeds += [(_CRDS, definition), (_THINGS, dict(_THING))]
        self._server.call("POST", _CRDS, json.dumps(definition).encode())

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        path, seed = random.choice(self._seeds)
        body = json.dumps(mutated_document(seed, random)).encode()
        if random.random() < 0.2:
            body = mutated_bytes(body, random)
        own = f"{path}/{seed['metadata']['name']}"
        if random.random() < 0.2:
            self._server.call("DELETE", own)
        else:
            self._server.call("POST", path, json.dumps(seed).encode())
        method, path = random.choice([("POST", path), ("PUT", own), ("PATCH", own)])
        if self._server.call(method, path, body) >= 500:
            raise Failed((method, path, body))
        return body


_KEY: Mapping[str, Any] = {"name": {"type": "string"}, "n": {"type": "integer", "format": "int32"}}
_RICH: Mapping[str, Any] = {
    "type": "object",
    "x-kubernetes-validations": [{"rule": "self.metadata.name != 'x'", "message": "no"}],
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.number < 9 || size(self.text) > 2", "messageExpression": "'at ' + self.text"},
                {"rule": "self.number >= oldSelf.number", "reason": "FieldValueForbidden", "fieldPath": ".number"},
            ],
            "properties": {
                "number": {"type": "number", "minimum": 1, "exclusiveMinimum": False, "multipleOf": 0.5},
                "text": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$", "default": "abc"},
                "when": {"type": "string", "format": "date-time", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "list": {
                    "type": "array",
                    "maxItems": 4,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": _KEY, "required": ["name"]},
                },
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 3},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "pod": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "one": {"type": "string", "oneOf": [{"enum": ["a"]}, {"not": {"enum": ["a"]}}]},
            },
            "required": ["number"],
        }
    },
}
_RICH_THING: Mapping[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "t"},
    "spec": {
        "number": 2.5,
        "text": "abc",
        "when": "2026-01-01T00:00:00Z",
        "port": "http",
        "list": [{"name": "a", "n": 1}, {"name": "b"}],
        "set": ["x", "y"],
        "map": {"a": 1},
        "open": {"any": [1, {}]},
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        "one": "a",
    },
}


_RULES: Mapping[str, list[Any]] = {
    "type": ["string", "integer", "number", "boolean", "array", "object"],
    "format": ["int32", "int64", "double", "byte", "date-time", "duration", "ipv4", "email", "uuid", "unknown"],
    "pattern": ["(a+)+$", "[", "\\pL", "(?i)a", "a{2,1000}", "^$", "\\d*"],
    "enum": [["a"], [1, "1", None], []],
    "default": ["abc", 1, 2.5, {}, [], None, {"name": "x"}],
    "minimum": [0, 2.5, 2**63],
    "maximum": [-1, 9],
    "multipleOf": [2, 0.1],
    "minLength": [2, 400],
    "maxItems": [0, 1],
    "minProperties": [1],
    "nullable": [True],
    "uniqueItems": [False],
    "not": [{}, {"enum": ["a"]}, {"required": ["name"]}],
    "allOf": [[], [{"minimum": 3}], [{"properties": {"name": {"maxLength": 1}}}]],
    "x-kubernetes-map-type": ["atomic", "granular"],
    "x-kubernetes-list-type": ["set", "map", "atomic"],
    "x-kubernetes-preserve-unknown-fields": [True],
    "x-kubernetes-validations": [[{"rule": rule}] for rule in ("self == oldSelf", "self.size() < 3", "1 / 0 > 1", "a")],
}
"""Rules that may be added to a field, fitting or not."""


def _mutated_schema(schema: Any, random: Random) -> Any:
    """Mostly one field alone, so that many a schema is taken."""
    if random.random() < 0.2:
        return mutated_document(schema, random)
    made = copy.deepcopy(schema)
    fields = made["properties"]["spec"]["properties"]
    for _ in range(random.choice([1, 1, 2, 3])):
        name, fate = random.choice(list(fields)), random.random()
        if fate < 0.2:
            fields[name] = mutated_document(fields[name], random)
        elif fate < 0.3:
            fields[name] = random.choice(list(fields.values()))
        elif isinstance(fields[name], dict):
            rule = random.choice(list(_RULES))
            fields[name][rule] = random.choice(_RULES[rule])
    return made


class Schemas:
    """Schemas of definitions: each is refused, or all objects of it are taken or refused, at first and when changed,
    and the server can describe it; never an answer of 500."""

    def __init__(self) -> None:
        self._server = Server()

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        schema = _mutated_schema(random.choice([_SCHEMA, _RICH]), random)
        given: list[tuple[str, str, Any]] = [("POST", _CRDS, _definition(schema))]
        own, first = f"{_THINGS}/t", random.choice([_THING, _RICH_THING])
        for seed in (first, mutated_document(first, random)):
            given += [("POST", _THINGS, seed), ("PUT", own, mutated_document(seed, random)), ("DELETE", own, None)]
        given += [("POST", _THINGS, first)]
        given += [("PATCH", own, mutated_document(first, random)), ("GET", _THINGS, None)]
        given += [("GET", "/openapi/v3/apis/example.com/v1", None), ("GET", "/openapi/v2", None)]
        given += [("DELETE", own, None), ("DELETE", f"{_CRDS}/things.example.com", None)]
        for method, path, document in given:
            body = b"" if document is None else json.dumps(document).encode()
            if self._server.call(method, path, body) >= 500:
                raise Failed((schema, method, path, body))
        return schema
