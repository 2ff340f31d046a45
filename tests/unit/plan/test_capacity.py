"""The cheapest mix of nodes that a simulation accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.settings import load_settings
from bayplan.plan.capacity import ACCEPTED, CapacityPlan, CapacityQuestion, plan_capacity
from bayplan.sim.compare import RunPlan, parse_condition
from bayplan.sim.workloads.loading import NodePool

WORKLOAD = """\
apiVersion: bayplan.dev/v1alpha1
kind: Workload
until: 1h
items:
- {{name: web, kind: Deployment, replicas: {replicas}, template: {{spec: {{containers: [
   {{name: main, resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}}}}}]}}}}}}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: own}\nstatus: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}}\n"


def pool(name: str, cpu: int, price: str, count: int) -> NodePool:
    return NodePool(
        api_version="bayplan.dev/v1alpha1",
        kind="NodePool",
        name=name,
        count=count,
        template={
            "metadata": {"annotations": {"bayplan.dev/price-per-hour": price}},
            "status": {"capacity": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}},
        },
    )


def ask(
    folder: Path, *pools: NodePool, replicas: int = 10, cpu: int = 3, cluster: str = "", **options: object
) -> CapacityPlan:
    (folder / "workload.yaml").write_text(WORKLOAD.format(replicas=replicas, cpu=cpu))
    (folder / "cluster.yaml").write_text(cluster)
    plan = RunPlan(workload=folder / "workload.yaml", cluster=(folder / "cluster.yaml",) if cluster else ())
    accept = parse_condition(ACCEPTED)
    return plan_capacity(
        CapacityQuestion(plan=plan, settings=load_settings(None, ()), pools=pools, accept=accept, **options)  # type: ignore[arg-type]
    )


def test_the_fewest_nodes_of_one_template_are_found(tmp_path: Path) -> None:
    found = ask(tmp_path, pool("small", 8, "0.4", 30))

    assert found.best is not None
    assert found.best.nodes == {"small": 5}
    assert found.best.price == pytest.approx(2.0)
    assert found.is_complete
    assert {trial.nodes["small"]: trial.is_accepted for trial in found.trials} == {4: False, 5: True, 30: True}


def test_a_mix_is_taken_where_it_is_cheaper(tmp_path: Path) -> None:
    """Ten pods of 3: a large node (20) has room for six, a small one (8) for two."""
    found = ask(tmp_path, pool("small", 8, "1.0", 30), pool("large", 20, "2.4", 30))

    assert found.best is not None
    assert found.best.nodes == {"small": 2, "large": 1}
    assert found.best.price == pytest.approx(4.4)
    assert found.trials == sorted(found.trials, key=lambda trial: trial.price)


def test_nodes_that_are_there_cost_nothing(tmp_path: Path) -> None:
    assert ask(tmp_path, pool("small", 8, "1", 9), replicas=2, cluster=NODE).verdict.startswith("no further node")
    found = ask(tmp_path, pool("small", 8, "1", 9), replicas=4, cluster=NODE, wants_bound=True)

    assert found.best is not None
    assert found.best.nodes == {"small": 1}
    assert found.bound is not None
    assert found.bound.price == pytest.approx(1.0)


def test_a_workload_that_never_fits_ends_with_the_reason(tmp_path: Path) -> None:
    found = ask(tmp_path, pool("small", 8, "1", 4), pool("large", 20, "2", 4), cpu=30)

    assert found.best is None
    assert found.verdict.startswith("No mix within the counts of the templates is enough. 0/8 nodes are available")


def test_the_search_ends_after_as_many_runs_as_are_wanted(tmp_path: Path) -> None:
    pools = (pool("small", 8, "1.0", 30), pool("large", 20, "2.4", 30))

    assert not ask(tmp_path, *pools, most_runs=2).is_complete
