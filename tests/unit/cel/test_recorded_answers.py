"""Answers of Kubernetes' own evaluation, recorded by `python -m tests.cel.differential --record`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cel.differential import compare, evaluate

RECORDED = Path(__file__).parents[2] / "cel" / "recorded.jsonl"


def test_values_errors_and_costs_are_those_that_kubernetes_gave() -> None:
    entries = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    different = [
        entry["request"]["expression"]
        for entry in entries
        if compare(evaluate(entry["request"]), entry["answer"]) is not None
    ]

    assert len(entries) >= 500
    assert different == []
