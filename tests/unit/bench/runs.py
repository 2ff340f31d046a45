"""Runs to make reports of, as short as tests want them."""

from __future__ import annotations

from typing import Any

from bench.versus.records import Run


def a_run(scheduler: str = "bayplan", **changes: Any) -> Run:
    values: dict[str, Any] = {
        "session": "2026-01-01T00:00:00",
        "workload": "plain",
        "scheduler": scheduler,
        "mode": "backlog",
        "nodes": 5000,
        "pods": 3000,
        "bound": 3000,
        "pods_per_second": 1200.0,
        "p50_ms": 900.0,
        "p99_ms": 2000.0,
        "cpu_life_per_1000": 1.0,
        "cpu_window": {"scheduler": 1.5, "kube-apiserver": 3.0, "etcd": 0.5, "bench": 0.1, "machine": 5.35},
        "window_seconds": 2.5,
        "peak_mib": 120.0,
        "decision_ms": 0.1,
        "first_bound_seconds": 1.5,
        "timeline": [[1.5, 1], [4.0, 3000]],
        "created": [[0.0, 1], [0.0, 3000]],
    }
    return Run(**(values | changes))
