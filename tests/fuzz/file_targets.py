"""Targets for what `bayplan simulate` and `plan` read from files, and for bodies in protobuf."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from bayplan.api.decode import InputError
from bayplan.api.documents import DocumentError
from bayplan.apiserver.kinds.protobuf import BadProtobuf, read_protobuf, write_protobuf
from bayplan.apiserver.kinds.type_table import builtin_types
from bayplan.sim.workloads.loading import read_cluster, read_workload
from bayplan.sim.workloads.openb import read_nodes, read_pods
from tests.e2e.device_objects import device_class, published, template
from tests.e2e.objects import node, pod, spread
from tests.fuzz.mutation import mutated_bytes, mutated_text

_EXAMPLES = Path(__file__).parents[2] / "examples"
_PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,1000,,LS,Running,0,12537496,0
p-1,6000,12288,1,460,V100M16|V100M32,LS,Running,427061,,427061
"""
_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,0,\nn-1,96000,786432,8,V100M32\n"


class Failed(AssertionError):
    """An input that a parser did not take as it promises."""

    def __init__(self, given: object) -> None:
        super().__init__(f"with {given!r:.3000}")


class Traces:
    """Workloads, clusters with node pools, and lists of pods and nodes."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        workload = (_EXAMPLES / "simulate" / "workload.yaml").read_text()
        cluster = (_EXAMPLES / "simulate" / "cluster.yaml").read_text()
        self._seeds: list[tuple[str, str, Callable[[Path], Any]]] = [
            ("workload.yaml", workload, read_workload),
            ("cluster.yaml", cluster, lambda path: read_cluster([path])),
            ("pods.csv", _PODS, read_pods),
            ("nodes.csv", _NODES, read_nodes),
        ]

    def close(self) -> None:
        self._folder.cleanup()

    def attempt(self, random: Random) -> object:
        name, seed, read = random.choice(self._seeds)
        path = Path(self._folder.name) / name
        given = mutated_text(seed, random).encode("utf-8", "surrogatepass")
        path.write_bytes(mutated_bytes(given, random) if random.random() < 0.2 else given)
        try:
            read(path)
        except (InputError, DocumentError):
            pass
        except BaseException as error:
            raise Failed((name, path.read_bytes())) from error
        return given


class Protobuf:
    """Bodies of pods, nodes and everything around claims."""

    def __init__(self) -> None:
        types = builtin_types()
        objects = {
            "core.v1.Pod": pod("p", topologySpreadConstraints=[spread("zone", "a", hard=True)]),
            "core.v1.Node": node("n"),
            "resource.v1.DeviceClass": device_class(),
            "resource.v1.ResourceSlice": published("n", 2),
            "resource.v1.ResourceClaimTemplate": template(1),
        }
        self._seeds = [(types[name], write_protobuf(document, types[name])) for name, document in objects.items()]

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        declared, seed = random.choice(self._seeds)
        given = mutated_bytes(seed, random)
        try:
            read_protobuf(given, declared)
        except BadProtobuf:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given
