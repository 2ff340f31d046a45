"""`make demo` shows what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_shows_six_decisions_and_ends_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )

    assert "default/testpod -> node-10" in done.stdout
    assert "CRD for node not found" in done.stdout
    assert "default/busybox-test-scheduler -> a" in done.stdout
    assert "default/blocked waits" in done.stdout
    assert "scheduler-timestamp" in done.stdout
    assert "claim two-gpus: gpu-b/gpu-1, gpu-b/gpu-2" in done.stdout
