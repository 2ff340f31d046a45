from __future__ import annotations

from bayplan.observe import component_metrics
from bayplan.observe.metrics import Family
from bayplan.observe.scheduler_metrics import SCHEDULER_FAMILIES

FAMILIES = [value for value in vars(component_metrics).values() if isinstance(value, Family)]


def test_no_name_is_declared_twice() -> None:
    names = [family.name for family in (*FAMILIES, *SCHEDULER_FAMILIES)]

    assert len(names) == len(set(names))


def test_pod_resources_carry_the_labels_that_kube_scheduler_gives_them() -> None:
    wanted = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")

    assert component_metrics.POD_REQUEST.labels == wanted
    assert component_metrics.POD_LIMIT.labels == wanted
