"""Objects by kind and name: nothing is kept of what is gone."""

from __future__ import annotations

from bayplan.api.storage import PersistentVolumeClaim
from bayplan.cluster.objects import Objects
from bayplan.testing import pvc


def test_namespaces_that_come_and_go_leave_nothing() -> None:
    objects = Objects()
    for number in range(100):
        item = pvc("data", namespace=f"n{number}")
        objects.put(item)
        assert list(objects.list(PersistentVolumeClaim, f"n{number}")) == [item]
        objects.remove(item)

    table = objects._table(PersistentVolumeClaim)
    assert not table.by_key and not table.by_namespace
