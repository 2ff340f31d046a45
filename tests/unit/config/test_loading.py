from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bayplan.config import ConfigError, default_config, load_config, load_config_file

from .support import HEADER, problems_of, v1


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    config = default_config()

    assert config.parallelism == 16
    assert config.leader_election.leader_elect
    assert config.leader_election.lease_duration == timedelta(seconds=15)
    assert config.leader_election.renew_deadline == timedelta(seconds=10)
    assert config.leader_election.retry_period == timedelta(seconds=2)
    assert config.leader_election.resource_lock == "leases"
    assert (config.leader_election.resource_name, config.leader_election.resource_namespace) == (
        "kube-scheduler",
        "kube-system",
    )
    assert (config.client_connection.qps, config.client_connection.burst) == (50, 100)
    assert config.client_connection.content_type == "application/vnd.kubernetes.protobuf"
    assert config.percentage_of_nodes_to_score == 0
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert config.enable_profiling
    assert config.enable_contention_profiling
    assert not config.delay_cache_until_active
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]
    assert config.profiles[0].percentage_of_nodes_to_score is None
    assert config.extenders == ()


def test_contention_profiling_follows_profiling_unless_it_is_set() -> None:
    assert not v1("enableProfiling: false").enable_contention_profiling
    assert v1("enableProfiling: false\nenableContentionProfiling: true").enable_contention_profiling


def test_zero_stands_for_the_default_where_it_does_in_go() -> None:
    config = v1(
        "clientConnection: {qps: 0, burst: 0, contentType: ''}\n"
        "leaderElection: {leaseDuration: 0s, resourceName: ''}\n"
        "extenders: [{urlPrefix: 'http://x', httpTimeout: 0s}]"
    )

    assert (config.client_connection.qps, config.client_connection.burst) == (50, 100)
    assert config.leader_election.lease_duration == timedelta(seconds=15)
    assert config.leader_election.resource_name == "kube-scheduler"
    assert config.extenders[0].http_timeout == timedelta(seconds=5)


def test_leader_election_can_be_off() -> None:
    assert not v1("leaderElection: {leaderElect: false}").leader_election.leader_elect


def test_json_is_read_like_yaml() -> None:
    text = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1",\n "kind": "KubeSchedulerConfiguration",\n "parallelism": 3}'
    )
    config = load_config(text, source="c.json")

    assert config.parallelism == 3
    assert str(config.source_of("parallelism")) == "c.json:3"


def test_the_source_of_each_value_is_known() -> None:
    config = load_config(
        HEADER + "parallelism: 3\nprofiles:\n- schedulerName: a\n  pluginConfig:\n  - name: X\n    args:\n      k: 1\n",
        source="c.yaml",
    )

    assert str(config.source_of("parallelism")) == "c.yaml:3"
    assert str(config.source_of("profiles[0].schedulerName")) == "c.yaml:5"
    assert str(config.source_of("profiles[0].pluginConfig[0].args.k")) == "c.yaml:9"
    assert str(config.source_of("profiles[0].percentageOfNodesToScore")) == "default"
    assert config.source_of("leaderElection.leaseDuration").is_default


def test_a_configuration_is_written_in_v1_form_and_reads_back_the_same() -> None:
    text = (
        "parallelism: 3\nleaderElection: {leaseDuration: 1m30s}\n"
        "extenders: [{urlPrefix: 'https://x', enableHTTPS: true, bindVerb: b, tlsConfig: {keyData: a2V5}}]\n"
        "profiles: [{plugins: {score: {enabled: [{name: A, weight: 2}, {name: B}]}},"
        " pluginConfig: [{name: A, args: {x: 1}}]}]"
    )
    config = v1(text)
    written = config.to_dict(redact=False)

    assert written["leaderElection"]["leaseDuration"] == "1m30s"
    assert written["extenders"][0]["enableHTTPS"] is True
    assert written["profiles"][0]["plugins"] == {"score": {"enabled": [{"name": "A", "weight": 2}, {"name": "B"}]}}
    assert load_config(written).to_dict(redact=False) == written


def test_key_material_is_not_shown_unless_asked_for() -> None:
    config = v1("extenders: [{urlPrefix: 'https://x', tlsConfig: {keyData: a2V5, caData: Y2E=}}]")

    assert config.to_dict()["extenders"][0]["tlsConfig"]["keyData"] == "REDACTED"
    assert config.to_dict()["extenders"][0]["tlsConfig"]["caData"] == "Y2E="
    assert "a2V5" not in str(config.to_dict())


def test_a_weight_where_nothing_is_scored_is_a_warning() -> None:
    config = v1("profiles: [{plugins: {filter: {enabled: [{name: NodeName, weight: 3}]}}}]")

    assert [warning.path for warning in config.warnings] == ["profiles[0].plugins.filter.enabled[0].weight"]


def test_a_file_is_read_and_named_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(HEADER + "parallelism: 0\n")

    with pytest.raises(ConfigError, match=r"c\.yaml: line 3: parallelism: found `0`, should be an integer"):
        load_config_file(file)
    file.write_text(HEADER)
    assert load_config(file) == load_config_file(str(file))


def test_a_file_that_is_not_there_or_not_text_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config_file(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config_file(tmp_path)
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_config_file(binary)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("- a", "expected a mapping"),
        ("a: [", "not valid YAML"),
        (HEADER + "---\nkind: Pod\n", "expected one document, found a second"),
        ("kind: KubeSchedulerConfiguration", "apiVersion: is missing"),
        ("apiVersion: kubescheduler.config.k8s.io/v1", "kind: is missing"),
        ("a: &a [*a]", "alias"),
        ("[" * 5000, "nested more than"),
    ],
)
def test_what_is_no_configuration_is_refused_in_one_sentence(text: str, expected: str) -> None:
    assert any(expected in str(problem) for problem in problems_of(text))
