"""`bayplan apply` and `delete`: with `get`, the few verbs that people without kubectl need, against any cluster."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import msgspec

from bayplan.cli.cluster_access import ClusterClient, Discovered, connect
from bayplan.cli.options import Names, option
from bayplan.cli.output import CommandError

__all__ = ["Context", "Kubeconfig", "Namespace", "apply", "delete"]

_APPLY = "application/apply-patch+yaml"

Kubeconfig = Annotated[str | None, option("--kubeconfig", metavar="FILE", about="kubeconfig of the cluster")]
Context = Annotated[str | None, option("--context", metavar="NAME", about="context in the kubeconfig")]
Namespace = Annotated[str | None, option("--namespace", "-n", metavar="NAME", about="namespace (that of the context)")]
Files = Annotated[Names, option("--filename", "-f", metavar="FILE", about="manifests; - for standard input")]


def apply(
    *, filename: Files = None, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> int:
    """Create or change objects so that they are as the manifests say (server-side apply)."""
    documents = _read(filename)

    async def work() -> int:
        async with connect(kubeconfig, context, namespace) as cluster:
            for document in documents:
                print(await _apply_one(cluster, document), flush=True)
        return 0

    return asyncio.run(work())


async def _apply_one(cluster: ClusterClient, document: dict[str, Any]) -> str:
    resource = await cluster.of_kind(document.get("apiVersion", ""), document.get("kind", ""))
    metadata = document.setdefault("metadata", {})
    name, namespace = metadata.get("name", ""), metadata.get("namespace") or cluster.namespace
    label = f"{resource.kind.lower()}/{name or metadata.get('generateName', '')}"
    if not name:
        response = await cluster.request("POST", resource.path(namespace), body=msgspec.json.encode(document))
        made = msgspec.json.decode(response.body)["metadata"]["name"]
        return f"{resource.kind.lower()}/{made} created"
    query = {"fieldManager": "bayplan", "force": "true"}
    response = await cluster.request(
        "PATCH",
        resource.path(namespace, name),
        query=query,
        body=msgspec.json.encode(document),
        content_type=_APPLY,
    )
    if resource.kind == "CustomResourceDefinition":
        cluster.forget_resources()
    return f"{label} {'created' if response.status == 201 else 'applied'}"


def delete(
    what: str | None = None,
    *names: str,
    filename: Files = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Delete objects, named by kind and name or by the manifests that made them."""
    documents = _read(filename) if filename else []
    if what is None and not documents:
        raise CommandError("nothing to delete", hint="name it: `bayplan delete pod NAME`, or -f FILE")

    async def work() -> int:
        async with connect(kubeconfig, context, namespace) as cluster:
            for resource, space, name in await _targets(cluster, what, names, documents):
                await cluster.request("DELETE", resource.path(space, name))
                print(f"{resource.kind.lower()}/{name} deleted", flush=True)
        return 0

    return asyncio.run(work())


async def _targets(
    cluster: ClusterClient, what: str | None, names: tuple[str, ...], documents: list[dict[str, Any]]
) -> list[tuple[Discovered, str, str]]:
    targets = []
    if what is not None:
        kind, _, given = what.partition("/")
        resource = await cluster.named(kind)
        wanted = [given, *names] if given else list(names)
        if not wanted:
            raise CommandError(f"which {resource.kind} should be deleted?", hint=f"`bayplan delete {kind} NAME`")
        targets += [(resource, cluster.namespace, name) for name in wanted]
    for document in reversed(documents):
        metadata = document.get("metadata", {})
        resource = await cluster.of_kind(document.get("apiVersion", ""), document.get("kind", ""))
        targets.append((resource, metadata.get("namespace") or cluster.namespace, metadata.get("name", "")))
    return targets


def _read(files: list[str] | None) -> list[dict[str, Any]]:
    from pathlib import Path

    from bayplan.sim.sources import read_documents, read_text

    if not files:
        raise CommandError("no manifests", hint="name them with -f FILE, or -f - for standard input")
    documents: list[dict[str, Any]] = []
    for name in files:
        documents += read_text(sys.stdin.read(), "standard input") if name == "-" else read_documents(Path(name))
    return documents
