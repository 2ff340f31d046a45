"""The oracle of the CEL tests: Kubernetes' own evaluation of device expressions (`tests/controlplane/go/cel`)."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from bayplan.cel.library.formats import Format
from bayplan.cel.library.formatting import ESCAPES
from bayplan.cel.library.network import CIDR, IP
from bayplan.cel.library.quantity import Quantity
from bayplan.cel.library.semver import Semver
from bayplan.cel.times import SECOND, Duration, Timestamp
from bayplan.cel.values import Optional, TypeValue, Uint, Value, show_double

__all__ = ["SOURCE", "Oracle", "build", "describe"]

SOURCE = Path(__file__).parents[1] / "controlplane" / "go" / "cel"

Answer = dict[str, Any]


def build(target: Path) -> Path:
    """The program, built with Go unless it is there."""
    if not target.exists():
        subprocess.run(["go", "build", "-o", str(target), "."], cwd=SOURCE, check=True)
    return target


class Oracle:
    """A running oracle; one answer for each request, in order."""

    def __init__(self, program: Path, repeat: int = 3) -> None:
        self._process = subprocess.Popen(
            [str(program), "-repeat", str(repeat)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *problem: object) -> None:
        self._pipe(self._process.stdin).close()
        self._process.wait()
        self._pipe(self._process.stdout).close()

    def ask(self, requests: Iterable[dict[str, Any]]) -> list[Answer]:
        """The answers to a batch that is small enough for the pipe."""
        lines = [json.dumps(request) for request in requests]
        answers: list[Answer] = []
        for start in range(0, len(lines), 16):
            chunk = lines[start : start + 16]
            pipe = self._pipe(self._process.stdin)
            pipe.write("\n".join(chunk) + "\n")
            pipe.flush()
            answers += [json.loads(self._pipe(self._process.stdout).readline()) for _ in chunk]
        return answers

    def _pipe(self, pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None, "the process was started with pipes"
        return pipe


def describe(value: Value) -> str:
    """A value in the words of the oracle."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{int(value)}u"
        case int():
            return str(value)
        case float():
            return f"double {show_double(value)}"
        case str():
            return _quoted(value)
        case bytes():
            return f"bytes {b64encode(value).decode()}"
        case Duration():
            return f"duration {value.nanoseconds}ns"
        case Timestamp():
            return f"timestamp {value.nanoseconds // SECOND}.{value.nanoseconds % SECOND:09d}"
        case TypeValue():
            return f"type {value}"
        case Optional():
            return f"optional({describe(value.content)})" if value.is_present else "optional.none"
        case Quantity():
            return f"quantity {Fraction(value.nanos, 10**9)}"
        case Semver():
            return f"semver {value}"
        case Format():
            return f"format {value}"
        case IP():
            return f"ip {value}"
        case CIDR():
            return f"cidr {value}"
        case dict():
            return "{" + "".join(sorted(f"{describe(key)}:{describe(entry)}," for key, entry in value.items())) + "}"
        case list():
            return "[" + "".join(f"{describe(element)}," for element in value) + "]"
    return str(value)


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in ESCAPES:
        return ESCAPES[character]
    if 0x20 <= code < 0x7F:
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
