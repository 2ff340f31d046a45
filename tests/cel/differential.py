"""Random expressions evaluated here and by Kubernetes: `python -m tests.cel.differential --oracle FILE --count 20000`.

The value, the error, the cost, the estimate and the compile error must be the same. Differences that are known and
meant are recognised by `documented`, counted, and listed in `docs/cel.md`. Map iteration has no order in Go: answers
that vary there are skipped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bayplan.cel import CompileError, Evaluation
from bayplan.cel.devices import compile_selector, device_environment, device_variable
from tests.cel.generator import Generator
from tests.cel.oracle import Oracle, build, describe

__all__ = ["compare", "evaluate", "main", "run"]

_BATCH = 500
_LONGEST_RECORDED = 120
_PATIENCE = 50
"""Evaluations of an expression whose answer differs, to see whether it varies with the order of maps."""


def evaluate(request: dict[str, Any]) -> dict[str, Any]:
    """Our answer to a request of the oracle."""
    device = request["device"]
    view = device_variable(
        driver=device["driver"],
        attributes=device["attributes"],
        capacity=device["capacity"],
        allow_multiple_allocations=device["allowMultipleAllocations"],
        list_attributes=request["lists"],
    )
    try:
        if request["mode"] == "selector":
            selector = compile_selector(request["expression"], list_attributes=request["lists"])
            return _answer(selector.evaluate(view), selector.max_cost, is_described=False)
        program = device_environment(list_attributes=request["lists"]).compile(request["expression"])
        return _answer(program.evaluate(device=view.value), 0, is_described=True)
    except CompileError as error:
        return {"compileError": str(error)}


def _answer(evaluation: Evaluation, max_cost: int, *, is_described: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"cost": evaluation.cost, "maxCost": max_cost}
    if evaluation.error is not None:
        answer["error"] = str(evaluation.error)
    else:
        answer["value"] = describe(evaluation.value) if is_described else evaluation.value
    return answer


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """The first thing that differs."""
    for field in ("compileError", "error", "value", "cost", "maxCost"):
        if ours.get(field) != theirs.get(field) and not (field == "maxCost" and "compileError" in ours):
            return field
    return None


def documented(expression: str, ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """The name of a difference that is meant."""
    if ".sub(" in expression and "9223372036854775808" in expression:
        return "the smallest integer subtracted from a quantity"
    if theirs.get("unstable"):
        return "the order of maps"
    if "unsupported key type" in ours.get("error", ""):
        return "keys of maps that are neither text nor numbers"
    compile_errors = [answer.get("compileError", "") for answer in (ours, theirs)]
    if all("Syntax error" in error for error in compile_errors):
        return "the wording of syntax errors"
    if theirs.get("error", "").startswith(("internal error", "panic")):
        return "a crash of the oracle"
    return None


def _shown(field: str, request: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    sides = "\n".join(f"  {name:<7}{_short(answer)}" for name, answer in (("ours", ours), ("theirs", theirs)))
    return f"--- {field}: {request['expression']}\n{sides}\n  device {request['device']}"


def _short(answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"compileError": answer["compileError"].split("\n |")[0]} if "compileError" in answer else answer


def record(oracle: Oracle, generator: Generator, count: int, file: Path) -> None:
    """Write short expressions with their answers, for tests that run without the oracle."""
    lines: list[str] = []
    while len(lines) < count:
        requests = [request for request in (generator.request() for _ in range(_BATCH)) if _is_short(request)]
        for request, answer in zip(requests, oracle.ask(requests), strict=True):
            if documented(request["expression"], answer, answer) is None and len(lines) < count:
                lines.append(json.dumps({"request": request, "answer": answer}, ensure_ascii=False))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _is_short(request: dict[str, Any]) -> bool:
    return len(request["expression"]) <= _LONGEST_RECORDED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", type=Path, required=True, help="the oracle program; built there if it is missing")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="differences to print")
    parser.add_argument("--record", type=Path, help="write short expressions and their answers there, and stop")
    options = parser.parse_args()
    if options.record is not None:
        with Oracle(build(options.oracle), repeat=_PATIENCE) as oracle:
            record(oracle, Generator(options.seed), options.count, options.record)
        return 0
    differences, counts = run(build(options.oracle), count=options.count, seed=options.seed, show=options.show)
    told = ", ".join(f"{name}: {number}" for name, number in counts.most_common())
    print(f"{options.count} expressions, {differences} differences; {told}")
    return 1 if differences else 0


def run(program: Path, *, count: int, seed: int, show: int) -> tuple[int, Counter[str]]:
    """How many answers differ, and how many there were of each sort. The first differences are printed."""
    generator = Generator(seed)
    counts: Counter[str] = Counter()
    differences = 0
    with Oracle(program) as oracle, Oracle(program, repeat=_PATIENCE) as patient:
        for start in range(0, count, _BATCH):
            requests = [generator.request() for _ in range(min(_BATCH, count - start))]
            for request, theirs in zip(requests, oracle.ask(requests), strict=True):
                ours = evaluate(request)
                counts["compile error" if "compileError" in theirs else "error" if "error" in theirs else "value"] += 1
                field = compare(ours, theirs)
                if field is None:
                    continue
                (again,) = patient.ask([request])
                known = documented(request["expression"], ours, again)
                if known is not None:
                    counts[f"documented: {known}"] += 1
                    continue
                differences += 1
                if differences <= show:
                    print(_shown(field, request, ours, theirs))
    return differences, counts


if __name__ == "__main__":
    sys.exit(main())
