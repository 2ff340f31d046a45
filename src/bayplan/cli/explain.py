"""`bayplan explain`: why a pod is where it is, or nowhere; what a node holds and says to those who wait.

Asks a running scheduler, or reads a decision file, which tells what was decided and not what would be decided now.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from bayplan.cli.options import option
from bayplan.cli.output import CommandError, Format, note, print_pieces, print_value, result_console
from bayplan.cli.scheduler_client import (
    Authority,
    Endpoint,
    Insecure,
    Kubeconfig,
    Server,
    TokenFile,
    ask,
    endpoint,
    pod_path,
)

if TYPE_CHECKING:
    from bayplan.explain.model import PodExplanation
    from bayplan.loop.record import DecisionRecord

__all__ = ["explain"]

EXAMPLES = """\
{program} explain pod web-0
{program} explain pod shop/web-0 -o json
{program} explain node node-17
{program} explain pod web-0 --file decisions.jsonl
"""


def explain(
    kind: Literal["pod", "node"],
    name: str,
    /,
    *,
    namespace: Annotated[str, option("--namespace", "-n", metavar="NAME", about="of the pod (default)")] = "default",
    output: Annotated[Format | None, option("--output", "-o", metavar="FORMAT", about="table by default")] = None,
    top: Annotated[int, option("--top", metavar="NUMBER", about="how many of the best nodes to show (5)")] = 5,
    brief: Annotated[bool, option("--brief", about="leave out what would change the outcome")] = False,
    file: Annotated[str | None, option("--file", metavar="FILE", about="a decision file, instead of asking")] = None,
    server: Server = None,
    token_file: TokenFile = None,
    kubeconfig: Kubeconfig = None,
    certificate_authority: Authority = None,
    insecure_skip_tls_verify: Insecure = False,
) -> int:
    """Say why a pod is where it is, or why it is nowhere; or what a node holds and says to pending pods.

    For a pod: the verdict, the funnel by plugin, the best nodes with their scores, the attempts, and what would change
    the outcome. Exit status: 0 explained, 1 not found or not allowed, 2 bad input.
    """
    key = name if "/" in name or kind == "node" else f"{namespace}/{name}"
    if file is not None:
        return _from_file(Path(file), kind, key, output or "table", top)
    where = endpoint(server, token_file, kubeconfig, certificate_authority, insecure_skip_tls_verify)
    if kind == "node":
        return _node(where, key, output or "table")
    return _pod(where, key, output or "table", top, brief)


def _pod(where: Endpoint, key: str, output: Format, top: int, brief: bool) -> int:
    from bayplan.explain.model import Changes, PodExplanation
    from bayplan.explain.terminal import draw_changes

    path = pod_path(key, "")
    is_table = output == "table"
    explanation = ask(where, path, PodExplanation, query={} if is_table else {"full": "true"})
    changes = Changes(pod=key)
    if not brief and explanation.state in ("placed", "pending", "gated"):
        changes = ask(where, f"{path}/changes", Changes)
    if output != "table":
        explanation.suggestions, explanation.note = changes.suggestions, explanation.note or changes.note
        explanation.nearest, explanation.without = changes.nearest, changes.without
        print_value(msgspec.to_builtins(explanation), output)
        return 0
    _draw(explanation, top)
    print_pieces(result_console(), draw_changes(changes))
    return 0


def _draw(explanation: PodExplanation, top: int) -> None:
    from bayplan.explain.terminal import draw_pod

    console = result_console()
    print_pieces(console, draw_pod(explanation, top=top, width=console.width))


def _node(where: Endpoint, name: str, output: Format) -> int:
    from urllib.parse import quote

    from bayplan.explain.model import NodeExplanation
    from bayplan.explain.terminal import draw_node

    node = ask(where, f"/explain/node/{quote(name, safe='')}", NodeExplanation)
    if output != "table":
        print_value(msgspec.to_builtins(node), output)
    else:
        print_pieces(result_console(), draw_node(node))
    return 0


def _from_file(path: Path, kind: str, key: str, output: Format, top: int) -> int:
    from bayplan.explain.decision_file import DecisionFileError, read_decisions

    try:
        records, bad = read_decisions(path)
    except DecisionFileError as error:
        problem, _, hint = str(error).partition("\nhint: ")
        raise CommandError(problem, hint=hint) from error
    if bad:
        note(f"{path}: {bad} lines could not be read and are left out")
    found = [record for record in records if (record.node if kind == "node" else record.pod) == key]
    if not found:
        raise CommandError(f"{path}: no attempt about {kind} `{key}`", hint=_like(key, kind, records), status=1)
    _show_records(found, output, top, kind)
    return 0


def _like(key: str, kind: str, records: Iterable[DecisionRecord]) -> str:
    from bayplan.api.suggest import closest

    like = closest(key, {record.node if kind == "node" else record.pod for record in records} - {""})
    return f"did you mean `{like}`?" if like else ""


def _show_records(found: list[DecisionRecord], output: Format, top: int, kind: str) -> None:
    from bayplan.explain.builders import chosen_of
    from bayplan.explain.claims import Unplaced
    from bayplan.explain.model import PodExplanation, decided_of
    from bayplan.explain.wording import sentence

    if output != "table" and kind == "node":
        print_value(msgspec.to_builtins(found), output)
        return
    newest = found[0]
    explanation = PodExplanation(pod=newest.pod, uid=newest.uid, profile=newest.profile, state="gone", verdict="")
    explanation.attempts, explanation.decision = found, decided_of(newest)
    explanation.claim = chosen_of(newest) if newest.node else Unplaced(pod=newest.pod, message=newest.message)
    explanation.verdict, explanation.state = sentence(explanation.claim), "placed" if newest.node else "gone"
    if output != "table":
        print_value(msgspec.to_builtins(explanation), output)
        return
    _draw(explanation, top)
