"""What is given on the command line takes the place of what the configuration says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bayplan.app.run_options import RunOptions
from bayplan.app.settings import load_settings


def test_without_flags_the_configuration_stands() -> None:
    settings = load_settings(None, ())

    assert RunOptions().applied_to(settings) == settings


def test_flags_win_and_the_rest_stays() -> None:
    options = RunOptions(
        kubeconfig=Path("mine"),
        qps=-1,
        burst=7,
        profiling=False,
        election={"lease_duration": timedelta(seconds=30), "resource_name": "mine"},
    )
    config = options.applied_to(load_settings(None, ())).config

    assert (config.client_connection.kubeconfig, config.client_connection.qps) == ("mine", -1)
    assert config.client_connection.burst == 7
    assert not config.enable_profiling
    assert config.leader_election.lease_duration == timedelta(seconds=30)
    assert config.leader_election.resource_name == "mine"
    assert config.leader_election.resource_namespace == "kube-system"


@pytest.mark.parametrize(
    ("config", "election", "expected"),
    [
        ("profiles: [{schedulerName: mine}]", {}, "mine"),
        ("profiles: [{schedulerName: mine}, {schedulerName: default-scheduler}]", {}, "kube-scheduler"),
        ("profiles: [{schedulerName: mine}]\nleaderElection: {resourceName: kube-scheduler}", {}, "kube-scheduler"),
        ("profiles: [{schedulerName: mine}]", {"resource_name": "other"}, "other"),
        ("", {}, "kube-scheduler"),
    ],
)
def test_a_second_scheduler_has_a_lease_of_its_own(
    tmp_path: Path, config: str, election: dict[str, str], expected: str
) -> None:
    """With the lease of kube-scheduler it would stand by for ever."""
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{config}\n")

    applied = RunOptions(election=election).applied_to(load_settings(file, ()))

    assert applied.config.leader_election.resource_name == expected
