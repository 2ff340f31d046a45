"""The openb trace: what is read, what is refused with its line, and a short run of it through the plugins."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.openb.policies import policy_settings
from bench.openb.runs import DATA

from bayplan.api.decode import InputError
from bayplan.app.settings import load_settings
from bayplan.plugins.community.gpu_share import typical_pods
from bayplan.sim.engine.simulation import SimulationError, SimulationOptions
from bayplan.sim.experiment import Experiment
from bayplan.sim.workloads.openb import (
    MILLI,
    OpenbPod,
    OpenbWorkload,
    milli_of,
    openb_pod,
    read_nodes,
    read_pods,
    scaled,
)

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "pods.csv"
    path.write_text(text)
    return path


def test_the_trace_is_read_whole() -> None:
    nodes, pods = read_nodes(DATA / "nodes.csv.gz"), read_pods(DATA / "pods_default.csv.gz")

    assert (len(nodes), sum(map(milli_of, nodes))) == (1213, 6_212_000)
    assert (len(pods), sum(pod.total_milli for pod in pods)) == (8152, 6_086_800)


def test_the_typical_pods_of_the_trace_are_35_classes() -> None:
    assert len(typical_pods(pod.request for pod in read_pods(DATA / "pods_default.csv.gz"))) == 35


def test_copies_are_added_until_the_demand_is_reached() -> None:
    pods = read_pods(DATA / "pods_default.csv.gz")

    found = scaled(pods, gpu_milli=8_075_600, seed=42)

    assert 8_075_600 <= sum(pod.total_milli for pod in found) < 8_075_600 + 8000
    assert len({pod.name for pod in found}) == len(found)
    assert found != scaled(pods, gpu_milli=8_075_600, seed=43)


def test_of_a_low_demand_only_so_many_pods_come() -> None:
    pods = [OpenbPod(f"p{number}", 1, 1, number % 2, 1000 * (number % 2)) for number in range(20)]

    found = scaled(pods, gpu_milli=3000, seed=1)

    assert (sum(pod.total_milli for pod in found), found[-1].total_milli) == (3000, 1000)
    assert found == scaled(pods, gpu_milli=10_000, seed=1)[: len(found)]


def test_a_copy_never_has_the_name_of_another_pod() -> None:
    pods = [OpenbPod(name, 1, 1, 1, 1000) for name in ("a", "a-copy-1", "a-copy-2", "a-copy-1-copy-4")]

    for seed in range(20):
        names = [pod.name for pod in scaled(pods, gpu_milli=30_000, seed=seed)]
        assert len(set(names)) == len(names) == 30


def test_a_demand_of_more_pods_than_memory_holds_is_refused_at_once(tmp_path: Path) -> None:
    """One thousandth of a GPU each, and 6,212 GPUs."""
    nodes, pods = read_nodes(DATA / "nodes.csv.gz"), [OpenbPod("a", 1, 1, 1, 1), OpenbPod("b", 1, 1, 0, 0)]
    workload = OpenbWorkload(pods, demand_percent=130)

    with pytest.raises(InputError, match=r"130 % of 6,212 GPUs are some 16,151,\d00 pods, expected 1,000,000 or less"):
        Experiment(nodes, workload).run(policy_settings("BestFit", ()))


def test_a_pod_of_the_list_that_the_cluster_has_is_refused(tmp_path: Path) -> None:
    nodes, pods = read_nodes(DATA / "nodes.csv.gz")[:1], [OpenbPod("a", 1, 1, 1, 1000)]

    with pytest.raises(SimulationError, match="pod `openb/a` of the workload is there already"):
        Experiment([*nodes, openb_pod(pods[0])], OpenbWorkload(pods, demand_percent=10)).run(load_settings(None, ()))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("name,cpu_milli,memory_mib,num_gpu\n", ":1: column `gpu_milli` is missing"),
        (HEADER.replace("gpu_milli", "gpu_milli,colour"), ":1: column `colour` is unknown"),
        (HEADER.replace("gpu_milli", "gpu_milli,name"), ":1: column `name` is there twice"),
        (HEADER, "no pod in it"),
        (HEADER + "a,1,1,0,0\nb," + "9" * 5000 + ",1,0,0\n", f":3: cpu_milli is `{'9' * 40}`, which no machine has"),
        (HEADER + "a,1,1,0,0\nb,1,1,0,0\na,1,1,0,0\n", ":4: `a` is in line 2 already"),
        (HEADER + f"{'a' * 200_000},1,1,0,0\n", ":2: no CSV: field larger than field limit (131072)"),
        (HEADER + "a,1,1,0\n", ":2: expected 5 values, found 4"),
        (HEADER + "a,1,1,0,0\nb,-1,1,0,0\n", ":3: cpu_milli is `-1`, expected a whole number of 0 or more"),
        (HEADER + "a,1,1,1,1001\n", ":2: gpu_milli is `1001`; a pod with GPUs needs 1 to 1000 of each"),
        (HEADER + "a,1,1,2,500\n", ":2: gpu_milli is `500`; of several GPUs a pod gets each whole (1000)"),
        (
            HEADER.strip() + ",creation_time\na,1,1,0,0,-5\n",
            ":2: creation_time is `-5`, expected 0 to 10,000,000,000 seconds",
        ),
        (HEADER.strip() + ",creation_time\na,1,1,0,0,1e12\n", "`1e12`, expected 0 to 10,000,000,000 seconds"),
        (
            HEADER.strip() + ",creation_time,deletion_time\na,1,1,0,0,9,5\n",
            ":2: deletion_time 5 is before creation_time 9",
        ),
    ],
)
def test_a_broken_list_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(InputError) as caught:
        read_pods(path)

    assert str(caught.value).endswith(problem)
    assert str(caught.value).startswith(str(path))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    data = bytearray((DATA / "nodes.csv.gz").read_bytes())
    data[200:240] = bytes(40)
    (tmp_path / "nodes.csv.gz").write_bytes(data)

    with pytest.raises(InputError, match=r"nodes\.csv\.gz: cannot be read"):
        read_nodes(tmp_path / "nodes.csv.gz")


def test_a_list_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_bytes(b"\xef\xbb\xbf" + (HEADER + "a,1,2,0,0\n").replace("\n", "\r\n").encode())

    assert [(pod.name, pod.memory_mib) for pod in read_pods(path)] == [("a", 2)]


def test_a_node_with_more_gpus_than_any_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn-0,1,1,99999999,P100\n")

    with pytest.raises(InputError, match=r"nodes.csv:2: gpu is `99999999`, expected 1000 or less"):
        read_nodes(path)


def test_a_list_without_times_needs_a_demand(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no times"):
        OpenbWorkload(read_pods(write(tmp_path, HEADER + "a,1,1,0,0\n")))


def test_a_list_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_bytes(HEADER.encode("utf-16"))

    with pytest.raises(InputError, match=r"pods\.csv: not UTF-8 text \(byte 0\)"):
        read_pods(path)


@pytest.mark.parametrize("policy", ["FGD", "GpuClustering"])
def test_a_policy_fills_the_cluster_and_never_overbooks_a_gpu(policy: str) -> None:
    """A tenth of the cluster and of the pods, by the plugins themselves."""
    nodes, pods = read_nodes(DATA / "nodes.csv.gz")[::40], read_pods(DATA / "pods_default.csv.gz")[::40]
    scenario = Experiment(nodes, OpenbWorkload(pods, demand_percent=130), SimulationOptions(seed=1, retries=False))

    outcome = scenario.run(policy_settings(policy, pods))

    assert not outcome.failures
    assert outcome.measures["pods.withdrawn"] > 0
    assert 0.85 < outcome.measures[f"allocated.{MILLI}.end"] <= 1.0
    assert (outcome.measures.get("plugin.gpu_share_fgd_idle", 0.0) > 0.0) is (policy == "FGD")
    assert 1.2 < outcome.samples[-1].demand[MILLI] < 1.4


def test_pods_come_and_go_at_the_times_of_the_list(tmp_path: Path) -> None:
    text = HEADER.strip() + ",creation_time,deletion_time\na,1000,1,1,500,10,70\nb,1000,1,0,0,20,\n"
    nodes = read_nodes(DATA / "nodes.csv.gz")[:1]

    outcome = Experiment(nodes, OpenbWorkload(read_pods(write(tmp_path, text)))).run(policy_settings("BestFit", ()))

    assert [line.time for line in outcome.decisions] == [10.0, 20.0]
    assert outcome.measures["pods.finished"] == 1


@pytest.mark.parametrize("text", ["a\rb,c\n", HEADER + "p,1,\r2,3,4\n"])
def test_lines_that_are_no_csv_are_refused_with_their_number(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_bytes(text.encode())

    with pytest.raises(InputError, match="no CSV"):
        read_pods(path)
