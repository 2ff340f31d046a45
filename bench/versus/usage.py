"""CPU time and memory of processes, as the kernel counts them. A process counts with its children."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuSample:
    """CPU seconds so far, by the name of the process, at one moment."""

    moment: float
    seconds: Mapping[str, float]

    def since(self, earlier: CpuSample) -> dict[str, float]:
        return {name: round(now - earlier.seconds.get(name, 0.0), 3) for name, now in self.seconds.items()}


def sample(pids: Mapping[str, int]) -> CpuSample:
    return CpuSample(time.perf_counter(), {name: cpu_seconds(pid) for name, pid in pids.items()})


def cpu_seconds(pid: int) -> float:
    """Since its start; 0 for a process that is gone."""
    return sum(_own_cpu_seconds(each) for each in family(pid))


def machine_seconds() -> float:
    """CPU seconds that the whole machine was busy since it started."""
    fields = _read(Path("/proc/stat")).partition("\n")[0].split()[1:]
    idle = sum(int(value) for value in fields[3:5])
    # Guests are counted as users already.
    return (sum(int(value) for value in fields[:8]) - idle) / _TICKS


def peak_mib(pid: int) -> float:
    """The most memory it ever held. Children are added, though their peaks may have been at other times."""
    return sum(_status_mib(each, "VmHWM") for each in family(pid))


def resident_mib(pid: int) -> float:
    """What it holds now."""
    return sum(_status_mib(each, "VmRSS") for each in family(pid))


def family(pid: int) -> list[int]:
    """A process and all processes under it."""
    found = [pid]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            found += [int(child) for child in _read(path).split()]
    return found


def _own_cpu_seconds(pid: int) -> float:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def _status_mib(pid: int, field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", _read(Path(f"/proc/{pid}/status")))
    return int(found[1]) / 1024 if found else 0.0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
