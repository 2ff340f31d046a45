from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.observe import process_metrics
from bayplan.observe.metrics import MetricsRegistry
from bayplan.observe.process_metrics import register_build, register_process


def readings() -> dict[str, dict[tuple[str, ...], object]]:
    registry = MetricsRegistry()
    register_process(registry, started_at=1_700_000_000.0)
    register_build(registry, version="1.2.3")
    return {reading.family.name: dict(reading.values) for reading in registry.collect()}


def test_a_process_tells_its_size_age_and_descriptors() -> None:
    found = readings()

    assert found["process_start_time_seconds"] == {(): 1_700_000_000.0}
    assert found["process_cpu_seconds_total"][()] > 0  # type: ignore[operator]
    assert found["process_resident_memory_bytes"][()] > 1 << 20  # type: ignore[operator]
    assert found["process_max_fds"][()] > 0  # type: ignore[operator]
    assert set(found["python_gc_collections_total"]) == {("0",), ("1",), ("2",)}


def test_the_build_is_told_by_its_version() -> None:
    ((version, _),) = readings()["bayplan_build_info"]

    assert version == "1.2.3"


def test_a_system_without_proc_leaves_out_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_metrics, "_PROC", tmp_path)
    found = readings()

    assert "process_open_fds" not in found
    assert "process_virtual_memory_bytes" not in found
    assert found["process_resident_memory_bytes"][()] > 1 << 20  # type: ignore[operator]
