"""Quantities in groups and quotas: checked where they are read, so that a bad object harms nobody else."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.app.controllers.elastic_quota_status import is_up_to_date
from bayplan.plugins.community.capacity_scheduling.elastic_quota import (
    ElasticQuota,
    ElasticQuotaSpec,
    ElasticQuotaStatus,
)
from bayplan.plugins.community.coscheduling.pod_group import PodGroup


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (ElasticQuota, {"min": {"cpu": "banana"}}),
        (ElasticQuota, {"max": {"cpu": "1", "memory": "many"}}),
        (PodGroup, {"minMember": 2, "minResources": {"cpu": "banana"}}),
    ],
)
def test_an_object_with_something_else_in_its_place_is_not_read(kind: type[object], spec: dict[str, object]) -> None:
    text = msgspec.json.encode({"metadata": {"name": "q"}, "spec": spec})

    with pytest.raises(msgspec.ValidationError, match="is not a quantity"):
        msgspec.json.decode(text, type=kind)


def test_a_status_that_somebody_spoiled_is_written_anew() -> None:
    quota = ElasticQuota(spec=ElasticQuotaSpec(min={"cpu": "1"}), status=ElasticQuotaStatus(used={"cpu": "banana"}))

    assert not is_up_to_date(quota, {"cpu": "0"})
