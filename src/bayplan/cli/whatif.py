"""`bayplan whatif`: a scenario played on a copy of the cluster that a running scheduler sees. Nothing is written."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from bayplan.cli.documents import read_found_objects
from bayplan.cli.field_validation import Validate, check_fields
from bayplan.cli.options import Names, counting_option, option
from bayplan.cli.output import CommandError, print_pieces, print_value, progress, result_console
from bayplan.cli.scheduler_client import Scheduler, ask, endpoint

__all__ = ["whatif"]

_NODE = re.compile("^(nodes?|no)/")
EXAMPLES = """\
{program} whatif --drain node-3,node-4
{program} whatif --add-nodes node-1:5
{program} whatif -f pod.yaml --count 100
{program} whatif --weight ImageLocality=5 --disable InterPodAffinity
"""


def whatif(
    *,
    drain: Annotated[Names, option("--drain", metavar="NODE", about="its pods look for other places")] = None,
    remove: Annotated[Names, option("--remove", metavar="NODE", about="gone, with what runs there")] = None,
    add_nodes: Annotated[
        Names, option("--add-nodes", metavar="NODE[:COUNT]", about="more nodes like one that there is")
    ] = None,
    filename: Annotated[Names, option("--filename", "-f", metavar="FILE", about="nodes and pods to add")] = None,
    count: Annotated[int, counting_option("--count", about="how many of each pod of -f (1)")] = 1,
    weight: Annotated[Names, option("--weight", metavar="PLUGIN=NUMBER", about="another weight")] = None,
    disable: Annotated[Names, option("--disable", metavar="PLUGIN", about="a plugin that has no say")] = None,
    config: Annotated[str | None, option("--config", metavar="FILE", about="another configuration")] = None,
    without_pending: Annotated[bool, option("--without-pending", about="leave out pods that wait now")] = False,
    output: Annotated[
        Literal["table", "wide", "json", "yaml"] | None,
        option("--output", "-o", metavar="FORMAT", about="table by default; wide: a line a pod"),
    ] = None,
    validate: Validate = "strict",
    scheduler: Scheduler = None,
) -> int:
    """Say where pods would go if nodes came or went, pods were added, or the scheduler were configured otherwise.

    Played on a copy of the cluster; nothing is written anywhere. Exit status: 0 played, 1 refused, 2 bad input.
    """
    from bayplan.explain.model import WhatIf
    from bayplan.explain.terminal.whatif import draw_whatif

    scenario: dict[str, Any] = {
        "edits": [{"kind": "removeNode", "name": name} for name in _node_names(remove)],
        "addNodes": [_added(text) for text in add_nodes or ()],
        "drain": _node_names(drain),
        "weights": dict(_weight(text) for text in weight or ()),
        "disable": _split(disable),
        "pending": not without_pending,
        "addPods": [],
    }
    for name in filename or ():
        _add_file(scenario, name, count, validate)
    if config is not None:
        scenario["config"] = next((found.item for found in read_found_objects(config)), None)
    where = endpoint(scheduler)
    with progress("playing it on a copy of the cluster"):
        answer = ask(where, "/whatif", WhatIf, body=msgspec.json.encode(scenario))
    if output in ("json", "yaml"):
        print_value(msgspec.to_builtins(answer), "json" if output == "json" else "yaml")
    else:
        print_pieces(result_console(), draw_whatif(answer, is_wide=output == "wide"))
    return 0


def _split(given: Names) -> list[str]:
    """Comma lists are taken as kubectl takes them."""
    return [name for text in given or () for name in text.split(",") if name]


def _node_names(given: Names) -> list[str]:
    """`node-1`, `no/node-1`, or several of them."""
    return [_NODE.sub("", name) for name in _split(given)]


def _added(text: str) -> dict[str, Any]:
    name, _, count = text.partition(":")
    if count and not count.isdecimal():
        raise CommandError(f"--add-nodes {text}: `{count}` is not a number", hint="write NODE or NODE:COUNT")
    return {"like": name, "count": int(count or 1)}


def _weight(text: str) -> tuple[str, int]:
    name, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise CommandError(f"--weight {text}: expected PLUGIN=NUMBER")
    return name, int(number)


def _add_file(scenario: dict[str, Any], name: str, count: int, validate: str) -> None:
    for found in read_found_objects(name):
        check_fields(found, validate)
        kind = found.item.get("kind")
        if kind == "Pod":
            scenario["addPods"].append({"pod": found.item, "count": count})
        elif kind == "Node":
            node = str(found.item.get("metadata", {}).get("name", ""))
            scenario["edits"].append({"kind": "addNode", "name": node, "object": found.item})
        else:
            raise CommandError(f"{found.source}: {found.where}: expected pods and nodes, found a {kind}")
