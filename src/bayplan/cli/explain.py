"""`bayplan explain`: why a pod is where it is, or nowhere; what a node holds and says to those who wait.

Asks a running scheduler, or reads a decision file, which tells what was decided and not what would be decided now.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from bayplan.cli.options import option
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
    top: Annotated[int, option("--top", metavar="NUMBER", about="how many of the best nodes to show (5)")] = 5,
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
    where = endpoint(scheduler)
    values: list[Any] = []
    for place, target in enumerate(targets):
        if place and form in _TABLES:
            print(flush=True)
        if file is not None:
            values += _from_file(Path(file), target, form, top)
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
    from bayplan.explain.terminal import draw_changes

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
    explanation.suggestions, explanation.note = changes.suggestions, explanation.note or changes.note
    explanation.nearest, explanation.without = changes.nearest, changes.without
    return [msgspec.to_builtins(explanation)]


def _console(output: WideFormat) -> Console:
    return result_console(is_wide=output == "wide")


def _draw(explanation: PodExplanation, output: WideFormat, top: int) -> None:
    from bayplan.explain.terminal import draw_pod

    console = _console(output)
    print_pieces(console, draw_pod(explanation, top=top, width=console.width))


def _node(where: Endpoint, name: str, output: WideFormat) -> list[Any]:
    from urllib.parse import quote

    from bayplan.explain.model import NodeExplanation
    from bayplan.explain.terminal import draw_node

    node = ask(where, f"/explain/node/{quote(name, safe='')}", NodeExplanation)
    if output not in _TABLES:
        return [msgspec.to_builtins(node)]
    print_pieces(_console(output), draw_node(node))
    return []


def _from_file(path: Path, target: Target, output: WideFormat, top: int) -> list[Any]:
    from bayplan.explain.decision_file import DecisionFileError, read_decisions

    try:
        records, bad = read_decisions(path)
    except DecisionFileError as error:
        problem, _, hint = str(error).partition("\nhint: ")
        raise CommandError(problem, hint=hint) from error
    if bad:
        note(f"{path}: {bad} lines could not be read and are left out")
    kind, key = target
    found = [record for record in records if (record.node if kind == "node" else record.pod) == key]
    if not found:
        raise CommandError(f"{path}: no attempt about {kind} `{key}`", hint=_like(key, kind, records), status=1)
    return _show_records(found, output, top, kind)


def _like(key: str, kind: str, records: Iterable[DecisionRecord]) -> str:
    from bayplan.api.suggest import closest

    like = closest(key, {record.node if kind == "node" else record.pod for record in records} - {""})
    return f"did you mean `{like}`?" if like else ""


def _show_records(found: list[DecisionRecord], output: WideFormat, top: int, kind: str) -> list[Any]:
    from bayplan.explain.builders import chosen_of
    from bayplan.explain.claims import Unplaced
    from bayplan.explain.model import PodExplanation, decided_of
    from bayplan.explain.wording import sentence

    if output not in _TABLES and kind == "node":
        return [msgspec.to_builtins(found)]
    newest = found[0]
    explanation = PodExplanation(pod=newest.pod, uid=newest.uid, profile=newest.profile, state="gone", verdict="")
    explanation.attempts, explanation.decision = found, decided_of(newest)
    explanation.claim = chosen_of(newest) if newest.node else Unplaced(pod=newest.pod, message=newest.message)
    explanation.verdict, explanation.state = sentence(explanation.claim), "placed" if newest.node else "gone"
    if output not in _TABLES:
        return [msgspec.to_builtins(explanation)]
    _draw(explanation, output, top)
    return []
