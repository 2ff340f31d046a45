"""`bayplan record`: follow a cluster into a file, without writing anything to the cluster."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from bayplan.cli.options import Names, option, path_of, plugin_option
from bayplan.cli.output import CommandError, note
from bayplan.cli.run_flags import duration_of

if TYPE_CHECKING:
    from bayplan.app.settings import Settings
    from bayplan.client.access import ClusterAccess
    from bayplan.sim.recording.follower import Follower
    from bayplan.sim.recording.writing import RecordingWriter

__all__ = ["record"]

EXAMPLES = """\
{program} record cluster.recording
{program} record cluster.recording --for 1h --kubeconfig ~/.kube/staging
{program} record cluster.recording --config scheduler.yaml
"""
ENDED_EARLY = 1
T = TypeVar("T")


def record(
    file: str,
    /,
    *,
    kubeconfig: Annotated[str | None, option("--kubeconfig", metavar="FILE", about="kubeconfig of the cluster")] = None,
    context: Annotated[str | None, option("--context", metavar="NAME", about="context in the kubeconfig")] = None,
    config: Annotated[
        str | None,
        option("--config", metavar="FILE", about="the configuration of the cluster's scheduler"),
    ] = None,
    plugin: Annotated[Names, plugin_option("load, so that what it watches is recorded")] = None,
    duration: Annotated[str | None, option("--for", metavar="TIME", about="how long: 90s, 1h (until Ctrl-C)")] = None,
    size: Annotated[str, option("--size", metavar="SIZE", about="size at which the recording ends (256Mi)")] = "256Mi",
) -> int:
    """Follow a cluster into a compact file that `bayplan simulate` and `bayplan replay` read.

    The cluster is only read: nodes, pods and what else scheduling reads, and no Secrets. A recording that a scheduler
    writes itself (`bayplan run --record`) knows its decisions too. An existing recording is appended to.
    Exit status: 0 stopped or time over, 1 the disk is full or the size is reached, 2 bad input.
    """
    from bayplan.api.quantity import QuantityError, value
    from bayplan.app.settings import load_settings
    from bayplan.cli.stderr_log import log_to_stderr
    from bayplan.client.errors import ClientError
    from bayplan.client.kubeconfig import find_access
    from bayplan.observe.clock import SystemClock
    from bayplan.sim.recording.file import RecordingFile
    from bayplan.sim.recording.writing import RecordingWriter

    log_to_stderr()
    try:
        seconds = None if duration is None else duration_of(duration)
        limit = value(size)
    except QuantityError as error:
        raise CommandError(f"--size: expected a size such as `256Mi`, found `{size}`") from error
    except ValueError as error:
        raise CommandError(f"--for: {error}") from error
    settings = load_settings(path_of(config), plugin or (), enable=True)
    specs = [str(Path(spec).absolute()) if Path(spec).exists() else spec for spec in plugin or ()]
    path = path_of(kubeconfig or None)
    is_full, is_new = threading.Event(), not Path(file).exists()
    target = RecordingFile(Path(file), limit_bytes=limit, on_end=is_full.set)
    if target.cut_bytes:
        note(f"{file}: {target.cut_bytes:,} bytes at its torn end are cut off")
    try:
        access = find_access(clock=SystemClock(), environment=dict(os.environ), kubeconfig=path, context=context)
        writer = RecordingWriter(target, SystemClock(), plugins=specs)
        asyncio.run(_follow(access, writer, settings, is_full=is_full, seconds=seconds))
    except ClientError as error:
        raise CommandError(str(error).split("\nhint:")[0], hint=getattr(error, "hint", "")) from error
    finally:
        target.close()
        if is_new and not target.path.stat().st_size:
            target.path.unlink()
    return ENDED_EARLY if target.ended else 0


async def _follow(
    access: ClusterAccess,
    writer: RecordingWriter,
    settings: Settings,
    *,
    is_full: threading.Event,
    seconds: float | None,
) -> None:
    from bayplan.app.watching import served_kinds
    from bayplan.client.http_transport import HttpTransport
    from bayplan.observe.clock import SystemClock
    from bayplan.sim.recording.follower import Follower

    clock, dice, stop = SystemClock(), random.Random(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    transport = HttpTransport(access, draw=dice.random)
    try:
        kinds = await _unless_stopped(served_kinds(transport), stop)
        if kinds is None:
            return
        follower = Follower(transport, settings, kinds, writer, clock=clock, draw=dice.random)
        following = asyncio.create_task(follower.run(), name="follower")
        beside = [
            asyncio.create_task(_tell_when_ready(follower), name="progress"),
            asyncio.create_task(asyncio.to_thread(is_full.wait), name="disk"),
            asyncio.create_task(stop.wait(), name="signals"),
        ]
        await asyncio.wait({following, *beside[1:]}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        is_full.set()
        for task in (following, *beside):
            task.cancel()
        ended, *_ = await asyncio.gather(following, *beside, return_exceptions=True)
        note(f"{follower.changes} changes recorded")
        if isinstance(ended, Exception):
            raise ended
    finally:
        await transport.close()


async def _unless_stopped(work: Coroutine[Any, Any, T], stop: asyncio.Event) -> T | None:
    """None if a signal came first."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait((working, stopping))


async def _tell_when_ready(follower: Follower) -> None:
    await follower.is_ready.wait()
    note(f"the cluster is read: {follower.changes} objects; changes are recorded from now on")
