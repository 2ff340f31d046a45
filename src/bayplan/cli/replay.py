"""`bayplan replay`: the decisions of a recording, one moment of it, and that moment as a test."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bayplan.cli.options import named_path, option
from bayplan.cli.output import CommandError, Format, escaped, note, print_value, progress, result_console
from bayplan.cli.recordings import choice_lines

if TYPE_CHECKING:
    from bayplan.sim.recording.entries import PodDecided
    from bayplan.sim.recording.moment import Moment

__all__ = ["replay"]

EXAMPLES = """\
{program} replay cluster.recording
{program} replay cluster.recording --pod default/web-0
{program} replay cluster.recording --at 2026-01-05T14:03:00Z
{program} replay cluster.recording --at +90s --pod default/web-0 --pytest
"""


def replay(
    file: str,
    /,
    *,
    at: Annotated[
        str | None,
        option("--at", metavar="TIME", about="the first decision from then on: a time, or +90s"),
    ] = None,
    pod: Annotated[str | None, option("--pod", metavar="NAMESPACE/NAME", about="decisions about this pod")] = None,
    pytest: Annotated[bool, option("--pytest", about="write the moment as a pytest file")] = False,
    to: Annotated[str | None, option("--to", metavar="FILE", about="that file (test_POD.py); - is stdout")] = None,
    output: Annotated[Format | None, option("--output", "-o", metavar="FORMAT", about="table by default")] = None,
) -> int:
    """Show the decisions of a recording; with --at, the cluster at one of them and how it comes out again.

    --pytest writes that moment as a test: the state, the pod, and what is decided. With --pod alone it takes the
    pod's last decision. Of a recording that a follower wrote, bindings stand for decisions.
    Exit status: 0 shown or written, 2 bad input.
    """
    from bayplan.cli.stderr_log import log_to_stderr
    from bayplan.sim.recording.moment import find_moment, list_decisions

    log_to_stderr()
    path = Path(file)
    with progress(f"reading {file}"):
        decisions = list(enumerate(list_decisions(path)))
    wanted = [(number, each) for number, each in decisions if pod is None or each.pod == pod]
    if not wanted:
        what = f"about `{pod}`" if pod else "at all"
        hint = "`bayplan replay FILE` lists all" if pod else "it was recorded before the first one, or none was made"
        raise CommandError(f"{file}: there is no decision {what}", hint=hint)
    if at is None and not pytest:
        _print_list([each for _, each in wanted], output or "table")
        return 0
    if at is None and pod is None:
        raise CommandError("--pytest needs a moment", hint="name it with --at TIME, --pod NAMESPACE/NAME, or both")
    number, then = wanted[-1] if at is None else _first_from(at, wanted, path)
    with progress(f"replaying {file}"):
        moment = find_moment(path, number, then)
    if pytest:
        _write_test(moment, to)
    else:
        _print_moment(moment, output or "table")
    return 0


def _first_from(at: str, decisions: list[tuple[int, PodDecided]], path: Path) -> tuple[int, PodDecided]:
    from bayplan.sim.recording.sessions import first_header
    from bayplan.sim.workloads.units import seconds_of

    try:
        if at.startswith("+"):
            time = first_header(path).time + seconds_of(at[1:])
        else:
            moment = datetime.fromisoformat(at)
            time = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError as error:
        hint = "write 2026-01-05T14:03:00Z, or +90s, +2h30m for a time after the start"
        raise CommandError(f"--at {at}: is no time", hint=hint) from error
    found = next((entry for entry in decisions if entry[1].time >= time), None)
    if found is None:
        last = _shown(decisions[-1][1].time)
        raise CommandError(f"--at {at}: nothing was decided from then on", hint=f"the last decision was at {last}")
    return found


def _shown(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _print_list(decisions: list[PodDecided], form: Format) -> None:
    if form != "table":
        print_value([_machine_form(each) for each in decisions], form)
        return
    from rich.table import Table

    table = Table("TIME", "POD", "ATTEMPT", "DECISION", box=None, pad_edge=False)
    for each in decisions:
        table.add_row(_shown(each.time), escaped(each.pod), str(each.attempt), escaped(_outcome(each)))
    result_console().print(table)


def _outcome(entry: PodDecided) -> str:
    if entry.node:
        return f"-> {entry.node}"
    nominated = f"nominated to {entry.nominated}; " if entry.nominated else ""
    return f"{nominated}waits: {entry.message}"


def _machine_form(entry: PodDecided) -> dict[str, Any]:
    return {
        "time": entry.time,
        "pod": entry.pod,
        "attempt": entry.attempt,
        "node": entry.node,
        "message": entry.message,
        "nominated": entry.nominated,
        "victims": list(entry.victims),
        "feasible": entry.feasible,
        "total": entry.total,
        "ties": entry.ties,
    }


def _print_moment(moment: Moment, form: Format) -> None:
    import msgspec

    from bayplan.api.node import Node
    from bayplan.api.pod import Pod

    nodes = sum(isinstance(item, Node) for item in moment.objects)
    pods = sum(isinstance(item, Pod) and bool(item.spec.node_name) for item in moment.objects)
    if form != "table":
        now = msgspec.to_builtins(moment.now)
        print_value({"then": _machine_form(moment.then), "nodes": nodes, "pods": pods, "now": now}, form)
        return
    console = result_console()
    lines = [
        f"{_shown(moment.time)}: {nodes} nodes, {pods} pods on them",
        escaped(f"  then: {moment.then.pod} {_outcome(moment.then)}"),
        *choice_lines(moment.now),
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _write_test(moment: Moment, to: str | None) -> None:
    from bayplan.sim.recording.moment import pytest_source
    from bayplan.sim.report.files import write_whole

    source = pytest_source(moment)
    _check_passes(source, moment)
    if to == "-":
        print(source, end="")
        return
    name = re.sub(r"\W+", "_", moment.pod.name, flags=re.ASCII)
    target = named_path(to or f"test_{name}.py")
    if to is None and target.exists():
        raise CommandError(f"{target} is there already", hint="name another file with --to FILE")
    write_whole(target, source.encode())
    note(f"{target} written; run it with: pytest {target}")


def _check_passes(source: str, moment: Moment) -> None:
    """Run the test once: what plugins or the search held in memory then is not part of a state."""
    names: dict[str, Any] = {}
    exec(compile(source, "recorded moment", "exec"), names)
    test = next(value for name, value in names.items() if name.startswith("test_"))
    try:
        test()
    except AssertionError as error:
        raise CommandError(
            f"the moment of {moment.pod.key} does not come out the same on its objects alone",
            hint="it depends on what plugins held in memory then; `bayplan simulate` replays the whole",
        ) from error
