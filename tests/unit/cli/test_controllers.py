"""`bayplan controllers` and `bayplan render manifests --controllers` as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.companions.world import configuration

from bayplan.cli.controllers import _kinds
from bayplan.cli.main import main
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import PodGroup


def test_both_kinds_are_cared_for_unless_some_are_named() -> None:
    assert _kinds(None) == (PodGroup, ElasticQuota)
    assert _kinds(["ElasticQuota"]) == (ElasticQuota,)
    assert _kinds(["ElasticQuota", "PodGroup", "PodGroup"]) == (PodGroup, ElasticQuota)


def test_a_kind_without_a_controller_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["controllers", "--kind", "Pod"]) != 0

    assert "--kind Pod: no controller writes its status; there are PodGroup and ElasticQuota" in capsys.readouterr().err


@pytest.mark.parametrize(("where", "deployments"), [("none", 1), ("scheduler", 1), ("deployment", 2)])
def test_where_the_controllers_run_is_an_option(
    where: str, deployments: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(configuration("CapacityScheduling"))
    assert main(["render", "manifests", "--config", str(config), "--name", "quotas", "--controllers", where]) == 0

    kinds = [document["kind"] for document in yaml.safe_load_all(capsys.readouterr().out)]
    assert kinds.count("Deployment") == deployments
