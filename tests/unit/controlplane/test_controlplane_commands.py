"""The command lines: loopback only, RBAC, and a kube-scheduler configuration completed but not changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.controlplane import kube_scheduler
from tests.controlplane.certificates import KeyPair
from tests.controlplane.commands import ApiServerSettings, EtcdSettings, apiserver_command, etcd_command
from tests.controlplane.kube_scheduler import KubeSchedulerSettings, complete_configuration, kube_scheduler_command

_PAIR = KeyPair(Path("a.crt"), Path("a.key"))


def apiserver_settings(**changes: object) -> ApiServerSettings:
    values: dict[str, object] = {
        "program": Path("kube-apiserver"),
        "port": 16443,
        "etcd_url": "http://127.0.0.1:12379",
        "ca_file": Path("ca.crt"),
        "server_pair": _PAIR,
        "front_proxy_ca_file": Path("front.crt"),
        "front_proxy_pair": _PAIR,
        "service_account_key": Path("sa.key"),
        "token_file": Path("tokens.csv"),
        "authentication_config": Path("authentication.yaml"),
        "certificate_folder": Path("pki"),
    }
    return ApiServerSettings(**{**values, **changes})  # type: ignore[arg-type]  # a test's own defaults


def test_the_api_server_listens_on_loopback_with_rbac_alone() -> None:
    command = apiserver_command(apiserver_settings())

    assert "--bind-address=127.0.0.1" in command
    assert "--authorization-mode=RBAC" in command
    assert not [word for word in command if word.startswith("--feature-gates")]


def test_feature_gates_and_extra_arguments_come_through() -> None:
    settings = apiserver_settings(feature_gates={"WatchList": False, "GangScheduling": True}, extra_args=["--v=4"])

    command = apiserver_command(settings)

    assert "--feature-gates=WatchList=false,GangScheduling=true" in command
    assert command[-1] == "--v=4"


def test_etcd_listens_on_loopback_only() -> None:
    settings = EtcdSettings(program=Path("etcd"), data_folder=Path("data"), client_port=1, peer_port=2)

    addresses = [word for word in etcd_command(settings) if "http" in word]

    assert len(addresses) == 5
    assert all("http://127.0.0.1:" in address for address in addresses)


def test_an_absent_configuration_gets_the_kubeconfig_and_no_leader_election() -> None:
    assert complete_configuration({}, kubeconfig=Path("/run/kubeconfig")) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/run/kubeconfig"},
        "leaderElection": {"leaderElect": False},
    }


def test_what_the_caller_wrote_stays() -> None:
    document = {
        "clientConnection": {"qps": 10000},
        "leaderElection": {"leaderElect": True},
        "percentageOfNodesToScore": 100,
    }

    complete = complete_configuration(document, kubeconfig=Path("/run/kubeconfig"))

    assert complete["clientConnection"] == {"qps": 10000, "kubeconfig": "/run/kubeconfig"}
    assert complete["leaderElection"] == {"leaderElect": True}
    assert complete["percentageOfNodesToScore"] == 100
    assert document["clientConnection"] == {"qps": 10000}


@pytest.fixture
def scheduler_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KubeSchedulerSettings:
    monkeypatch.setattr(kube_scheduler, "program", lambda name: Path("/cache") / name)
    return KubeSchedulerSettings(
        folder=tmp_path,
        kubeconfig=tmp_path / "kubeconfig",
        ca_file=tmp_path / "ca.crt",
        server_pair=_PAIR,
        admin_pair=_PAIR,
        config_path=tmp_path / "given.yaml",
    )


def test_the_completed_configuration_is_written_beside_the_log(scheduler_settings: KubeSchedulerSettings) -> None:
    (scheduler_settings.folder / "given.yaml").write_text("parallelism: 1\n")

    command = kube_scheduler_command(scheduler_settings, port=10259)

    written = scheduler_settings.folder / "kube-scheduler.yaml"
    assert command[:2] == ["/cache/kube-scheduler", f"--config={written}"]
    assert yaml.safe_load(written.read_text())["parallelism"] == 1


def test_a_configuration_that_is_no_mapping_is_refused_by_name(scheduler_settings: KubeSchedulerSettings) -> None:
    (scheduler_settings.folder / "given.yaml").write_text("- a list\n")

    with pytest.raises(ValueError, match=r"given\.yaml holds no KubeSchedulerConfiguration but list"):
        kube_scheduler_command(scheduler_settings, port=10259)
