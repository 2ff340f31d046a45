"""`bayplan top`: a live screen of a running scheduler: rates, queue, what pods wait for, the latest decisions.

Drawn again every second from the same answers as the dashboard. q or Ctrl-C ends it; without a terminal it is printed
once. Keys, screen and requests are independent: while the scheduler is silent or gone, the screen stays with the last
figures and their age, and continues when it answers again. Only an error in the first second ends the command.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from bayplan.cli.options import option
from bayplan.cli.output import CommandError, one_line, print_value, result_console
from bayplan.cli.scheduler_client import Endpoint, Scheduler, ask_over, endpoint, transport_to

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from bayplan.client.http_transport import HttpTransport
    from bayplan.explain.model import PendingBoard
    from bayplan.explain.pages.decision_log import LogPage
    from bayplan.explain.pages.overview import Overview
    from bayplan.explain.pages.timeline import TimelinePage
    from bayplan.observe.clock import Clock

__all__ = ["Figures", "News", "Screen", "draw_screen", "top"]

EXAMPLES = """\
{program} top
{program} top --interval 5
{program} top --once
"""
_BARS = "▁▂▃▄▅▆▇█"
_CAUSES_EVERY = 3
"""The causes are requested in one of so many rounds: they take the scheduler longer than the rest."""
_HINT = "  q ends"
_FIRST_SECONDS = 1.0
"""In which an error ends the command and its message stays on the terminal; later errors are shown on the screen."""
_SILENT_SECONDS = 3.0
_TIMEOUT_SECONDS = 30.0
"""For an answer; then the scheduler is asked again."""


def top(
    *,
    interval: Annotated[float, option("--interval", metavar="SECONDS", about="seconds between two pictures (1)")] = 1.0,
    once: Annotated[bool, option("--once", about="print one picture and end")] = False,
    output: Annotated[
        Literal["json", "yaml"] | None, option("--output", "-o", metavar="FORMAT", about="print the figures and end")
    ] = None,
    scheduler: Scheduler = None,
) -> int:
    """Show a running scheduler live: rates, queue, what pods wait for, and the latest decisions. q ends it."""
    if not 0.2 <= interval <= 3600:
        raise CommandError("--interval is a number of seconds from 0.2 to 3600")
    where = endpoint(scheduler)
    is_live = sys.stdout.isatty() and not once and output is None
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_watch(where, interval) if is_live else _print_once(where, output))
    return 0


class Figures(NamedTuple):
    overview: Overview
    timeline: TimelinePage
    log: LogPage
    pending: PendingBoard


class Screen:
    """The requests for one picture."""

    def __init__(self, transport: HttpTransport, where: Endpoint) -> None:
        self._transport, self._where = transport, where
        self._rounds = 0
        self._causes: PendingBoard | None = None

    async def figures(self) -> Figures:
        from bayplan.explain.model import PendingBoard
        from bayplan.explain.pages.decision_log import LogPage
        from bayplan.explain.pages.overview import Overview
        from bayplan.explain.pages.timeline import TimelinePage

        overview = await ask_over(self._transport, self._where, "/overview", Overview)
        timeline = await ask_over(self._transport, self._where, "/timeline", TimelinePage)
        log = await ask_over(self._transport, self._where, "/log", LogPage, query={"limit": "20"})
        if self._causes is None or self._rounds % _CAUSES_EVERY == 0:
            self._causes = await ask_over(self._transport, self._where, "/pending", PendingBoard)
        self._rounds += 1
        return Figures(overview, timeline, log, self._causes)


class News:
    """What the scheduler answered last, and since when it has been silent."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server, self._clock = server, clock
        self._answered = self._asked = clock.monotonic()
        self._is_asking = False
        self.figures: Figures | None = None
        self.problem: CommandError | None = None

    async def follow(self, figures: Callable[[], Awaitable[Figures]], interval: float, woken: asyncio.Event) -> None:
        """Ask again and again, whatever comes of it."""
        while True:
            self._asked, self._is_asking = self._clock.monotonic(), True
            try:
                self.figures = await figures()
                self._answered, self.problem = self._clock.monotonic(), None
            except CommandError as error:
                self.problem = error
            self._is_asking = False
            woken.set()
            await self._clock.sleep(interval)

    def pieces(self, *, height: int, width: int) -> Iterator[RenderableType]:
        """What to draw now."""
        from rich.text import Text

        notice = self.notice()
        if self.figures is not None:
            yield from draw_screen(*self.figures, height=height, width=width, hint=_HINT, notice=notice)
            return
        yield Text.assemble((f"asking {self._server}", "bold"), (_HINT, "dim"))
        yield Text(notice, style="yellow")
        if self.problem is not None and self.problem.hint:
            yield Text(one_line(self.problem.hint), style="dim")

    def notice(self) -> str:
        """Why the figures are old, or not there; empty while the scheduler answers."""
        now = self._clock.monotonic()
        silent = now - self._asked if self._is_asking else 0.0
        if self.problem is not None:
            reason = one_line(self.problem.problems[0])
        elif silent >= _SILENT_SECONDS:
            reason = f"{self._server} has been silent for {silent:.0f} s"
        else:
            return ""
        return reason if self.figures is None else f"{now - self._answered:.0f} s old: {reason}"


