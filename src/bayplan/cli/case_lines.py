"""Evaluates case files line by line.

A line that cannot be evaluated is reported on standard error with its position, answered with an `error`, and does not
stop the others; the exit status is nonzero then.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import msgspec

from bayplan.api.decode import InputError
from bayplan.cli.options import named_path
from bayplan.cli.output import BAD_INPUT, print_error, progress
from bayplan.explain.offline.cases import CaseError, CaseEvaluator

__all__ = ["evaluate_lines"]

_GZIP_MAGIC = b"\x1f\x8b"
_NOT_SCHEDULABLE = 1


def evaluate_lines(source: str, evaluator: CaseEvaluator, *, require_schedulable: bool = False) -> int:
    """Write `{"id": …, "result": …}` for every case of a file, or of standard input for `-`; the exit status."""
    name = "standard input" if source == "-" else source
    out = sys.stdout.buffer
    problems = pending = 0
    with _opened(source) as stream, progress(f"evaluating {name}") as done:
        for number, line in _lines(stream, name):
            answer = _answer(line, number, name, evaluator)
            out.write(msgspec.json.encode(answer) + b"\n")
            out.flush()
            done.step()
            problems += "error" in answer
            pending += _is_pending(answer.get("result"))
    if problems:
        return BAD_INPUT
    return _NOT_SCHEDULABLE if pending and require_schedulable else 0


@contextmanager
def _opened(source: str) -> Iterator[IO[bytes]]:
    with ExitStack() as closing:
        stream: Any = sys.stdin.buffer
        if source != "-":
            try:
                stream = closing.enter_context(open(named_path(source), "rb"))
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise InputError(f"cannot be read: {reason}", source=source) from None
        # By content, not by name, so that it works for pipes too.
        if stream.peek(2)[:2] == _GZIP_MAGIC:
            stream = closing.enter_context(gzip.GzipFile(fileobj=stream))
        yield stream


def _lines(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, line
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(f"cannot be read on: {error}", source=name, where=f"after line {number}") from None


def _answer(line: bytes, number: int, name: str, evaluator: CaseEvaluator) -> dict[str, Any]:
    identity: Any = number
    try:
        case = msgspec.json.decode(line)
        identity = case.get("id", number) if isinstance(case, dict) else number
        return {"id": identity, "result": evaluator.evaluate(case)}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"not valid JSON: {error}"
    except CaseError as error:
        problem = str(error)
    except Exception as error:  # a fault of ours in one case must not hide the others
        problem = f"internal error: {type(error).__name__}: {error}"
    print_error([f"{name}: line {number}: {problem}"])
    return {"id": identity, "error": problem}


def _is_pending(result: Any) -> bool:
    steps = result if isinstance(result, list) else [result]
    return any(isinstance(step, dict) and "message" in step for step in steps)
