"""Metrics of this process under the names that every Prometheus client uses: CPU, memory, descriptors, Python, GC.

Read from the operating system at scrape time. Metrics that a system cannot provide (without /proc) are left out.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import sys
from pathlib import Path

from bayplan.observe.metrics import Family, MetricKind, MetricsRegistry, Values

__all__ = ["BUILD_INFO", "register_build", "register_process"]

_PROC = Path("/proc")


def _family(name: str, kind: MetricKind, help: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(name=name, kind=kind, help=help, labels=labels)


CPU_SECONDS = _family("process_cpu_seconds_total", MetricKind.COUNTER, "User and system CPU time spent, in seconds.")
RESIDENT_BYTES = _family("process_resident_memory_bytes", MetricKind.GAUGE, "Resident memory, in bytes.")
VIRTUAL_BYTES = _family("process_virtual_memory_bytes", MetricKind.GAUGE, "Virtual memory, in bytes.")
START_TIME = _family(
    "process_start_time_seconds", MetricKind.GAUGE, "Start of the process, in seconds since the epoch."
)
OPEN_DESCRIPTORS = _family("process_open_fds", MetricKind.GAUGE, "Open file descriptors.")
MAX_DESCRIPTORS = _family("process_max_fds", MetricKind.GAUGE, "File descriptors that may be open at once.")
PYTHON_INFO = _family("python_info", MetricKind.GAUGE, "The Python that runs this.", ("implementation", "version"))
GC_COLLECTIONS = _family(
    "python_gc_collections_total", MetricKind.COUNTER, "Garbage collections, by generation.", ("generation",)
)
GC_COLLECTED = _family(
    "python_gc_objects_collected_total", MetricKind.COUNTER, "Objects that garbage collections freed.", ("generation",)
)
BUILD_INFO = _family("bayplan_build_info", MetricKind.GAUGE, "The Bayplan that runs this.", ("version", "platform"))


def register_process(registry: MetricsRegistry, *, started_at: float) -> None:
    """`started_at` is in seconds since the epoch."""
    registry.read_one(CPU_SECONDS, _cpu_seconds)
    registry.read(VIRTUAL_BYTES, lambda: _memory_pages(0))
    registry.read(RESIDENT_BYTES, lambda: _memory_pages(1) or _peak_memory())
    registry.read_one(START_TIME, lambda: started_at)
    registry.read(OPEN_DESCRIPTORS, _open_descriptors)
    registry.read_one(MAX_DESCRIPTORS, lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    registry.read(PYTHON_INFO, lambda: {(platform.python_implementation(), platform.python_version()): 1})
    registry.read(GC_COLLECTIONS, lambda: _gc_statistics("collections"))
    registry.read(GC_COLLECTED, lambda: _gc_statistics("collected"))


def register_build(registry: MetricsRegistry, *, version: str) -> None:
    registry.read(BUILD_INFO, lambda: {(version, f"{sys.platform}/{platform.machine()}"): 1})


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def _memory_pages(field: int) -> Values:
    """A field of /proc/self/statm: 0 is virtual, 1 is resident."""
    try:
        pages = int((_PROC / "self" / "statm").read_text().split()[field])
    except (OSError, ValueError, IndexError):
        return {}
    return {(): pages * resource.getpagesize()}


def _peak_memory() -> Values:
    """The peak resident memory, for systems without /proc; macOS counts in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {(): peak if sys.platform == "darwin" else peak * 1024}


def _open_descriptors() -> Values:
    try:
        return {(): len(os.listdir(_PROC / "self" / "fd"))}
    except OSError:
        return {}


def _gc_statistics(what: str) -> Values:
    return {(str(generation),): statistics[what] for generation, statistics in enumerate(gc.get_stats())}
