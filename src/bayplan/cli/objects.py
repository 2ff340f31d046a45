"""`bayplan apply` and `delete`: with `get`, the few verbs that people without kubectl need, against any cluster."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Annotated, Any, Literal

import msgspec

from bayplan.apiserver.kinds.unknown_fields import drop_unknown_fields, unknown_fields
from bayplan.cli.cluster_access import ClusterClient, Discovered, connect
from bayplan.cli.field_validation import FIELD_VALIDATION, Validate
from bayplan.cli.options import Names, named_path, option
from bayplan.cli.output import CommandError, note, print_value
from bayplan.cli.targets import kinds_and_names
from bayplan.client.errors import ApiError
from bayplan.client.transport import Response

__all__ = ["Context", "Kubeconfig", "Namespace", "apply", "delete"]

_APPLY = "application/apply-patch+yaml"
_PATH_PART = re.compile(r"(?!\.{1,2}$)[^/%]*")

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
    resource = await _resource_of(cluster, document)
    name, namespace = _identity(document, cluster.namespace)
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


async def _resource_of(cluster: ClusterClient, document: dict[str, Any]) -> Discovered:
    return await cluster.of_kind(str(document.get("apiVersion") or ""), str(document.get("kind") or ""))


def _identity(document: dict[str, Any], namespace: str) -> tuple[str, str]:
    """Name and namespace of a document, where they can be part of a path."""
    metadata = document.setdefault("metadata", {}) or {}
    if not isinstance(metadata, dict):
        raise CommandError(f"{document.get('kind')}: `metadata` is {metadata!r:.40}, expected fields and values")
    found = [metadata.get("name") or "", metadata.get("namespace") or namespace]
    for text in found:
        if not isinstance(text, str) or not _PATH_PART.fullmatch(text):
            raise CommandError(f"{document.get('kind')}: {text!r:.80} can be no name of an object or a namespace")
    return found[0], found[1]


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
        resource = await _resource_of(cluster, document)
        name, space = _identity(document, cluster.namespace)
        if not name:
            raise CommandError(f"{resource.kind}: it has no `metadata.name`, so it cannot be deleted by its manifest")
        targets.append((resource, space, name))
    return targets


def _read(files: list[str] | None) -> list[dict[str, Any]]:
    from bayplan.sim.sources import read_documents, read_text

    if not files:
        raise CommandError("no manifests", hint="name them with -f FILE, or -f - for standard input")
    documents: list[dict[str, Any]] = []
    for name in files:
        source = "standard input" if name == "-" else name
        found = read_text(_stdin_text(), source) if name == "-" else read_documents(named_path(name))
        if not found:
            raise CommandError(f"{source}: holds no Kubernetes object")
        documents += found
    return documents


def _stdin_text() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"standard input: not UTF-8 text (byte {error.start})") from None
