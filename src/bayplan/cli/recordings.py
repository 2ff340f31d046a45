"""What `bayplan simulate` and `bayplan replay` print of recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayplan.cli.options import named_path
from bayplan.cli.output import CommandError, Format, escaped, note, print_value, progress, result_console

if TYPE_CHECKING:
    from bayplan.sim.compare import Choice, Divergence
    from bayplan.sim.recording.bindings import BindingReport
    from bayplan.sim.recording.replay import ReplayOutcome

__all__ = ["DIFFERS", "choice_lines", "print_divergence", "replay_then"]

DIFFERS = 1


def replay_then(path: Path, *, output: Format, decisions: str | None) -> int:
    """Replay with the policy of then, and say whether every decision is the same; the exit status."""
    from bayplan.sim.engine.simulation import SimulationError
    from bayplan.sim.recording.replay import replay_recording
    from bayplan.sim.recording.sessions import first_header

    if first_header(path).by != "scheduler":
        return _judge(path, output)
    try:
        with progress(f"replaying {path}"):
            outcome = replay_recording(path)
    except SimulationError as error:
        raise CommandError(f"{path}: {error}") from error
    if decisions is not None:
        _write_lines(named_path(decisions), outcome)
    for text in outcome.notes:
        note(text)
    if output == "table":
        _print_outcome(outcome)
    else:
        print_value(_machine_form(outcome), output)
    return 0 if outcome.difference is None else DIFFERS


def _judge(path: Path, output: Format) -> int:
    """What a follower saw: the exit status is 1 if a binding differs of which the state is certain."""
    import msgspec

    from bayplan.sim.recording.bindings import OTHER, SAME, TIE, judge_bindings

    with progress(f"replaying {path}"):
        report = judge_bindings(path)
    for text in report.notes:
        note(text)
    differs = report.count(OTHER, is_certain=True)
    if output != "table":
        print_value(msgspec.to_builtins(report), output)
        return DIFFERS if differs else 0
    unsure = sum(not each.is_certain for each in report.bindings)
    print(f"{len(report.bindings)} bindings seen by a follower, decided again on the state that it saw:")
    for verdict in (SAME, TIE, OTHER):
        certain, every = report.count(verdict, is_certain=True), report.count(verdict)
        print(f"  {every:6} {verdict}{f', {certain} of them certain' if every else ''}")
    if unsure:
        print(f"{unsure} are not certain: other changes were seen between the waiting pod and its binding")
    if report.first_difference is not None:
        _print_difference(report)
    return DIFFERS if differs else 0


def _print_difference(report: BindingReport) -> None:
    found = report.first_difference
    assert found is not None
    seen = next(each for each in report.bindings if each.pod == found.line.pod and each.time == found.line.time)
    console = result_console()
    console.print("\nthe first certain one to another node:", markup=False)
    console.print(escaped(f"  then: {seen.pod} -> {seen.node}"), markup=False, highlight=False, soft_wrap=True)
    _print_choice(console, found)


def _write_lines(path: Path, outcome: ReplayOutcome) -> None:
    import msgspec

    from bayplan.sim.report.files import write_whole

    write_whole(path, b"".join(msgspec.json.encode(line) + b"\n" for line in outcome.lines))


def _print_outcome(outcome: ReplayOutcome) -> None:
    if outcome.difference is None:
        print(f"{outcome.decisions} decisions replayed, {outcome.bound} of them with a node: all as they were")
        return
    print_divergence(result_console(), outcome.difference)


def _machine_form(outcome: ReplayOutcome) -> dict[str, Any]:
    import msgspec

    return {
        "decisions": outcome.decisions,
        "withNode": outcome.bound,
        "isEqual": outcome.difference is None,
        "difference": msgspec.to_builtins(outcome.difference),
        "notes": outcome.notes,
    }


def print_divergence(console: Any, found: Divergence) -> None:
    """The first decision that differs, with the points of both sides."""
    first, second = found.choices
    console.print(
        f"\n{second.variant} parts from {first.variant} after {found.number} equal decisions:",
        markup=False,
        soft_wrap=True,
    )
    for choice in found.choices:
        _print_choice(console, choice)


def _print_choice(console: Any, choice: Choice) -> None:
    for text in choice_lines(choice):
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def choice_lines(choice: Choice) -> list[str]:
    """A decision with the points of its best nodes."""
    line = choice.line
    lines = [f"  {choice.variant}: {line.pod} {f'-> {line.node}' if line.node else f'waits: {line.message}'}"]
    if line.nominated:
        lines.append(f"    nominated to {line.nominated}; has to leave: {', '.join(line.victims) or 'nobody'}")
    for name, total, points in choice.nodes:
        said = ", ".join(f"{plugin} {share}" for plugin, share in points.items() if share)
        lines.append(f"    {name} {total} points{f': {said}' if said else ''}")
    if choice.feasible:
        ties = f", {choice.ties} with the most points" if choice.ties > 1 else ""
        lines.append(f"    {choice.feasible} nodes fit{ties}")
    return [escaped(each) for each in lines]
