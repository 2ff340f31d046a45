"""`bayplan apply`, `get` and `delete`: the few verbs that people without kubectl need, against any cluster."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any, Literal

import msgspec

from bayplan.cli.cluster_access import ClusterClient, Discovered, connect
from bayplan.cli.options import Names, option
from bayplan.cli.output import CommandError, print_value, result_console

__all__ = ["apply", "delete", "get"]

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
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


def get(
    what: str,
    name: str | None = None,
    /,
    *,
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, option("--all-namespaces", "-A", about="objects of all namespaces")] = False,
    selector: Annotated[str | None, option("--selector", "-l", metavar="SELECTOR", about="label selector")] = None,
    field_selector: Annotated[
        str | None, option("--field-selector", metavar="SELECTOR", about="field selector")
    ] = None,
    output: Annotated[
        Literal["table", "wide", "json", "yaml", "name"],
        option("--output", "-o", metavar="FORMAT", about="output format (table)"),
    ] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Show objects, with the columns that kubectl shows."""

    async def work() -> int:
        async with connect(kubeconfig, context, namespace) as cluster:
            kind, _, given = what.partition("/")
            resource = await cluster.named(kind)
            path = resource.path("" if all_namespaces else cluster.namespace, name or given)
            query = {"labelSelector": selector or "", "fieldSelector": field_selector or ""}
            query = {key: value for key, value in query.items() if value}
            is_table = output in ("table", "wide")
            headers = {"Accept": _TABLE if is_table else "application/json"}
            answer = msgspec.json.decode((await cluster.request("GET", path, query=query, headers=headers)).body)
            _show(resource, answer, output, with_namespace=all_namespaces and resource.is_namespaced)
        return 0

    return asyncio.run(work())


def _show(resource: Discovered, answer: dict[str, Any], output: str, *, with_namespace: bool) -> None:
    if output in ("json", "yaml"):
        print_value(answer, "json" if output == "json" else "yaml")
    elif output == "name":
        for item in answer.get("items", [answer]):
            print(f"{resource.kind.lower()}/{item['metadata']['name']}")
    elif answer.get("kind") != "Table":
        raise CommandError("the API server did not answer with a table", hint="use -o yaml")
    elif not answer.get("rows"):
        print("No resources found", file=sys.stderr)
    else:
        _print_table(answer, wide=output == "wide", with_namespace=with_namespace)


def _cell(value: Any) -> str:
    """As kubectl writes it."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _print_table(table: dict[str, Any], *, wide: bool, with_namespace: bool) -> None:
    columns = table["columnDefinitions"]
    shown = [place for place, column in enumerate(columns) if wide or column.get("priority", 0) == 0]
    lines = [[columns[place]["name"].upper() for place in shown]]
    lines += [[_cell(row["cells"][place]) for place in shown] for row in table["rows"]]
    if with_namespace:
        spaces = ["NAMESPACE", *(row["object"]["metadata"].get("namespace", "") for row in table["rows"])]
        lines = [[space, *line] for space, line in zip(spaces, lines, strict=True)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    console = result_console()
    for line in lines:
        text = "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        console.print(text, soft_wrap=True)


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
