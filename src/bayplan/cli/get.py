"""`bayplan get`: objects of a cluster in the columns that kubectl shows, several kinds at once, and as they change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from cyclopts import Parameter

from bayplan.cli.cluster_access import ClusterClient, Discovered, connect
from bayplan.cli.objects import Context, Kubeconfig, Namespace
from bayplan.cli.options import option
from bayplan.cli.output import CommandError, print_value, result_console
from bayplan.cli.targets import kinds_and_names

__all__ = ["get"]

EXAMPLES = """\
{program} get pods
{program} get po,no -o wide
{program} get pod/web-0 node/node-1
{program} get pods -A --watch
"""
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
Output = Literal["table", "wide", "json", "yaml", "name"]


class _Wanted(NamedTuple):
    """One list or one object."""

    resource: Discovered
    name: str
    path: str


def get(
    *words: Annotated[str, Parameter(name="WHAT", help="KIND, KIND NAME..., KIND/NAME..., KIND,KIND")],
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, option("--all-namespaces", "-A", about="objects of all namespaces")] = False,
    selector: Annotated[str | None, option("--selector", "-l", metavar="SELECTOR", about="label selector")] = None,
    field_selector: Annotated[
        str | None, option("--field-selector", metavar="SELECTOR", about="field selector")
    ] = None,
    watch: Annotated[bool, option("--watch", "-w", about="then show each change, until Ctrl-C")] = False,
    output: Annotated[Output, option("--output", "-o", metavar="FORMAT", about="output format (table)")] = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Show objects, with the columns that kubectl shows."""
    if not words:
        raise CommandError("what should be shown?", hint="name a kind: `bayplan get pods`")
    query = {"labelSelector": selector or "", "fieldSelector": field_selector or ""}
    query = {key: value for key, value in query.items() if value}

    async def work() -> int:
        async with connect(kubeconfig, context, namespace) as cluster:
            wanted = await _wanted(cluster, words, "" if all_namespaces else cluster.namespace)
            if watch and len(wanted) > 1:
                raise CommandError("one kind is watched at a time", hint="name one kind, or one object")
            await _show_all(cluster, wanted, query, output, with_namespace=all_namespaces)
            if watch:
                await _watch(cluster, wanted[0], query, output, with_namespace=all_namespaces)
        return 0

    return asyncio.run(work())


async def _wanted(cluster: ClusterClient, words: Sequence[str], namespace: str) -> list[_Wanted]:
    found = []
    for kind, name in kinds_and_names(words):
        resource = await cluster.named(kind)
        found.append(_Wanted(resource, name, resource.path(namespace, name)))
    return found


async def _show_all(
    cluster: ClusterClient, wanted: Sequence[_Wanted], query: dict[str, str], output: Output, *, with_namespace: bool
) -> None:
    answers = [(each, await _read(cluster, each.path, query, output)) for each in wanted]
    if output in ("json", "yaml"):
        items = [item for each, answer in answers for item in ([answer] if each.name else answer.get("items", []))]
        for item in items:
            item["metadata"].pop("managedFields", None)  # as kubectl does: only the server reads them
        whole = answers[0][1] if len(answers) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}
        print_value(whole, "json" if output == "json" else "yaml")
        return
    kinds: dict[str, tuple[Discovered, dict[str, Any]]] = {}
    for each, answer in answers:
        if each.resource.plural in kinds and output != "name":
            kinds[each.resource.plural][1]["rows"] += answer["rows"]
        elif each.resource.plural in kinds:
            kinds[each.resource.plural][1]["items"] += answer.get("items", [answer])
        else:
            first = {"items": answer.get("items", [answer])} if output == "name" else answer
            kinds[each.resource.plural] = (each.resource, first)
    for place, (resource, answer) in enumerate(kinds.values()):
        if place and output != "name":
            print(flush=True)
        prefix = f"{resource.kind.lower()}/" if len(kinds) > 1 else ""
        _show(resource, answer, output, with_namespace=with_namespace and resource.is_namespaced, prefix=prefix)