def draw_screen(
    overview: Overview,
    timeline: TimelinePage,
    log: LogPage,
    board: PendingBoard,
    *,
    height: int,
    width: int,
    hint: str = "",
    notice: str = "",
) -> Iterator[RenderableType]:
    """As many causes and decisions as the height holds; `notice` says why the figures are not of now."""
    from rich.text import Text

    from bayplan.explain.claims.phrases import counted
    from bayplan.explain.terminal.tables import plain

    rows = max(2, (height - 14) // 2)
    queue = overview.queue
    waiting = [sum(at) for at in zip(timeline.active, timeline.backoff, timeline.gated, strict=True)]
    yield Text.assemble(
        (f"{counted(overview.nodes, 'node')}, {counted(overview.pods, 'pod')} on them", "bold"), (hint, "dim")
    )
    yield Text(notice, style="yellow", no_wrap=True, overflow="ellipsis")
    for name, values, said, style in (
        ("bound / s", timeline.bound, f"{overview.bound_per_second:,.1f}", "blue"),
        ("p99 ms", timeline.p99, f"{overview.p99_ms:,.1f}", "blue"),
        ("waiting", waiting, f"{queue['active'] + queue['backoff'] + queue['gated']:,}", "yellow"),
        ("refused", timeline.unschedulable, f"{queue['unschedulable']:,}", "red"),
    ):
        bars = _sparkline(values, max(8, min(60, width - 26)))
        yield Text.assemble((f"{name:<10}", "dim"), f"{said:>10}  ", (bars, style))
    used = ", ".join(f"{plain(name)} {share:.0f} %" for name, share in sorted(overview.used.items()) if share >= 0.5)
    yield Text.assemble(("requested ", "dim"), used or "nothing", no_wrap=True, overflow="ellipsis")
    yield Text()
    yield _causes(board, rows)
    yield Text()
    yield _decisions(log, rows, overview.time)


def _causes(board: PendingBoard, rows: int) -> RenderableType:
    from rich.text import Text

    from bayplan.explain.terminal.tables import plain, simple_table

    table = simple_table("pods", "wait because of", figures=("pods",))
    for cause in board.causes[:rows]:
        table.add_row(f"{cause.count:,}", Text(plain(cause.title), no_wrap=True, overflow="ellipsis"))
    return table if board.causes else Text("No pod is pending.", style="dim")


def _decisions(log: LogPage, rows: int, now: float) -> RenderableType:
    from rich.text import Text

    from bayplan.explain.terminal.tables import plain, simple_table

    styles = {"bound": "blue", "unschedulable": "red", "error": "red"}
    table = simple_table("ago", "pods", "outcome", "node or reason", figures=("ago",))
    for group in log.groups[:rows]:
        name = group.pod if group.pods == 1 else f"{group.pods:,} × {group.template}"
        nodes = group.node if group.nodes == 1 else f"{group.nodes:,} nodes"
        table.add_row(
            _span(max(0.0, now - group.last)),
            Text(plain(name), no_wrap=True, overflow="ellipsis"),
            Text(group.outcome, style=styles.get(group.outcome, "")),
            Text(plain(group.reason or nodes), no_wrap=True, overflow="ellipsis"),
        )
    return table if log.groups else Text("No pod has been decided on yet.", style="dim")


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _sparkline(values: Sequence[float | None], width: int) -> str:
    newest = [value or 0.0 for value in values[-width:]]
    highest = max(newest, default=0.0)
    if not highest:
        return _BARS[0] * len(newest)
    return "".join(_BARS[min(7, int(value / highest * 7.999))] for value in newest)


async def _print_once(where: Endpoint, output: Literal["json", "yaml"] | None) -> None:
    async with _screen(where) as screen:
        figures = await screen.figures()
    if output is not None:
        import msgspec

        print_value(msgspec.to_builtins(figures._asdict()), output)
        return
    console = result_console()
    for piece in draw_screen(*figures, height=40, width=console.width):
        console.print(piece)


async def _watch(where: Endpoint, interval: float) -> None:
    from bayplan.observe.clock import SystemClock

    news = News(where.server, SystemClock())
    async with _screen(where, timeout_seconds=_TIMEOUT_SECONDS) as screen, asyncio.TaskGroup() as tasks:
        with _keys() as keys:
            following = tasks.create_task(news.follow(screen.figures, interval, keys.woken), name="ask the scheduler")
            try:
                failed = await _show(result_console(), news, keys)
            finally:
                following.cancel()
    if failed is not None:
        raise failed


async def _show(console: Console, news: News, keys: _Keys) -> CommandError | None:
    """Draw until a key ends it. Returns the error of a first answer that is one."""
    from rich.console import Group
    from rich.live import Live

    await keys.wait(_FIRST_SECONDS)
    if news.problem is not None:
        return news.problem
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not keys.is_end:
            live.update(Group(*news.pieces(height=console.height, width=console.width)), refresh=True)
            await keys.wait(1.0)
    return None


@contextlib.asynccontextmanager
async def _screen(where: Endpoint, **options: float) -> AsyncIterator[Screen]:
    transport = transport_to(where, **options)
    try:
        yield Screen(transport, where)
    finally:
        await transport.close()


class _Keys:
    """Waits for q or news; other keys have no effect."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.is_end = False

    async def wait(self, seconds: float) -> None:
        """Until there is something new, or the time has passed."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), seconds)
        self.woken.clear()

    def read(self) -> None:
        try:
            pressed = os.read(sys.stdin.fileno(), 64)
        except OSError:
            pressed = b""
        # Nothing to read means that the terminal is gone.
        if not pressed or any(key in b"qQ\x03\x04" for key in pressed):
            self.is_end = True
            self.woken.set()


@contextlib.contextmanager
def _keys() -> Iterator[_Keys]:
    """Keys as they are pressed, without Enter, where standard input is a terminal."""
    keys = _Keys()
    if not sys.stdin.isatty():
        yield keys
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin.fileno())
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), keys.read)
    try:
        yield keys
    finally:
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
