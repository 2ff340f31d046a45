"""`bayplan pending`: every pending pod by root cause, and the one change that would free the most."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from bayplan.cli.options import option
from bayplan.cli.output import print_pieces, print_value, progress, result_console
from bayplan.cli.scheduler_client import Endpoint, Scheduler, ask, endpoint

if TYPE_CHECKING:
    from bayplan.explain.model import PendingBoard

__all__ = ["pending"]

EXAMPLES = """\
{program} pending
{program} pending -n shop -o wide
{program} pending --watch
{program} pending --brief -o json
"""
_EVERY_SECONDS = 2.0


def pending(
    *,
    namespace: Annotated[
        str | None, option("--namespace", "-n", metavar="NAME", about="of the pods (all namespaces)")
    ] = None,
    all_namespaces: Annotated[bool, option("--all-namespaces", "-A", about="pods of all namespaces")] = False,
    watch: Annotated[bool, option("--watch", "-w", about="show it again when it changes, until Ctrl-C")] = False,
    brief: Annotated[bool, option("--brief", about="leave out the change that would free the most")] = False,
    output: Annotated[
        Literal["table", "wide", "json", "yaml", "name"] | None,
        option("--output", "-o", metavar="FORMAT", about="table by default"),
    ] = None,
    scheduler: Scheduler = None,
) -> int:
    """Show the pending pods of a running scheduler, grouped by what keeps them from running.

    The groups come at once; the change that would free the most is then searched on a copy of the cluster.
    """
    where = endpoint(scheduler)
    limited = {"namespace": namespace} if namespace and not all_namespaces else {}
    if watch:
        for board in _changes(where, limited):
            _show(board, output or "table")
            if output in (None, "table", "wide"):
                print(flush=True)
        return 0
    form = output or "table"
    with progress("grouping the pending pods by what keeps them from running"):
        board = _ask(where, limited)
    is_searched = not brief and form != "name" and any(cause.plugin for cause in board.causes)
    if form in ("table", "wide"):
        _show(board, form)
    if is_searched:
        with progress("searching the change that frees the most, on a copy of the cluster"):
            searched = _ask(where, {**limited, "change": "true"})
        board.change, board.frees = searched.change, searched.frees
        if form in ("table", "wide"):
            _show_change(board)
    if form not in ("table", "wide"):
        _show(board, form)
    return 0


def _ask(where: Endpoint, query: dict[str, str]) -> PendingBoard:
    from bayplan.explain.model import PendingBoard

    return ask(where, "/pending", PendingBoard, query=query)


def _changes(where: Endpoint, query: dict[str, str]) -> Iterator[PendingBoard]:
    """The board now, and again whenever its groups have changed."""
    from bayplan.observe.clock import SystemClock

    last = None
    while True:
        board = _ask(where, query)
        shown = [(cause.title, cause.count) for cause in board.causes]
        if shown != last:
            last = shown
            yield board
        asyncio.run(SystemClock().sleep(_EVERY_SECONDS))


def _show(board: PendingBoard, form: str) -> None:
    from bayplan.explain.terminal.explanations import draw_pending

    if form == "name":
        sys.stdout.writelines(f"pod/{waiting.pod}\n" for cause in board.causes for waiting in cause.pods)
        sys.stdout.flush()
    elif form in ("json", "yaml"):
        print_value(msgspec.to_builtins(board), "json" if form == "json" else "yaml")
    else:
        console = result_console()
        most_named = None if form == "wide" else 3
        print_pieces(console, draw_pending(board, most_named=most_named, width=console.width))
        sys.stdout.flush()


def _show_change(board: PendingBoard) -> None:
    from bayplan.explain.terminal.explanations import draw_best_change

    print_pieces(result_console(), draw_best_change(board))
