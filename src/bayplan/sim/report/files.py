"""Outcomes as files. A file appears whole or not at all: it is written beside its place and then moved there."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bayplan.api.decode import InputError
from bayplan.sim.experiment import RunOutcome

__all__ = [
    "is_written_in_place",
    "parquet_bytes",
    "sample_rows",
    "write_decisions",
    "write_parquet",
    "write_samples",
    "write_whole",
]

_DESCRIPTORS = ("/dev/fd/", "/dev/stdout", "/dev/stderr", "/proc/")
_NAME_LETTERS = 50
"""Of a file, in the name of the one beside it, which must not become too long."""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, or replace one; a device or a pipe gets the bytes as they are, and stays. Raises InputError."""
    try:
        if is_written_in_place(path):
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", source=str(path)) from error


def is_written_in_place(path: Path) -> bool:
    """Whether there is no regular file to replace: a device, a pipe, or a descriptor such as /dev/stdout."""
    return str(path).startswith(_DESCRIPTORS) or (path.exists() and not path.is_file())


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name[:_NAME_LETTERS]}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_samples(path: Path, outcomes: Sequence[RunOutcome]) -> None:
    """One line a variant and sample."""
    text, rows = io.StringIO(), sample_rows(outcomes)
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["variant"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def sample_rows(outcomes: Sequence[RunOutcome]) -> list[dict[str, Any]]:
    """The numbers of all samples, each row with the same columns: nested ones have dotted names."""
    rows = [
        {"variant": outcome.variant, **_flat(msgspec.to_builtins(sample))}
        for outcome in outcomes
        for sample in outcome.samples
    ]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name, 0.0) for name in columns} for row in rows]


def _flat(sample: dict[str, Any]) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    for name, value in sample.items():
        if isinstance(value, dict):
            found.update({f"{name}.{key}": float(number) for key, number in value.items()})
        elif isinstance(value, int | float):
            found[name] = value
    return found


def write_parquet(path: Path, outcomes: Sequence[RunOutcome]) -> None:
    """The samples; needs polars or pyarrow."""
    write_whole(path, parquet_bytes(sample_rows(outcomes)))


def parquet_bytes(rows: list[dict[str, Any]]) -> bytes:
    """Raises InputError where no library is there that can write it."""
    data = io.BytesIO()
    try:
        import_module("polars").DataFrame(rows, infer_schema_length=None).write_parquet(data)
        return data.getvalue()
    except ImportError:
        pass
    try:
        table = import_module("pyarrow").Table.from_pylist(rows)
        import_module("pyarrow.parquet").write_table(table, data)
        return data.getvalue()
    except ImportError:
        raise InputError("Parquet needs polars or pyarrow\nhint: pip install polars") from None


def write_decisions(path: Path, outcomes: Sequence[RunOutcome]) -> None:
    """One JSON array a line: variant, time, pod, node, message, nominated node, victims."""
    lines = [
        msgspec.json.encode([outcome.variant, *msgspec.to_builtins(line)])
        for outcome in outcomes
        for line in outcome.decisions
    ]
    write_whole(path, b"\n".join(lines) + b"\n")
