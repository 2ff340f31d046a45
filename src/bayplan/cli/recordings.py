"""What `bayplan simulate` and `bayplan replay` print of recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayplan.cli.output import CommandError, Format, note, print_value, progress, result_console

if TYPE_CHECKING:
    from bayplan.sim.compare import Divergence
    from bayplan.sim.recording.replay import ReplayOutcome

__all__ = ["DIFFERS", "print_divergence", "replay_then"]

DIFFERS = 1


def replay_then(path: Path, *, output: Format, decisions: str | None) -> int:
    """Replay with the policy of then, and say whether every decision is the same; the exit status."""
    from bayplan.sim.engine.simulation import SimulationError
    from bayplan.sim.recording.replay import replay_recording

    try:
        with progress(f"replaying {path}"):
            outcome = replay_recording(path)
    except SimulationError as error:
        raise CommandError(f"{path}: {error}") from error
    if decisions is not None:
        _write_lines(Path(decisions), outcome)
    for text in outcome.notes:
        note(text)
    if output == "table":
        _print_outcome(outcome)
    else:
        print_value(_machine_form(outcome), output)
    return 0 if outcome.difference is None else DIFFERS


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
        line = choice.line
        where = f"-> {line.node}" if line.node else f"waits: {line.message}"
        console.print(f"  {choice.variant}: {line.pod} {where}", markup=False, highlight=False, soft_wrap=True)
        if line.nominated:
            victims = ", ".join(line.victims) or "nobody"
            text = f"    nominated to {line.nominated}, for which has to leave: {victims}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        for name, total, points in choice.nodes:
            said = ", ".join(f"{plugin} {share}" for plugin, share in points.items() if share)
            text = f"    {name} {total} points{f': {said}' if said else ''}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        if choice.feasible:
            ties = f", {choice.ties} with the most points" if choice.ties > 1 else ""
            console.print(f"    {choice.feasible} nodes fit{ties}", markup=False, highlight=False, soft_wrap=True)
