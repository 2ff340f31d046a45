"""Targets for bodies in YAML, patches of every type, and what admission webhooks answer to the embedded API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from random import Random
from typing import Any

import yaml

from bayplan.api.decode import InputError
from bayplan.apiserver.objects.webhooks import ReviewFailed, _denial, _patched
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.server.webhook_calls import _response
from bayplan.config.errors import ConfigError
from bayplan.config.own import OWN_API_VERSION, OWN_KIND
from bayplan.config.own_loading import load_own_config
from bayplan.sim.compare import parse_condition
from tests.e2e.objects import pod
from tests.fuzz.api_targets import Server
from tests.fuzz.file_targets import Failed
from tests.fuzz.mutation import mutated_bytes, mutated_document, mutated_text

_PODS = "/api/v1/namespaces/default/pods"
_POD: Mapping[str, Any] = pod("p", ports=[80], labels={"a": "b"}) | {"apiVersion": "v1", "kind": "Pod"}
_NESTING = (b"- ", b"[", b"{a: ", b"? ", b"a:\n ", b"&a [*a, ")


class Bodies:
    """Objects in YAML, and patches: never an answer of 500."""

    _OPERATIONS: tuple[Mapping[str, Any], ...] = (
        {"op": "add", "path": "/metadata/labels/x", "value": "y"},
        {"op": "copy", "from": "/spec", "path": "/metadata/annotations"},
        {"op": "copy", "from": "", "path": "/spec/containers/0"},
        {"op": "move", "from": "/spec/containers/0", "path": "/spec/containers/-"},
        {"op": "test", "path": "/metadata/name", "value": "p"},
        {"op": "remove", "path": "/spec/tolerations"},
    )
    _STRATEGIC: Mapping[str, Any] = {
        "metadata": {"$retainKeys": ["name"], "$deleteFromPrimitiveList/finalizers": ["a"], "labels": {"$patch": "x"}},
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}],
            "containers": [{"name": "c", "$patch": "delete"}, {"name": "d", "image": "i"}],
            "tolerations": [{"$patch": "replace"}],
        },
    }

    def __init__(self) -> None:
        self._server = Server()

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        if self._server.call("POST", _PODS, json.dumps(_POD).encode()) not in (201, 409):
            self._server.call("DELETE", f"{_PODS}/p", query={"gracePeriodSeconds": "0"})
        method, path, query = "PATCH", f"{_PODS}/p", {"fieldManager": "fuzz", "force": "true"}
        kind = random.choice(["application/yaml", "apply-patch+yaml", "json-patch+json", "strategic-merge-patch+json"])
        if kind == "application/yaml":
            method, path = random.choice([("POST", _PODS), ("PUT", path)])
        elif kind == "apply-patch+yaml" and random.random() < 0.3:
            query["fieldValidation"] = "Strict"
        body = self._body(kind, random)
        media_type = kind if "/" in kind else f"application/{kind}"
        if self._server.call(method, path, body, query, media_type=media_type) >= 500:
            raise Failed((method, path, kind, body))
        return body

    def _body(self, kind: str, random: Random) -> bytes:
        if kind == "json-patch+json":
            chosen = [random.choice(self._OPERATIONS) for _ in range(random.choice([1, 2, 40]))]
            return json.dumps(mutated_document(chosen, random)).encode()
        if kind == "strategic-merge-patch+json":
            return json.dumps(mutated_document(self._STRATEGIC, random)).encode()
        if random.random() < 0.1:
            return random.choice(_NESTING) * random.choice([10, 200, 100_000])
        text = yaml.safe_dump(mutated_document(_POD, random), allow_unicode=True).encode("utf-8", "replace")
        return mutated_bytes(text, random) if random.random() < 0.5 else text


class Reviews:
    """What admission webhooks answer: a response that counts, or a failed review."""

    _SEED: Mapping[str, Any] = {
        "response": {
            "uid": "u",
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(b'[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]').decode(),
            "status": {"code": 403, "message": "no", "reason": "Forbidden"},
            "warnings": ["w"],
        }
    }

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        given = json.dumps(mutated_document(self._SEED, random)).encode()
        if random.random() < 0.3:
            given = mutated_bytes(given, random)
        try:
            response = _response(given, "u")
            _denial({"name": "w"}, response)
            if response.get("patch"):
                _patched({"name": "w"}, dict(_POD), response)
        except (ReviewFailed, RequestRefused):
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


class Conditions:
    """`--fail-if` and `--accept`: a function of measures, or bad input."""

    _SEEDS = ("wait.p99 > 1.05 * base.wait.p99", 'allocated["example.com/gpu"] >= 0.5 and a == 0', "-1 < a / b")

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        given = mutated_text(random.choice(self._SEEDS), random)
        if random.random() < 0.05:
            given = random.choice(["(", "-", "a+", "not ", "9"]) * random.choice([100, 10_000]) + "1"
        measures = {"wait.p99": 3.0, "pods.pending": 0.0, "a": 1.0, "b": 0.0, "allocated.example.com/gpu": 0.5}
        try:
            parse_condition(given)(measures, measures)
        except InputError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


class OwnConfig:
    """A BayplanConfiguration."""

    _SEED: Mapping[str, Any] = {
        "apiVersion": OWN_API_VERSION,
        "kind": OWN_KIND,
        "plugins": ["a.py"],
        "decisions": {"file": "d.jsonl", "memory": "1Gi", "filesKept": 3},
        "watchdog": {"noticeAfter": "1s", "endAfter": "0s"},
        "serving": {"connections": 5, "reviewPods": True},
    }

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        document = mutated_document(self._SEED, random)
        text = yaml.safe_dump(document) if random.random() < 0.5 else json.dumps(document)
        given = mutated_text(text, random) if random.random() < 0.5 else text
        try:
            load_own_config(given)
        except ConfigError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given
