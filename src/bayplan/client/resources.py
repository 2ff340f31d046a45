"""A client for any Kubernetes resource as JSON, which plugins use for their own objects.

`ResourceClient` turns verbs into requests and answers into dicts or into the caller's Struct type. Paths are built from
checked segments, so no name can lead to another object. It is for occasional calls; what a plugin reads often it should
watch through a `Reflector`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec

from bayplan.client.errors import AlreadyExists, InvalidResponse, NoAnswer, NotFound, api_error
from bayplan.client.retry import RetryingSender, RetryPolicy, WriteRequest
from bayplan.client.transport import JSON, MERGE_PATCH, Response, Transport

JsonObject: TypeAlias = dict[str, Any]

_ONCE = RetryPolicy(is_repeatable=False)
_REPEATABLE = RetryPolicy()
_PLAIN_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class ResourceType:
    """Where the API serves a resource. The core group is the empty string."""

    group: str
    version: str
    plural: str
    is_namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The collection's path, or an object's. An empty namespace means all of them."""
        root = f"/apis/{segment(self.group)}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and not self.is_namespaced:
            raise ValueError(f"{self.plural} are not namespaced: `{namespace}`")
        if name and self.is_namespaced and not namespace:
            raise ValueError(f"the namespace of {self.plural} `{name}` is missing")
        parts = [root, *(["namespaces", segment(namespace)] if namespace else []), self.plural]
        parts += [segment(name)] if name else []
        parts += [subresource] if subresource else []
        return "/".join(parts)


def segment(name: str) -> str:
    """`name` as one segment of a path, whatever it holds."""
    if _PLAIN_SEGMENT.fullmatch(name):
        return name
    if name in ("", ".", ".."):
        raise ValueError(f"`{name}` cannot be the name of an object")
    return quote(name, safe="")


class ResourceClient:
    """The verbs on one resource. Every method raises an `ApiError` or `NoAnswer` of `errors`."""

    def __init__(self, resource: ResourceType, transport: Transport, sender: RetryingSender) -> None:
        self._resource = resource
        self._transport = transport
        self._sender = sender

    @property
    def resource(self) -> ResourceType:
        return self._resource

    async def get(self, name: str, *, namespace: str = "") -> JsonObject:
        """Read an object. Any other than the one that was asked for is `NoAnswer`: decisions rest on what is read."""
        path = self._resource.path(namespace, name)
        found = await self._send(WriteRequest(method="GET", path=path), _REPEATABLE)
        metadata = found.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") != name:
            raise NoAnswer(f"the answer to GET {path} is not about this object", may_have_been_processed=True)
        return found

    async def list(
        self, *, namespace: str = "", label_selector: str = "", field_selector: str = "", page_size: int = 500
    ) -> AsyncIterator[JsonObject]:
        """All objects, page by page. A list that expires half-way raises `Gone`: begin again."""
        query = {"labelSelector": label_selector, "fieldSelector": field_selector, "limit": str(page_size)}
        query = {name: value for name, value in query.items() if value}
        while True:
            response = await self._transport.request("GET", self._resource.path(namespace), query=query)
            if response.status != 200:
                raise api_error(response.status, response.body, headers=response.headers)
            page = _decoded(response)
            for item in page.get("items") or []:
                yield item
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            query["continue"] = token

    async def create(self, body: Mapping[str, object], *, namespace: str = "") -> JsonObject:
        """Create once. After a failure with unknown outcome the error is raised: the caller decides."""
        request = WriteRequest(method="POST", path=self._resource.path(namespace), body=msgspec.json.encode(body))
        return await self._send(request, _ONCE)

    async def ensure(self, body: Mapping[str, object], *, namespace: str = "") -> JsonObject | None:
        """Create unless an object of that name exists; None when it does. Safe to repeat, so it is repeated."""
        request = WriteRequest(method="POST", path=self._resource.path(namespace), body=msgspec.json.encode(body))
        try:
            return await self._send(request, _REPEATABLE)
        except AlreadyExists:
            return None

    async def update(
        self, name: str, body: Mapping[str, object], *, namespace: str = "", subresource: str = ""
    ) -> JsonObject:
        """Replace the object. With a resourceVersion in `body`, an object changed meanwhile raises `Conflict`."""
        path = self._resource.path(namespace, name, subresource)
        return await self._send(WriteRequest(method="PUT", path=path, body=msgspec.json.encode(body)), _REPEATABLE)

    async def patch(
        self,
        name: str,
        patch: Mapping[str, object] | Sequence[object],
        *,
        namespace: str = "",
        subresource: str = "",
        content_type: str = MERGE_PATCH,
    ) -> JsonObject:
        """Patch the object. A JSON patch is not repeated after an unclear failure: its steps may not be repeatable."""
        path = self._resource.path(namespace, name, subresource)
        request = WriteRequest(method="PATCH", path=path, body=msgspec.json.encode(patch), content_type=content_type)
        return await self._send(request, _REPEATABLE if isinstance(patch, Mapping) else _ONCE)

    async def delete(
        self, name: str, *, namespace: str = "", uid: str = "", grace_seconds: int | None = None
    ) -> JsonObject | None:
        """Delete the object, or, with `uid`, only that very one. None when a repeated attempt found it gone."""
        request = WriteRequest(
            method="DELETE", path=self._resource.path(namespace, name), body=delete_options(uid, grace_seconds)
        )
        outcome = await self._sender.send(request, _REPEATABLE)
        if isinstance(outcome.error, NotFound) and outcome.is_retry_of_unknown:
            return None
        if outcome.error is not None:
            raise outcome.error
        assert outcome.response is not None
        return _decoded(outcome.response)

    async def _send(self, request: WriteRequest, policy: RetryPolicy) -> JsonObject:
        outcome = await self._sender.send(request, policy)
        if outcome.error is not None:
            raise outcome.error
        assert outcome.response is not None
        return _decoded(outcome.response)


def delete_options(uid: str = "", grace_seconds: int | None = None) -> bytes | None:
    options: JsonObject = {}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if not options:
        return None
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **options})


def _decoded(response: Response) -> JsonObject:
    try:
        return msgspec.json.decode(response.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidResponse(f"the answer is not {JSON}: {error}") from error
