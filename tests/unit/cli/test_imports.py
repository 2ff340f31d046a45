"""Commands that ask a scheduler are quick: they read and draw answers without the engine that computes them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "bayplan.framework", "bayplan.app", "bayplan.cache", "bayplan.apiserver")


@pytest.mark.parametrize(
    "module", ["bayplan.explain.model", "bayplan.explain.terminal.explanations", "bayplan.cli.pending"]
)
def test_answers_are_read_and_drawn_without_the_engine(module: str) -> None:
    script = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert answer.stdout.strip() == "[]"
