"""`bayplan pending`: every pending pod by root cause, and the one change that would free the most."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bayplan.cli.options import option
from bayplan.cli.output import Format, print_pieces, print_value, result_console
from bayplan.cli.scheduler_client import Authority, Insecure, Kubeconfig, Server, TokenFile, ask, endpoint

__all__ = ["pending"]

EXAMPLES = """\
{program} pending
{program} pending --brief -o json
"""


def pending(
    *,
    brief: Annotated[bool, option("--brief", about="leave out the change that would free the most")] = False,
    output: Annotated[Format | None, option("--output", "-o", metavar="FORMAT", about="table by default")] = None,
    server: Server = None,
    token_file: TokenFile = None,
    kubeconfig: Kubeconfig = None,
    certificate_authority: Authority = None,
    insecure_skip_tls_verify: Insecure = False,
) -> int:
    """Show the pending pods of a running scheduler, grouped by what keeps them from running."""
    from bayplan.explain.pending import PendingBoard
    from bayplan.explain.terminal import draw_pending

    where = endpoint(server, token_file, kubeconfig, certificate_authority, insecure_skip_tls_verify)
    board = ask(where, "/pending", PendingBoard, query={} if brief else {"change": "true"})
    form = output or "table"
    if form == "table":
        print_pieces(result_console(), draw_pending(board))
    else:
        print_value(msgspec.to_builtins(board), form)
    return 0
