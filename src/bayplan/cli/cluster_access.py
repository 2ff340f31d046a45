"""Access to a cluster for commands: connection, discovery of resources, namespace."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import msgspec

from bayplan.api.suggest import with_suggestion
from bayplan.cli.options import path_of
from bayplan.cli.output import BAD_INPUT, CommandError
from bayplan.client.access import ClusterAccess
from bayplan.client.errors import ClientError, KubeconfigError, NoAnswer, api_error
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.transport import Response
from bayplan.observe.clock import SystemClock

__all__ = ["ClusterClient", "Discovered", "connect"]


_COLON = ":"
"""Names of roles have it."""


class Discovered(msgspec.Struct):
    """A resource that the API server offers."""

    api_version: str
    plural: str
    kind: str
    is_namespaced: bool
    names: frozenset[str]
    """All names of the resource, in lower case."""

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"

    def path(self, namespace: str, name: str = "") -> str:
        inside = f"/namespaces/{quote(namespace, safe='')}" if self.is_namespaced and namespace else ""
        return f"{self.root}{inside}/{self.plural}{f'/{quote(name, safe=_COLON)}' if name else ''}"


class ClusterClient:
    def __init__(self, transport: HttpTransport, namespace: str) -> None:
        self._transport = transport
        self.namespace = namespace
        self._resources: list[Discovered] | None = None

    async def request(self, method: str, path: str, **options: Any) -> Response:
        """Send and expect success; anything else is raised as the matching ApiError."""
        response = await self._transport.request(method, path, **options)
        if response.status >= 300:
            raise api_error(response.status, response.body, headers=response.headers)
        return response

    async def changes(self, path: str, query: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
        """The events of a watch, until the server ends it."""
        rest = b""
        async with self._transport.stream(path, query=query) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield msgspec.json.decode(line, type=dict[str, Any])

    async def resources(self) -> list[Discovered]:
        if self._resources is None:
            groups = await self._json("/apis")
            versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups.get("groups", []))]
            self._resources = [found for version in versions for found in await self._offered(version)]
        return self._resources

    async def _offered(self, version: str) -> list[Discovered]:
        listed = await self._json(f"/apis/{version}" if "/" in version else f"/api/{version}")
        return [
            Discovered(
                api_version=version,
                plural=entry["name"],
                kind=entry["kind"],
                is_namespaced=entry["namespaced"],
                names=frozenset(
                    {entry["name"], entry.get("singularName", ""), entry["kind"].lower(), *entry.get("shortNames", ())}
                ),
            )
            for entry in listed.get("resources", [])
            if "/" not in entry["name"]
        ]

    async def _json(self, path: str) -> dict[str, Any]:
        return msgspec.json.decode((await self.request("GET", path)).body, type=dict[str, Any])

    async def named(self, word: str) -> Discovered:
        """The resource with this plural, singular, kind or short name."""
        wanted, _, group = word.lower().partition(".")
        for resource in await self.resources():
            in_group = not group or resource.api_version.split("/")[0] == group
            if wanted in resource.names and in_group:
                return resource
        known = sorted({resource.plural for resource in await self.resources()})
        problem = with_suggestion(f"the cluster has no resource `{word}`", wanted, known)
        raise CommandError(problem, hint="`kubectl api-resources` lists them; a custom resource needs its definition")

    async def of_kind(self, api_version: str, kind: str) -> Discovered:
        for resource in await self.resources():
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        for resource in await self._offered_if_any(api_version):
            if resource.kind == kind:
                return resource
        raise CommandError(
            f"the cluster has no kind `{kind}` in `{api_version}`",
            hint="check apiVersion and kind, and apply the CustomResourceDefinition first if it is a custom resource",
        )

    async def _offered_if_any(self, version: str) -> list[Discovered]:
        try:
            return await self._offered(version)
        except ClientError:
            return []

    def forget_resources(self) -> None:
        """Discard the discovered resources: a definition was added or removed."""
        self._resources = None


@asynccontextmanager
async def connect(kubeconfig: str | None, context: str | None, namespace: str | None) -> AsyncIterator[ClusterClient]:
    """A cluster, closed afterwards. What goes wrong on the way is a CommandError with a hint."""
    server = ""
    try:
        access = _access(kubeconfig, context)
        server = access.server
        transport = HttpTransport(access, draw=random.Random().random)
        try:
            yield ClusterClient(transport, namespace or access.namespace)
        finally:
            await transport.close()
    except ClientError as error:
        status = BAD_INPUT if isinstance(error, KubeconfigError) else 1
        what = str(error).split("\nhint:")[0]
        if isinstance(error, NoAnswer) and server not in what:
            what = f"{server}: {what}"
        raise CommandError(what, hint=getattr(error, "hint", ""), status=status) from error


def _access(kubeconfig: str | None, context: str | None) -> ClusterAccess:
    path = path_of(kubeconfig or None)
    return find_access(clock=SystemClock(), environment=dict(os.environ), kubeconfig=path, context=context)
