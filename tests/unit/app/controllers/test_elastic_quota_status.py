"""What an ElasticQuota says is used."""

from __future__ import annotations

from bayplan.app.controllers.elastic_quota_status import is_up_to_date, used_by
from bayplan.plugins.community.capacity_scheduling.elastic_quota import (
    ElasticQuota,
    ElasticQuotaSpec,
    ElasticQuotaStatus,
)
from bayplan.testing import pod

QUOTA = ElasticQuota(spec=ElasticQuotaSpec(min={"cpu": 4, "memory": "4Gi"}, max={"cpu": 8, "example.com/gpu": 1}))


def test_pods_with_a_node_count_until_they_finish_with_their_overhead() -> None:
    pods = [
        pod("running", cpu="500m", memory="1Gi", node="n1", phase="Running", overhead={"cpu": "250m"}),
        pod("starting", cpu=1, node="n1", phase="Pending"),
        pod("waiting", cpu=7, phase="Pending"),
        pod("done", cpu=7, node="n1", phase="Succeeded"),
    ]

    assert used_by(QUOTA, pods) == {"cpu": "1750m", "memory": "1Gi", "example.com/gpu": "0"}


def test_only_what_the_quota_names_appears() -> None:
    quota = ElasticQuota(spec=ElasticQuotaSpec(min={"pods": 3}))

    assert used_by(quota, [pod("p", cpu=1, node="n1")]) == {"pods": "1"}


def test_another_notation_of_the_same_amount_is_no_change() -> None:
    said = ElasticQuota(status=ElasticQuotaStatus(used={"cpu": "1", "memory": "1024Mi"}))

    assert is_up_to_date(said, {"cpu": "1000m", "memory": "1Gi"})
    assert not is_up_to_date(said, {"cpu": "1000m"})
    assert not is_up_to_date(ElasticQuota(), {})
