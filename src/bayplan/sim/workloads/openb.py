"""The openb trace of Alibaba's GPU clusters (Weng et al., USENIX ATC'23): its node lists and pod lists as objects.

A pod asks for GPUs by the extended resource of the GPU sharing plugins, in thousandths, and for models by a node
affinity. Files are CSV, gzipped or not; a problem is reported with its line.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from bayplan.api.decode import InputError
from bayplan.api.meta import Metadata
from bayplan.api.node import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, NodeStatus
from bayplan.api.pod import Affinity, Container, NodeAffinity, Pod, PodSpec, ResourceRequirements
from bayplan.api.quantity import Quantity, value
from bayplan.sim.engine.controllers import check_name
from bayplan.sim.engine.simulation import Simulation
from bayplan.sim.engine.timeline import Action

__all__ = [
    "MILLI",
    "MODEL",
    "OpenbPod",
    "OpenbWorkload",
    "milli_of",
    "openb_pod",
    "read_nodes",
    "read_pods",
    "scaled",
]

MILLI = "alibabacloud.com/gpu-milli"
MODEL = "alibabacloud.com/gpu-card-model"
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_MORE_POD_COLUMNS = ("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
_NAMESPACE = "openb"
_MOST_DIGITS = 9
"""A million cores, or a pebibyte: totals over all nodes stay within 64 bits."""
_MOST_GPUS = 1000
"""Of a node."""
_LATEST_SECONDS = 10_000_000_000
"""300 years: times since the epoch are below, and dates stay dates."""
_MOST_DEMANDED = 1_000_000
"""Pods that never end, of two kilobytes each. Ten thousand percent of the published cluster are 830,000."""
_BETWEEN_SECONDS = 0.01
"""Between two arrivals where the list's own times do not count."""


