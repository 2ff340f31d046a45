"""Random texts, mutated expressions and hostile devices: `python -m tests.cel.fuzz --minutes 60`.

Whatever the text, compiling gives a program or a `CompileError` and evaluating a value or an `EvaluationError`, in
bounded time, and the fast evaluation agrees with the exact one. Anything else ends the run with the text.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from bayplan.cel import CompileError, EvaluationError
from bayplan.cel.devices import DeviceVariable, device_environment, device_variable
from tests.cel.generator import Generator
from tests.cel.oracle import describe

__all__ = ["check", "main"]

_SLOWEST_SECONDS = 60.0
_PIECES = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    "?",
    ":",
    "'",
    '"',
    "\\",
    "%",
    "\x00",
    "日",
    "\ud800",
    "-",
    "!",
    "&&",
    "||",
    "u",
]
_PIECES += [
    "device",
    ".map(x, ",
    "cel.bind(x, ",
    " in ",
    "0x",
    "1e9",
    "r'",
    "b'",
    "lists.range(99999)",
    ".replace('', 'aaaa')",
]
_PIECES += [".all(x, ", "has(", "dyn(", " + ", "9223372036854775807", "18446744073709551615u", "\n", "//", "`"]


def check(text: str, device: DeviceVariable) -> None:
    """Compile and evaluate a text in both ways."""
    try:
        program = device_environment().compile(text)
    except CompileError:
        return
    exact = program.evaluate(device=device.value)
    try:
        fast = program.value(device=device.value)
    except EvaluationError as error:
        assert exact.error is not None and str(error) == str(exact.error), f"{error} is not {exact.error}"
        return
    assert exact.error is None, f"a value where the exact evaluation has the error {exact.error}"
    assert describe(fast) == describe(exact.value), f"{fast!r} is not {exact.value!r}"


class Mutator:
    """Texts that are close to expressions."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._generator = Generator(seed)

    def text(self) -> str:
        text = str(self._generator.request()["expression"])
        for _ in range(self._random.choice([0, 0, 1, 2, 5, 20])):
            position = self._random.randrange(len(text) + 1)
            length = self._random.choice([0, 0, 1, 3, 10])
            text = text[:position] + self._random.choice(_PIECES) + text[position + length :]
        return text

    def device(self) -> DeviceVariable:
        made = self._generator.request()["device"]
        if self._random.random() < 0.1:
            made["attributes"]["name"] = {"string": self._random.choice(["\ud800", "a" * 10_000, "\x00", "日" * 100])}
        return device_variable(
            driver=made["driver"],
            attributes=made["attributes"],
            capacity=made["capacity"],
            allow_multiple_allocations=made["allowMultipleAllocations"],
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    mutator = Mutator(options.seed)
    end = time.monotonic() + options.minutes * 60
    count, slowest, slowest_text = 0, 0.0, ""
    while time.monotonic() < end:
        text, device = mutator.text(), mutator.device()
        start = time.monotonic()
        try:
            check(text, device)
        except BaseException:
            print(f"after {count} texts, with {device.value}:\n{text!r}", file=sys.stderr)
            raise
        took = time.monotonic() - start
        if took > slowest:
            slowest, slowest_text = took, text
        count += 1
    print(f"{count} texts without a surprise; the slowest took {slowest:.2f} s: {slowest_text[:200]!r}")
    return 1 if slowest > _SLOWEST_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
