"""The table of docs/internals/side-by-side.md says what bench/results/versus.md has."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


def rows_under(path: str, header: str) -> list[list[str]]:
    """The cells of the table with this header."""
    lines = iter((REPOSITORY / path).read_text().splitlines())
    next(line for line in lines if line.startswith(header))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_table_has_the_figures_of_the_newest_runs() -> None:
    speed = rows_under("bench/results/versus.md", "| workload | mode | nodes | pods |")
    processors = rows_under("bench/results/versus.md", "| workload | mode | nodes | scheduler |")
    from_start = {tuple(row[:4]): row[4] for row in processors}
    measured = set()
    for workload, mode, nodes, _, theirs, ours, times, _, share, _, decision, _, _, memory in speed:
        cpu = " / ".join(from_start.get((workload, mode, nodes, name), "-") for name in ("kube-scheduler", "bayplan"))
        measured.add((theirs, ours, times, share, decision, cpu, memory))
    shown = rows_under("docs/internals/side-by-side.md", "| workload | kube-scheduler, pods/s |")
    assert [row for row in shown if tuple(row[1:]) not in measured] == []
