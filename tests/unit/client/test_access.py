from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.client.access import in_cluster_access
from bayplan.client.errors import KubeconfigError
from bayplan.observe.clock import VirtualClock

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def _mounted(folder: Path) -> Path:
    (folder / "token").write_text("one")
    (folder / "ca.crt").write_text("CA")
    (folder / "namespace").write_text("kube-system\n")
    return folder


async def test_a_pod_finds_everything_in_its_service_account(tmp_path: Path, clock: VirtualClock) -> None:
    access = in_cluster_access(clock=clock, environment=POD, folder=_mounted(tmp_path))

    assert (access.server, access.namespace) == ("https://10.0.0.1:443", "kube-system")
    assert access.tls.authority is not None
    assert access.tls.authority.path == tmp_path / "ca.crt"
    assert (await access.credentials.obtain()).authorization == "Bearer one"


async def test_the_token_follows_the_kubelet(tmp_path: Path, clock: VirtualClock) -> None:
    access = in_cluster_access(clock=clock, environment=POD, folder=_mounted(tmp_path))
    await access.credentials.obtain()
    (tmp_path / "token").write_text("two")
    clock.advance(61)

    assert access.credentials.cached() is None
    assert (await access.credentials.obtain()).authorization == "Bearer two"


def test_an_ipv6_service_gets_brackets(tmp_path: Path, clock: VirtualClock) -> None:
    environment = {**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}

    assert (
        in_cluster_access(clock=clock, environment=environment, folder=_mounted(tmp_path)).server
        == "https://[fd00::1]:443"
    )


def test_without_a_namespace_file_it_is_default(tmp_path: Path, clock: VirtualClock) -> None:
    (_mounted(tmp_path) / "namespace").unlink()

    assert in_cluster_access(clock=clock, environment=POD, folder=tmp_path).namespace == "default"


def test_outside_a_pod_or_without_a_mount_it_says_so(tmp_path: Path, clock: VirtualClock) -> None:
    with pytest.raises(KubeconfigError, match="not inside a cluster"):
        in_cluster_access(clock=clock, environment={}, folder=tmp_path)
    with pytest.raises(KubeconfigError, match="token` is missing"):
        in_cluster_access(clock=clock, environment=POD, folder=tmp_path)
