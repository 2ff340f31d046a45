"""The embedded server as a process: options, a kubeconfig that works, users by certificate, an orderly end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.controlplane.certificates import Authority
from tests.controlplane.process import Guard
from tests.controlplane.rest import RestClient
from tests.e2e.clusters import EmbeddedPlane

from bayplan.apiserver.__main__ import main


def test_a_client_certificate_of_its_authority_is_a_user_and_another_is_refused(tmp_path: Path) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    with EmbeddedPlane() as plane:
        status, body = plane.admin.request("POST", path, review)
        powerless = RestClient(plane.url, ca_file=plane.ca_file, pair=plane.client_pair("somebody", ["crew"]))
        forbidden = powerless.request("GET", "/api/v1/nodes")
        stranger = RestClient(plane.url, ca_file=plane.ca_file, pair=Authority(tmp_path).client_pair("admin"))
        with pytest.raises(OSError):
            stranger.request("GET", "/api/v1/nodes")
        nobody = RestClient(plane.url, ca_file=plane.ca_file).request("GET", "/api/v1/nodes")

    user = body["status"]["userInfo"]
    assert (status, user["username"], user["groups"]) == (201, "admin", ["system:masters", "system:authenticated"])
    assert forbidden.status == 403
    assert 'User "somebody" cannot list resource "nodes"' in forbidden.body["message"]
    assert nobody.status == 401


def test_it_ends_in_good_order_when_told_to(tmp_path: Path) -> None:
    guard = Guard()
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "bayplan.apiserver", "--nodes=2", f"--kubeconfig-out={kubeconfig}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        guard.watch(process.pid)
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        status = process.wait(90)
    guard.close()

    assert said.startswith("serving on https://127.0.0.1:")
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    assert status == 0


def test_a_port_in_use_is_said_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status = main([f"--port={port}", f"--kubeconfig-out={tmp_path / 'k'}", "--bare"])

    assert status == 1
    assert "address already in use" in capsys.readouterr().err