async def _read(cluster: ClusterClient, path: str, query: dict[str, str], output: Output) -> dict[str, Any]:
    headers = {"Accept": _TABLE if output in ("table", "wide") else "application/json"}
    response = await cluster.request("GET", path, query=query, headers=headers)
    return msgspec.json.decode(response.body, type=dict[str, Any])


def _show(resource: Discovered, answer: dict[str, Any], output: str, *, with_namespace: bool, prefix: str) -> None:
    if output == "name":
        for item in answer["items"]:
            print(f"{resource.kind.lower()}/{item['metadata']['name']}", flush=True)
    elif answer.get("kind") != "Table":
        raise CommandError("the API server did not answer with a table", hint="use -o yaml")
    elif not answer.get("rows"):
        print("No resources found", file=sys.stderr)
    else:
        lines = _lines(answer, wide=output == "wide", with_namespace=with_namespace, prefix=prefix)
        _print_lines(lines, _widths(lines))


def _cell(value: Any) -> str:
    """As kubectl writes it."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _lines(table: dict[str, Any], *, wide: bool, with_namespace: bool, prefix: str) -> list[list[str]]:
    columns = table["columnDefinitions"]
    shown = [place for place, column in enumerate(columns) if wide or column.get("priority", 0) == 0]
    lines = [[columns[place]["name"].upper() for place in shown]]
    lines += [[_cell(row["cells"][place]) for place in shown] for row in table["rows"]]
    for line in lines[1:] if prefix else ():
        line[0] = f"{prefix}{line[0]}"
    if with_namespace:
        spaces = ["NAMESPACE", *(row["object"]["metadata"].get("namespace", "") for row in table["rows"])]
        lines = [[space, *line] for space, line in zip(spaces, lines, strict=True)]
    return lines


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]


def _print_lines(lines: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    console = result_console()
    for line in lines:
        text = "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        console.print(text, soft_wrap=True)
    sys.stdout.flush()


async def _watch(
    cluster: ClusterClient, wanted: _Wanted, query: dict[str, str], output: Output, *, with_namespace: bool
) -> None:
    """A row for each change from now on; of an object that is gone, its name."""
    resource = wanted.resource
    folder = wanted.path.rpartition("/")[0] if wanted.name else wanted.path
    fields = {"fieldSelector": f"metadata.name={wanted.name}"} if wanted.name else {}
    listed = await _read(cluster, folder, {**query, **fields, "limit": "1"}, "json")
    version = listed.get("metadata", {}).get("resourceVersion", "")
    watched = {**query, **fields, "watch": "true", "resourceVersion": version}
    async for event in cluster.changes(folder, watched):
        metadata = event["object"].get("metadata", {})
        if event.get("type") == "ERROR":
            raise CommandError("the API server ended the watch", hint="start it again", status=1)
        if event.get("type") == "DELETED":
            print(f"{resource.kind.lower()}/{metadata['name']} deleted", flush=True)
            continue
        if output in ("json", "yaml"):
            print_value(event["object"], "json" if output == "json" else "yaml")
            continue
        if output == "name":
            print(f"{resource.kind.lower()}/{metadata['name']}", flush=True)
            continue
        await _show_row(cluster, resource, metadata, output, with_namespace=with_namespace)


async def _show_row(
    cluster: ClusterClient, resource: Discovered, metadata: dict[str, Any], output: Output, *, with_namespace: bool
) -> None:
    from bayplan.client.errors import NotFound

    try:
        table = await _read(cluster, resource.path(metadata.get("namespace", ""), metadata["name"]), {}, output)
    except NotFound:
        return  # its deletion is the next event
    lines = _lines(table, wide=output == "wide", with_namespace=with_namespace and resource.is_namespaced, prefix="")
    _print_lines(lines[1:], _widths(lines))
