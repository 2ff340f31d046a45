"""A plain synchronous client for the suite: one request, one answer, watches as a list of events."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

Json = dict[str, Any]
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_TIMEOUT_SECONDS = 90.0
_names = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


class Watch:
    """An open watch; `next` gives one event, and fails when none comes in time."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def next(self) -> Json:
        line = self._response.readline()
        assert line, "the watch ended"
        event: Json = json.loads(line)
        return event

    def next_object(self) -> Json:
        """The next event that is no bookmark."""
        while (event := self.next())["type"] == "BOOKMARK":
            continue
        return event

    def rest(self) -> list[Json]:
        """Everything up to the end of the stream."""
        return [json.loads(line) for line in self._response]


class ApiClient:
    """Talks to one API server as its administrator."""

    def __init__(
        self, url: str, authority: str, *, token: str = "", certificate: tuple[str, str] | None = None
    ) -> None:
        self._url = url
        self._authority = authority
        self._address = urlsplit(url).netloc
        self._context = ssl.create_default_context(cadata=authority)
        if certificate is not None:
            self._context.load_cert_chain(*certificate)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection = self._connect()

    def with_token(self, token: str) -> ApiClient:
        """Another client of the same server, known by this token alone."""
        return ApiClient(self._url, self._authority, token=token)

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, timeout=_TIMEOUT_SECONDS, context=self._context)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {"Accept": accept, "User-Agent": "conformance/1.0", **self._headers, **(headers or {})}
        payload = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if payload is not None:
            sent["Content-Type"] = content_type
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            self._connection.request(method, target, body=payload, headers=sent)
            response = self._connection.getresponse()
            content = response.read()
        except (http.client.HTTPException, OSError):
            self._connection.close()
            self._connection = self._connect()
            raise
        found = {name.lower(): value for name, value in response.getheaders()}
        if found.get("content-type") == "application/vnd.kubernetes.protobuf":
            return Answer(response.status, found, content)
        is_json = content[:1] in (b"{", b"[")
        return Answer(response.status, found, json.loads(content) if is_json else content.decode())

    def get(self, path: str, **options: Any) -> Answer:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Answer:
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Answer:
        return self.request("PUT", path, body, **options)

    def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH, **options: Any) -> Answer:
        return self.request("PATCH", path, body, content_type=content_type, **options)

    def delete(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.request("DELETE", path, body, **options)

    def apply(self, path: str, body: Json, manager: str, *, force: bool = False) -> Answer:
        query = {"fieldManager": manager} | ({"force": "true"} if force else {})
        return self.request("PATCH", path, body, content_type=APPLY_PATCH, query=query)

    def create(self, path: str, body: Json) -> Json:
        """Create and expect success."""
        answer = self.post(path, body)
        assert answer.status == 201, answer.body
        created: Json = answer.body
        return created

    @contextlib.contextmanager
    def watch(self, path: str, **query: str) -> Iterator[Watch]:
        connection = self._connect()
        target = f"{path}?{urlencode({'watch': 'true', 'timeoutSeconds': '15', **query})}"
        connection.request("GET", target, headers={"Accept": "application/json", **self._headers})
        response = connection.getresponse()
        try:
            assert response.status == 200, response.read()
            yield Watch(response)
        finally:
            connection.close()


def unique(prefix: str) -> str:
    return f"{prefix}-{next(_names)}"


def pod(name: str = "", **spec: Any) -> Json:
    metadata: Json = {"name": name} if name else {"generateName": "pod-"}
    container = {"name": "main", "image": "example/app:1"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def config_map(name: str, data: Json | None = None, **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def deployment(name: str, replicas: int = 1) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example/app:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def node(name: str, **metadata: Any) -> Json:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def binding(name: str, target: str, **metadata: Any) -> Json:
    reference = {"apiVersion": "v1", "kind": "Node", "name": target}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": reference}
