"""`bayplan explain`: why a pod is where it is, or nowhere; what a node holds, and the verdict on it for pending pods.

Asks a running scheduler, or reads a decision file, which has what was decided and not what would be decided now.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from bayplan.cli.options import counting_option, named_path, option
from bayplan.cli.output import CommandError, WideFormat, note, print_pieces, print_value, progress, result_console
from bayplan.cli.scheduler_client import Endpoint, Scheduler, ask, endpoint, namespace_of, pod_path
from bayplan.cli.targets import Target, read_targets

if TYPE_CHECKING:
    from rich.console import Console

    from bayplan.explain.model import PodExplanation
    from bayplan.loop.record import DecisionRecord

__all__ = ["explain"]

EXAMPLES = """\
{program} explain pod web-0
{program} explain pod shop/web-0 -o json
{program} explain po/web-0 no/node-17
{program} explain pod web-0 --file decisions.jsonl
"""
_TABLES = ("table", "wide")


def explain(
    *words: Annotated[str, Parameter(name="WHAT", help="pod NAME, node NAME, pod/NAME, po a,b")],
    namespace: Annotated[
        str | None, option("--namespace", "-n", metavar="NAME", about="of the pods (that of the context)")
    ] = None,
    output: Annotated[
        WideFormat | None, option("--output", "-o", metavar="FORMAT", about="table by default; wide: more nodes")
    ] = None,
    top: Annotated[int, counting_option("--top", about="how many of the best nodes to show (5)")] = 5,
    brief: Annotated[bool, option("--brief", about="leave out what would change the outcome")] = False,
    file: Annotated[str | None, option("--file", metavar="FILE", about="a decision file, instead of asking")] = None,
    scheduler: Scheduler = None,
) -> int:
    """Say why a pod is where it is, or why it is nowhere; or what a node holds and says to pending pods.

    For a pod: the verdict, the funnel by plugin, the best nodes with their scores, the attempts, and what would change
    the outcome. Exit status: 0 explained, 1 not found or not allowed, 2 bad input.
    """
    if not words:
        raise CommandError("what should be explained?", hint="name a pod or a node: `bayplan explain pod NAME`")
    targets = read_targets(words, namespace_of(scheduler, namespace))
    form = output or "table"
    top = sys.maxsize if form == "wide" else top
    where = endpoint(scheduler, otherwise="read a decision file with --file")
    values: list[Any] = []
    for place, target in enumerate(targets):
        if place and form in _TABLES:
            print(flush=True)
        if file is not None:
            values += _from_file(named_path(file), target, form, top)
        elif target.kind == "node":
            values += _node(where, target.name, form)
        else:
            values += _pod(where, target.name, form, top, brief)
    if form == "json" or form == "yaml":
        print_value(values[0] if len(values) == 1 else values, form)
    return 0


def _pod(where: Endpoint, key: str, output: WideFormat, top: int, brief: bool) -> list[Any]:
    """Draw it, or return what is to be printed."""
    from bayplan.explain.model import Changes, PodExplanation
    from bayplan.explain.terminal.explanations import draw_changes

    path = pod_path(key, "")
    is_table = output in _TABLES
    with progress(f"asking the scheduler about {key}"):
        explanation = ask(where, path, PodExplanation, query={} if is_table else {"full": "true"})
    if is_table:
        _draw(explanation, output, top)
    changes = Changes(pod=key)
    if not brief and explanation.state in ("placed", "pending", "gated"):
        with progress("trying changes on a copy of the cluster"):
            changes = ask(where, f"{path}/changes", Changes)
    if is_table:
        print_pieces(_console(output), draw_changes(changes))
        return []
    explanation.suggestions = changes.suggestions
    explanation.note = " ".join(filter(None, (explanation.note, changes.note)))
    explanation.nearest, explanation.without = changes.nearest, changes.without
    return [msgspec.to_builtins(explanation)]


def _console(output: WideFormat) -> Console:
    return result_console(is_wide=output == "wide")


def _draw(explanation: PodExplanation, output: WideFormat, top: int) -> None:
    from bayplan.explain.terminal.explanations import draw_pod

    console = _console(output)
    print_pieces(console, draw_pod(explanation, top=top, width=console.width))


def _node(where: Endpoint, name: str, output: WideFormat) -> list[Any]:
    from urllib.parse import quote

    from bayplan.explain.model import NodeExplanation
    from bayplan.explain.terminal.explanations import draw_node

    node = ask(where, f"/explain/node/{quote(name, safe='')}", NodeExplanation)
    if output not in _TABLES:
        return [msgspec.to_builtins(node)]
    console = _console(output)
    print_pieces(console, draw_node(node, width=console.width))
    return []


def _from_file(path: Path, target: Target, output: WideFormat, top: int) -> list[Any]:
    from bayplan.explain.claims.phrases import counted
    from bayplan.explain.decision_file import DecisionFileError, read_decisions

    try:
        records, bad = read_decisions(path)
    except DecisionFileError as error:
        problem, _, hint = str(error).partition("\nhint: ")
        raise CommandError(problem, hint=hint) from error
    if bad and not records:
        raise CommandError(
            f"`{path}` holds no decisions", hint="`bayplan run --decision-file FILE` writes a file of them"
        )
    if bad:
        note(f"{path}: {counted(bad, 'line')} could not be read and left out")
    if target.kind == "node":
        return _node_from_records(path, target.name, records, output, top)
    from bayplan.explain.file_answers import explained_from_records

    explanation = explained_from_records(target.name, records)
    if explanation is None:
        raise _unknown(path, target, records)
    return _shown(explanation, output, top)


def _node_from_records(
    path: Path, name: str, records: Sequence[DecisionRecord], output: WideFormat, top: int
) -> list[Any]:
    """The attempts that chose the node; on a terminal, the latest of them."""
    from bayplan.explain.file_answers import explained_from_records

    found = [record for record in records if record.node == name]
    if not found:
        raise _unknown(path, Target("node", name), records)
    if output not in _TABLES:
        return [msgspec.to_builtins(found)]
    explanation = explained_from_records(found[0].pod, found)
    assert explanation is not None  # it is about the first of them
    explanation.attempts = found
    return _shown(explanation, output, top)


def _shown(explanation: PodExplanation, output: WideFormat, top: int) -> list[Any]:
    if output not in _TABLES:
        return [msgspec.to_builtins(explanation)]
    _draw(explanation, output, top)
    return []


def _unknown(path: Path, target: Target, records: Sequence[DecisionRecord]) -> CommandError:
    kind, key = target
    return CommandError(f"{path}: no attempt about {kind} `{key}`", hint=_like(key, kind, records), status=1)


def _like(key: str, kind: str, records: Iterable[DecisionRecord]) -> str:
    from bayplan.api.suggest import closest

    like = closest(key, {record.node if kind == "node" else record.pod for record in records} - {""})
    return f"did you mean `{like}`?" if like else ""
