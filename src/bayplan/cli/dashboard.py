"""`bayplan dashboard`: the dashboard of a scheduler in a cluster, in a browser on this machine."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

from bayplan.cli.options import option
from bayplan.cli.output import CommandError, note
from bayplan.cli.scheduler_client import Endpoint, Scheduler, ask, endpoint, transport_to

__all__ = ["dashboard"]

EXAMPLES = """\
{program} dashboard --server https://127.0.0.1:10259 --insecure-skip-tls-verify
{program} dashboard --server https://127.0.0.1:10259 --token-file token --certificate-authority ca.crt
"""


def dashboard(
    *,
    port: Annotated[int, option("--port", metavar="PORT", about="port on 127.0.0.1 (any free one)")] = 0,
    scheduler: Scheduler = None,
) -> int:
    """Show the dashboard of a running scheduler at an address of this machine, until Ctrl-C.

    The pages are served by this command; data is requested from the scheduler as the user of the kubeconfig or the
    token. Only the address that is printed opens them: its token keeps other users of this machine out. Reach a
    scheduler in a cluster with `kubectl port-forward`.
    """
    where = endpoint(scheduler)
    # Nothing is announced before the scheduler has answered once.
    ask(where, "/overview", dict[str, Any])
    asyncio.run(_serve(where, port))
    return 0


async def _serve(where: Endpoint, port: int) -> None:
    from bayplan.explain.http.forwarding import forwarding_routes
    from bayplan.server import ServerOptions, ServerParts, ServingError, serve

    transport = transport_to(where)
    try:
        token = secrets.token_urlsafe(24)
        options = ServerOptions(port=port, is_plain_http=True, loopback_token=token)
        async with serve(options, ServerParts(routes=forwarding_routes(transport, where.server))) as serving:
            note(f"{serving.url}/dashboard/?token={token} shows {where.server}; Ctrl-C ends it")
            await asyncio.Event().wait()
    except ServingError as error:
        problem, _, hint = str(error).partition("\nhint: ")
        raise CommandError(problem, hint=hint) from error
    finally:
        await transport.close()
