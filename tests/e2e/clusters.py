"""The two control planes that the end-to-end tests run against, behind one face.

`tests.controlplane.ControlPlane` is the real one. `EmbeddedPlane` is Bayplan's own API server as a process, over TLS
with a token, with a data directory and without controllers, so that it can be killed and started again and is as bare
as the real one. What only the real one has (etcd) is not in the face.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

import yaml

from tests.controlplane import access
from tests.controlplane.certificates import Authority, KeyPair
from tests.controlplane.clearing import clear
from tests.controlplane.cluster import ADMIN_GROUP, CommandFailed
from tests.controlplane.kube_scheduler import KubeScheduler, KubeSchedulerSettings
from tests.controlplane.ports import LOOPBACK, free_loopback_port
from tests.controlplane.process import Guard
from tests.controlplane.programs import program
from tests.controlplane.rest import RestClient
from tests.controlplane.server import Server, ServerSettings

_COMMAND_TIMEOUT_SECONDS = 100.0


class Cluster(Protocol):
    """What a test may ask of either control plane."""

    kubeconfig: Path
    admin: RestClient

    @property
    def url(self) -> str: ...
    @property
    def ca_file(self) -> Path: ...
    @property
    def client_cert(self) -> Path: ...
    @property
    def client_key(self) -> Path: ...
    def token_for(self, user: str, groups: Sequence[str] = ()) -> str: ...
    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path: ...
    def token_kubeconfig(self, token: str) -> Path: ...
    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]: ...
    def start_kube_scheduler(
        self, config_path: Path | None = None, extra_args: Sequence[str] = ()
    ) -> KubeScheduler: ...
    def start_apiserver(self) -> None: ...
    def kill_apiserver(self) -> None: ...
    def restart_apiserver(self) -> None: ...
    def clear(self) -> None: ...


class EmbeddedPlane:
    """The embedded API server as a process; ready after construction."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bayplan-embedded-"))
        self._guard = Guard(remove=self.folder)
        self._authority = Authority(self.folder / "pki")
        self._admin_pair = self._authority.client_pair("admin", [ADMIN_GROUP])
        self._server_pair = self._authority.server_pair()
        self._port = free_loopback_port()
        self.kubeconfig = self.folder / "kubeconfig"
        self._server = Server(self._server_settings(), guard=self._guard)
        try:
            self._server.start()
            self.ca_file.write_bytes(self._both_authorities())
            self.admin = RestClient(self.url, ca_file=self.ca_file, pair=self._admin_pair)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> EmbeddedPlane:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        try:
            self._server.kill()
        finally:
            self._guard.close()

    # Where it is and how to get in

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self._port}"

    @property
    def ca_file(self) -> Path:
        """The authority of the server's certificate and that of client certificates, which are not the same here."""
        return self.folder / "ca-bundle.crt"

    @property
    def client_cert(self) -> Path:
        return self._admin_pair.certificate

    @property
    def client_key(self) -> Path:
        return self._admin_pair.key

    def token_for(self, user: str, groups: Sequence[str] = ()) -> str:
        """There is one static token, the administrator's; service accounts get theirs from the API."""
        assert user == "admin" and not groups, f"the embedded server has no token for {user}"
        return str(self._kubeconfig_document()["users"][0]["user"]["token"])

    def client_pair(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        return self._authority.client_pair(user, groups)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        pair = self.client_pair(user, groups)
        path = self.folder / f"kubeconfig-{pair.certificate.stem}"
        return access.write_certificate_kubeconfig(path, url=self.url, ca_file=self.ca_file, pair=pair)

    def token_kubeconfig(self, token: str) -> Path:
        descriptor, name = tempfile.mkstemp(prefix="kubeconfig-token-", dir=self.folder)
        os.close(descriptor)
        return access.write_token_kubeconfig(Path(name), url=self.url, ca_file=self.ca_file, token=token)

    # Using it

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(program("kubectl")), f"--kubeconfig={self.kubeconfig}", *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        if check and done.returncode != 0:
            raise CommandFailed(f"kubectl {' '.join(args)}: {done.stdout}{done.stderr}")
        return done

    def start_kube_scheduler(self, config_path: Path | None = None, extra_args: Sequence[str] = ()) -> KubeScheduler:
        settings = KubeSchedulerSettings(
            folder=Path(tempfile.mkdtemp(prefix="kube-scheduler-", dir=self.folder)),
            kubeconfig=self.kubeconfig_for("system:kube-scheduler"),
            ca_file=self.ca_file,
            server_pair=self._server_pair,
            admin_pair=self._admin_pair,
            config_path=config_path,
            extra_args=extra_args,
        )
        return KubeScheduler(settings, guard=self._guard)

    def start_apiserver(self) -> None:
        self._server.start()

    def kill_apiserver(self) -> None:
        self._server.kill()

    def restart_apiserver(self) -> None:
        self._server.stop()
        self._server.start()

    def clear(self) -> None:
        clear(self.admin)

    @property
    def log(self) -> str:
        return self._server.log_path.read_text(errors="replace")

    # Making it

    def _server_settings(self) -> ServerSettings:
        command = [
            *(sys.executable, "-m", "bayplan.apiserver", "--bare", "--authorization=rbac"),
            f"--port={self._port}",
            f"--data-dir={self.folder / 'data'}",
            f"--kubeconfig-out={self.kubeconfig}",
            f"--client-ca-file={self._authority.certificate_file}",
        ]
        return ServerSettings(command=command, log_path=self.folder / "apiserver.log", is_ready=self._is_ready)

    def _is_ready(self) -> bool:
        if not self.kubeconfig.is_file():
            return False
        bundle = self.folder / "ca-server.crt"
        bundle.write_bytes(self._server_authority())
        return RestClient(self.url, ca_file=bundle).is_healthy("/readyz")

    def _kubeconfig_document(self) -> dict[str, list[dict[str, dict[str, str]]]]:
        document: dict[str, list[dict[str, dict[str, str]]]] = yaml.safe_load(self.kubeconfig.read_text())
        return document

    def _server_authority(self) -> bytes:
        return base64.b64decode(self._kubeconfig_document()["clusters"][0]["cluster"]["certificate-authority-data"])

    def _both_authorities(self) -> bytes:
        return self._server_authority() + self._authority.certificate_file.read_bytes()