class OpenbPod(NamedTuple):
    """A line of a pod list."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    """Of each GPU."""
    models: tuple[str, ...] = ()
    created: float | None = None
    deleted: float | None = None

    @property
    def total_milli(self) -> int:
        return self.gpu_count * self.gpu_milli

    @property
    def request(self) -> tuple[int, int, int, tuple[str, ...]]:
        return self.cpu_milli, self.gpu_milli, self.gpu_count, self.models


def read_nodes(path: Path) -> list[Node]:
    """The nodes of a node list."""
    rows = _without_twins(path, _rows(path, _NODE_COLUMNS, ()), "sn")
    return [_node(path, line, row) for line, row in rows]


def _node(path: Path, line: int, row: dict[str, str]) -> Node:
    name = row["sn"]
    if not name:
        raise InputError("a node needs a name in column `sn`", source=f"{path}:{line}")
    offers: dict[str, Quantity] = {
        "cpu": f"{_whole(path, line, row, 'cpu_milli')}m",
        "memory": f"{_whole(path, line, row, 'memory_mib')}Mi",
        "pods": "1000",
    }
    gpus = _whole(path, line, row, "gpu")
    if gpus > _MOST_GPUS:
        raise InputError(f"gpu is `{gpus}`, expected {_MOST_GPUS} or less", source=f"{path}:{line}")
    labels = {"kubernetes.io/hostname": name}
    if gpus:
        offers[MILLI] = str(1000 * gpus)
        labels[MODEL] = row["model"]
    return Node(metadata=Metadata(name=name, uid=name, labels=labels), status=NodeStatus(allocatable=offers))


def read_pods(path: Path) -> list[OpenbPod]:
    """The pods of a pod list, in its order."""
    rows = _without_twins(path, _rows(path, _POD_COLUMNS, _MORE_POD_COLUMNS), "name")
    pods = [_pod(path, line, row) for line, row in rows]
    if not pods:
        raise InputError("no pod in it", source=str(path))
    return pods


def _pod(path: Path, line: int, row: dict[str, str]) -> OpenbPod:
    where = f"{path}:{line}"
    cpu, memory, gpus, milli = (_whole(path, line, row, column) for column in _POD_COLUMNS[1:])
    if not row["name"]:
        raise InputError("a pod needs a name in column `name`", source=where)
    if gpus and not 0 < milli <= 1000:
        raise InputError(f"gpu_milli is `{milli}`; a pod with GPUs needs 1 to 1000 of each", source=where)
    if gpus > 1 and milli != 1000:
        raise InputError(f"gpu_milli is `{milli}`; of several GPUs a pod gets each whole (1000)", source=where)
    created, deleted = (_time(where, row, column) for column in ("creation_time", "deletion_time"))
    if created is not None and deleted is not None and deleted < created:
        raise InputError(f"deletion_time {deleted:g} is before creation_time {created:g}", source=where)
    models = tuple(sorted(filter(None, row.get("gpu_spec", "").split("|"))))
    return OpenbPod(row["name"], cpu, memory, gpus, milli if gpus else 0, models, created, deleted)


def scaled(pods: Sequence[OpenbPod], *, gpu_milli: int, seed: int) -> list[OpenbPod]:
    """The pods in random order, followed by copies of random ones, until they ask for so many thousandths of GPUs."""
    dice = random.Random(seed)
    found = sorted(pods, key=lambda pod: pod.name)
    dice.shuffle(found)
    asked = list(accumulate(pod.total_milli for pod in found))
    enough = bisect_left(asked, gpu_milli) + 1
    if gpu_milli > 0 and enough <= len(found):
        return found[:enough]
    wanted = gpu_milli - asked[-1]
    if not any(pod.total_milli for pod in pods) and wanted > 0:
        raise InputError("no pod asks for a GPU, so no number of copies reaches the wanted demand")
    names, copies = {pod.name for pod in pods}, 0
    while wanted > 0:
        pod = pods[dice.randrange(len(pods))]
        copies += 1
        while f"{pod.name}-copy-{copies}" in names:
            copies += 1
        found.append(pod._replace(name=f"{pod.name}-copy-{copies}"))
        wanted -= pod.total_milli
    return found


def _check_number(pods: Sequence[OpenbPod], capacity: int, demand_percent: float) -> None:
    """Refuse a demand before the copies that it takes fill the memory."""
    asked = sum(pod.total_milli for pod in pods)
    number = len(pods) * max(1.0, capacity * demand_percent / 100.0 / asked) if asked else 0.0
    if number > _MOST_DEMANDED:
        raise InputError(
            f"{demand_percent:g} % of {capacity / 1000:,.0f} GPUs are some {round(number, -2):,.0f} pods, expected "
            f"{_MOST_DEMANDED:,} or less\nhint: state a lower --demand, or take a list whose pods ask for more"
        )


class OpenbWorkload:
    """A pod list as a workload.

    With a demand, as in the published evaluation: the pods come in random order, with copies of some, one after the
    other, until they ask for so many percent of the cluster's GPUs, and none ever ends. Without, at the times of the
    list, and for as long.
    """

    def __init__(self, pods: Sequence[OpenbPod], *, demand_percent: float | None = None) -> None:
        self._pods = pods
        self._demand = demand_percent
        if demand_percent is None and any(pod.created is None for pod in pods):
            raise InputError("the pod list has no times (creation_time, deletion_time)\nhint: state a --demand")

    def begin(self, simulation: Simulation) -> None:
        simulation.timeline.follow(self._arrivals(simulation))

    def _arrivals(self, simulation: Simulation) -> Iterator[tuple[float, Action]]:
        for time, pod in self.arrivals(simulation):
            duration = None if self._demand is not None or pod.deleted is None else pod.deleted - (pod.created or 0.0)
            yield time, partial(self._submit, simulation, openb_pod(pod), duration)

    @staticmethod
    def _submit(simulation: Simulation, pod: Pod, duration_seconds: float | None) -> None:
        check_name(simulation, pod.namespace, pod.name)
        simulation.submit(pod, duration_seconds=duration_seconds)

    def arrivals(self, simulation: Simulation) -> Iterator[tuple[float, OpenbPod]]:
        """The pods with the times of their arrival."""
        if self._demand is None:
            for pod in sorted(self._pods, key=lambda pod: (pod.created or 0.0, pod.name)):
                yield pod.created or 0.0, pod
            return
        capacity = sum(milli_of(node) for node in simulation.world.nodes.values())
        _check_number(self._pods, capacity, self._demand)
        wanted = round(capacity * self._demand / 100.0)
        for number, pod in enumerate(scaled(self._pods, gpu_milli=wanted, seed=simulation.options.seed)):
            yield number * _BETWEEN_SECONDS, pod


def milli_of(node: Node) -> int:
    """What a node offers of GPUs, in thousandths."""
    return value((node.status.allocatable or {}).get(MILLI, 0))


def openb_pod(pod: OpenbPod) -> Pod:
    """The object for a line."""
    spec = _spec(pod)
    metadata = Metadata(name=pod.name, namespace=_NAMESPACE, uid=f"{_NAMESPACE}/{pod.name}")
    return Pod(metadata=metadata, spec=spec)


def _spec(pod: OpenbPod) -> PodSpec:
    requests: dict[str, Quantity] = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    if pod.gpu_count:
        requests[MILLI] = str(pod.total_milli)
    affinity = None
    if pod.models:
        wanted = NodeSelectorRequirement(key=MODEL, operator="In", values=list(pod.models))
        terms = [NodeSelectorTerm(match_expressions=[wanted])]
        selector = NodeSelector(node_selector_terms=terms)
        affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=selector))
    container = Container(name="main", resources=ResourceRequirements(requests=requests))
    return PodSpec(containers=[container], affinity=affinity)


# CSV


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text (byte {error.start})", source=str(path)) from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", source=str(path)) from error


def _rows(path: Path, columns: Iterable[str], more: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each line with its number, by column."""
    lines = _lines(path)
    _, header = next(lines, (0, None))
    if header is None:
        raise InputError("is empty", source=str(path))
    columns = list(columns)
    said = [f"column `{name}` is missing" for name in columns if name not in header]
    said += [f"column `{name}` is unknown" for name in header if name not in (*columns, *more)]
    said += [f"column `{name}` is there twice" for name in dict.fromkeys(header) if header.count(name) > 1]
    if said:
        raise InputError("; ".join(said), source=f"{path}:1")
    for number, values in lines:
        if len(values) != len(header):
            expected = f"expected {len(header)} values, found {len(values)}"
            raise InputError(expected, source=f"{path}:{number}")
        yield number, dict(zip(header, values, strict=True))


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(_text(path)))
    try:
        for values in reader:
            yield reader.line_num, values
    except csv.Error as error:
        what = str(error).partition(" - ")[0]
        raise InputError(f"no CSV: {what}", source=f"{path}:{reader.line_num}") from error


def _without_twins(
    path: Path, rows: Iterable[tuple[int, dict[str, str]]], column: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows, as long as no name comes twice."""
    lines: dict[str, int] = {}
    for line, row in rows:
        first = lines.setdefault(row[column], line)
        if first != line:
            raise InputError(f"`{row[column]}` is in line {first} already", source=f"{path}:{line}")
        yield line, row


def _whole(path: Path, line: int, row: dict[str, str], column: str) -> int:
    text = row[column].strip()
    if not text.isascii() or not text.isdigit():
        raise InputError(f"{column} is `{text:.40}`, expected a whole number of 0 or more", source=f"{path}:{line}")
    if len(text) > _MOST_DIGITS:
        raise InputError(f"{column} is `{text:.40}`, which no machine has", source=f"{path}:{line}")
    return int(text)


def _time(where: str, row: dict[str, str], column: str) -> float | None:
    text = row.get(column, "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= _LATEST_SECONDS:
        raise InputError(f"{column} is `{text:.40}`, expected 0 to {_LATEST_SECONDS:,} seconds", source=where)
    return seconds
