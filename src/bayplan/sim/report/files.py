"""Outcomes as files. A file appears whole or not at all: it is written beside its place and then moved there."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bayplan.api.decode import InputError
from bayplan.sim.experiment import RunOutcome

__all__ = ["write_decisions", "write_samples", "write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            beside.write_bytes(data)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", source=str(path)) from error


def write_samples(path: Path, outcomes: Sequence[RunOutcome]) -> None:
    """One line a variant and sample."""
    resources = list(dict.fromkeys(name for o in outcomes for sample in o.samples for name in sample.allocated))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    shares = [f"{what}.{name}" for what in ("allocated", "stranded") for name in resources]
    writer.writerow(["variant", "time", "arrived", "pending", "running", "nodes", "empty_nodes", "imbalance", *shares])
    for outcome in outcomes:
        for sample in outcome.samples:
            row = [sample.time, sample.arrived, sample.pending, sample.running, sample.nodes, sample.empty_nodes]
            amounts = [each.get(name, "") for each in (sample.allocated, sample.stranded) for name in resources]
            writer.writerow([outcome.variant, *row, sample.imbalance, *amounts])
    write_whole(path, text.getvalue().encode())


def write_decisions(path: Path, outcomes: Sequence[RunOutcome]) -> None:
    """One JSON array a line: variant, time, pod, node, message, nominated node, victims."""
    lines = [
        msgspec.json.encode([outcome.variant, *msgspec.to_builtins(line)])
        for outcome in outcomes
        for line in outcome.decisions
    ]
    write_whole(path, b"\n".join(lines) + b"\n")
