"""`bayplan apply` and `delete`: with `get`, the few verbs that people without kubectl need, against any cluster."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any, Literal

import msgspec

from bayplan.cli.cluster_access import ClusterClient, Discovered, connect
from bayplan.cli.field_validation import FIELD_VALIDATION, Validate, drop_unknown_fields, unknown_fields
from bayplan.cli.options import Names, option
from bayplan.cli.output import CommandError, note, print_value
from bayplan.cli.targets import kinds_and_names
from bayplan.client.errors import ApiError
from bayplan.client.transport import Response

__all__ = ["Context", "Kubeconfig", "Namespace", "apply", "delete"]

_APPLY = "application/apply-patch+yaml"

Kubeconfig = Annotated[str | None, option("--kubeconfig", metavar="FILE", about="kubeconfig of the cluster")]
Context = Annotated[str | None, option("--context", metavar="NAME", about="context in the kubeconfig")]
Namespace = Annotated[str | None, option("--namespace", "-n", metavar="NAME", about="namespace (that of the context)")]
Output = Annotated[
    Literal["name", "json", "yaml"] | None,
    option("--output", "-o", metavar="FORMAT", about="what to print of each object (a line)"),
]
Files = Annotated[Names, option("--filename", "-f", metavar="FILE", about="manifests; - for standard input")]


def apply(
    *,
    filename: Files = None,
    namespace: Namespace = None,
    validate: Validate = "strict",
    output: Output = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Create or change objects so that they are as the manifests say (server-side apply)."""
    documents = _read(filename)

    async def work() -> int:
        async with connect(kubeconfig, context, namespace) as cluster:
            made = [_shown(output, *await _apply_one(cluster, document, validate)) for document in documents]
            _print_objects(output, made)
        return 0

    return asyncio.run(work())


def _shown(output: str | None, verb: str, resource: Discovered, item: dict[str, Any]) -> dict[str, Any]:
    """Print the line of an object at once; JSON and YAML are printed for all together, as kubectl has them."""
    item["metadata"].pop("managedFields", None)
    if output not in ("json", "yaml"):
        label = f"{resource.kind.lower()}/{item['metadata']['name']}"
        print(label if output == "name" else f"{label} {verb}", flush=True)
    return item


def _print_objects(output: Literal["name", "json", "yaml"] | None, items: list[dict[str, Any]]) -> None:
    if output == "json" or output == "yaml":
        print_value(items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}, output)


async def _apply_one(
    cluster: ClusterClient, document: dict[str, Any], validate: str
) -> tuple[str, Discovered, dict[str, Any]]:
    """What was done, the resource, and the object as the server has it."""
    resource = await cluster.of_kind(document.get("apiVersion", ""), document.get("kind", ""))
    metadata = document.setdefault("metadata", {})
    name, namespace = metadata.get("name", ""), metadata.get("namespace") or cluster.namespace
    if validate != "strict":
        # Server-side apply refuses fields without a declaration, whatever the validation.
        for problem in drop_unknown_fields(document):
            if validate == "warn":
                note(problem)
    query = {"fieldManager": "bayplan", "fieldValidation": FIELD_VALIDATION[validate]}
    if not name:
        response = await _sent(cluster, document, "POST", resource.path(namespace), query=query)
        return "created", resource, msgspec.json.decode(response.body)
    path = resource.path(namespace, name)
    response = await _sent(cluster, document, "PATCH", path, query={**query, "force": "true"}, content_type=_APPLY)
    if resource.kind == "CustomResourceDefinition":
        cluster.forget_resources()
    return "created" if response.status == 201 else "applied", resource, msgspec.json.decode(response.body)


async def _sent(cluster: ClusterClient, document: dict[str, Any], method: str, path: str, **options: Any) -> Response:
    """Send the document; warnings of the server are printed, and a refusal says which field was probably meant."""
    try:
        response = await cluster.request(method, path, body=msgspec.json.encode(document), **options)
    except ApiError as error:
        meant = [problem for problem in unknown_fields(document) if "did you mean" in problem]
        if not meant:
            raise
        raise CommandError(str(error).split("\nhint:")[0], hint="; ".join(meant), status=1) from error
    for name, text in response.headers.items():
        if name.lower() == "warning":
            note(text.partition('"')[2].rpartition('"')[0].replace('\\"', '"') or text)
    return response


def delete(
    what: str | None = None,
    *names: str,
    filename: Files = None,
    namespace: Namespace = None,
    output: Annotated[
        Literal["name"] | None, option("--output", "-o", metavar="FORMAT", about="names alone (a line)")
    ] = None,
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
                _shown(output, "deleted", resource, {"metadata": {"name": name}})
        return 0

    return asyncio.run(work())


async def _targets(
    cluster: ClusterClient, what: str | None, names: tuple[str, ...], documents: list[dict[str, Any]]
) -> list[tuple[Discovered, str, str]]:
    targets = []
    if what is not None:
        for kind, name in kinds_and_names([what, *names]):
            resource = await cluster.named(kind)
            if not name:
                raise CommandError(f"which {resource.kind} should be deleted?", hint=f"`bayplan delete {kind} NAME`")
            targets.append((resource, cluster.namespace, name))
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
