"""A real control plane on loopback: etcd and kube-apiserver of the pinned versions, for as long as a `with` lasts.

    with ControlPlane() as cluster:
        cluster.kubectl("get", "namespaces")

Each instance has its own folder, ports, certificates and data, so several can run at once. Servers can be stopped,
killed and started again one by one; addresses and data stay the same. There is no kubelet and no controller manager:
nodes are objects, pods stop at "bound", and what a controller would make (the `default` service account) is made here
where tests need it. It listens on 127.0.0.1 only and is no place for data that matters: etcd does not sync to disk.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tests.controlplane import access
from tests.controlplane.certificates import Authority, KeyPair
from tests.controlplane.clearing import clear
from tests.controlplane.commands import (
    ADMISSION_WITHOUT_ITS_CONTROLLER,
    ApiServerSettings,
    ControllerManagerSettings,
    EtcdSettings,
    apiserver_command,
    controller_manager_command,
    etcd_command,
)
from tests.controlplane.kube_scheduler import KubeScheduler, KubeSchedulerSettings
from tests.controlplane.ports import LOOPBACK, free_loopback_port
from tests.controlplane.process import Guard
from tests.controlplane.programs import program
from tests.controlplane.rest import RestClient, answers_plain_http
from tests.controlplane.server import Server, ServerSettings

ADMIN_GROUP = "system:masters"
# Users that have a token without asking: one that may do everything, and one that may do nothing.
DEFAULT_USERS: Mapping[str, Sequence[str]] = {"admin": (ADMIN_GROUP,), "nobody": ()}
_COMMAND_TIMEOUT_SECONDS = 100.0
_NAMESPACE_PATIENCE_SECONDS = 90.0


class CommandFailed(Exception):
    """kubectl or helm ended with an error; the message holds what it printed."""


@dataclass(frozen=True, kw_only=True)
class ControlPlaneOptions:
    """What may differ from one control plane to the next; the defaults suit nearly every test."""

    users: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """More users (name to groups) that get a token from the start; see `ControlPlane.token_for`."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    apiserver_args: Sequence[str] = ()
    etcd_args: Sequence[str] = ()
    has_controllers: bool = False
    """Whether `start_controller_manager` will be called: admission adds what controllers take away."""
    etcd_program: Path | None = None
    """Another etcd than the built one, say an old one that lacks what streaming lists need."""


class ControlPlane:
    """etcd and kube-apiserver, ready to use after construction; `stop()` or the end of the `with` ends them."""

    def __init__(self, options: ControlPlaneOptions | None = None) -> None:
        options = options or ControlPlaneOptions()
        program("kubectl")  # say what is missing before anything is made
        self.folder = Path(tempfile.mkdtemp(prefix="bayplan-controlplane-"))
        self._guard = Guard(remove=self.folder)
        self._schedulers: list[KubeScheduler] = []
        self._controller_manager: Server | None = None
        self._authority = Authority(self.folder / "pki")
        self._admin_pair = self._authority.client_pair("admin", [ADMIN_GROUP])
        self._server_pair = self._authority.server_pair()
        self._service_account_key = self._authority.signing_key("service-accounts")
        self._tokens = access.TokenFile(self.folder / "tokens.csv", {**DEFAULT_USERS, **options.users})
        self._port = free_loopback_port()
        self.admin = RestClient(self.url, ca_file=self.ca_file, pair=self._admin_pair)
        """A plain JSON client with all rights, for preparing and checking."""
        self.kubeconfig = self._certificate_kubeconfig("kubeconfig", self._admin_pair)
        etcd_settings = self._etcd_settings(options)
        self.etcd = self._etcd_server(etcd_settings)
        self.apiserver = self._api_server(options, etcd_url=etcd_settings.url)
        try:
            self.etcd.start()
            self.apiserver.start()
            self._wait_for_namespaces()
            self._create_default_service_account()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End every process and remove the folder. The guard does what is left should a step fail."""
        try:
            for scheduler in self._schedulers:
                scheduler.kill()
            if self._controller_manager is not None:
                self._controller_manager.kill()
            # Nothing here is worth an orderly shutdown of the API server, which takes seconds.
            self.apiserver.kill()
            self.etcd.kill()
        finally:
            self._guard.close()

    # Where it is and how to get in

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self._port}"

    @property
    def ca_file(self) -> Path:
        return self._authority.certificate_file

    @property
    def client_cert(self) -> Path:
        """The admin's client certificate."""
        return self._admin_pair.certificate

    @property
    def client_key(self) -> Path:
        return self._admin_pair.key

    def token_for(self, user: str, groups: Sequence[str] = ()) -> str:
        """A bearer token for `user` in `groups`.

        The API server reads its tokens at start, so a user that is new restarts it: ask before clients connect, name
        the user in `ControlPlaneOptions.users`, or use `kubeconfig_for`, which needs no restart.
        """
        if user in DEFAULT_USERS and not groups:
            groups = DEFAULT_USERS[user]
        token = self._tokens.find(user, groups)
        if token is None:
            token = self._tokens.add(user, groups)
            self.restart_apiserver()
        return token

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig file with a client certificate for `user` in `groups`; good at once and after restarts."""
        pair = self._authority.client_pair(user, groups)
        return self._certificate_kubeconfig(f"kubeconfig-{pair.certificate.stem}", pair)

    def token_kubeconfig(self, token: str) -> Path:
        """A kubeconfig file with this bearer token, valid or not."""
        descriptor, name = tempfile.mkstemp(prefix="kubeconfig-token-", dir=self.folder)
        os.close(descriptor)
        return access.write_token_kubeconfig(Path(name), url=self.url, ca_file=self.ca_file, token=token)

    # Using it

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl as admin. With `check`, an error status raises `CommandFailed` with what it printed."""
        return self._run("kubectl", args, stdin=stdin, check=check)

    def helm(self, *args: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run helm as admin, its caches inside this control plane's folder."""
        return self._run("helm", args, stdin=stdin, check=check)

    def start_kube_scheduler(
        self, config_path: Path | None = None, extra_args: Sequence[str] = (), *, kubeconfig: Path | None = None
    ) -> KubeScheduler:
        """Start the real kube-scheduler, ready on return. It ends with the control plane if nobody stops it before.

        Without `kubeconfig` it comes with a client certificate of its own.
        """
        settings = KubeSchedulerSettings(
            folder=Path(tempfile.mkdtemp(prefix="kube-scheduler-", dir=self.folder)),
            kubeconfig=kubeconfig or self.kubeconfig_for("system:kube-scheduler"),
            ca_file=self.ca_file,
            server_pair=self._server_pair,
            admin_pair=self._admin_pair,
            config_path=config_path,
            extra_args=extra_args,
        )
        scheduler = KubeScheduler(settings, guard=self._guard)
        self._schedulers.append(scheduler)
        return scheduler

    def start_controller_manager(self) -> Server:
        """Start the real kube-controller-manager, ready on return; it ends with the control plane."""
        settings = ControllerManagerSettings(
            program=program("kube-controller-manager"),
            port=free_loopback_port(),
            kubeconfig=self.kubeconfig_for("system:kube-controller-manager", [ADMIN_GROUP]),
            ca_file=self.ca_file,
            server_pair=self._server_pair,
            service_account_key=self._service_account_key,
        )
        client = RestClient(f"https://{LOOPBACK}:{settings.port}", ca_file=self.ca_file, pair=self._admin_pair)
        server = ServerSettings(
            command=controller_manager_command(settings),
            log_path=self.folder / "kube-controller-manager.log",
            is_ready=lambda: client.is_healthy("/healthz"),
        )
        self._controller_manager = Server(server, guard=self._guard)
        self._controller_manager.start()
        return self._controller_manager

    def clear(self) -> None:
        """Delete all that tests made (pods, nodes, volumes, CRDs, namespaces, …) and keep the servers running."""
        clear(self.admin)

    # Faults

    def start_apiserver(self) -> None:
        self.apiserver.start()

    def stop_apiserver(self) -> None:
        self.apiserver.stop()

    def kill_apiserver(self) -> None:
        self.apiserver.kill()

    def restart_apiserver(self) -> None:
        """Stop it in good order and start it again; returns when it is ready."""
        self.apiserver.stop()
        self.apiserver.start()

    def start_etcd(self) -> None:
        """Start etcd, and wait until a running API server has found it again."""
        self.etcd.start()
        if self.apiserver.is_running:
            self.apiserver.wait_ready()

    def stop_etcd(self) -> None:
        self.etcd.stop()

    def kill_etcd(self) -> None:
        self.etcd.kill()

    def restart_etcd(self) -> None:
        self.etcd.stop()
        self.start_etcd()

    # Making it

    def _certificate_kubeconfig(self, name: str, pair: KeyPair) -> Path:
        path = self.folder / name
        return access.write_certificate_kubeconfig(path, url=self.url, ca_file=self.ca_file, pair=pair)

    def _etcd_settings(self, options: ControlPlaneOptions) -> EtcdSettings:
        return EtcdSettings(
            program=options.etcd_program or program("etcd"),
            data_folder=self.folder / "etcd",
            client_port=free_loopback_port(),
            peer_port=free_loopback_port(),
            extra_args=options.etcd_args,
        )

    def _etcd_server(self, settings: EtcdSettings) -> Server:
        address = f"{LOOPBACK}:{settings.client_port}"
        server = ServerSettings(
            command=etcd_command(settings),
            log_path=self.folder / "etcd.log",
            is_ready=lambda: answers_plain_http(address, "/health"),
        )
        return Server(server, guard=self._guard)

    def _api_server(self, options: ControlPlaneOptions, *, etcd_url: str) -> Server:
        front_proxy = Authority(self.folder / "pki" / "front-proxy")
        settings = ApiServerSettings(
            program=program("kube-apiserver"),
            port=self._port,
            etcd_url=etcd_url,
            ca_file=self.ca_file,
            server_pair=self._server_pair,
            front_proxy_ca_file=front_proxy.certificate_file,
            front_proxy_pair=front_proxy.client_pair("front-proxy-client"),
            service_account_key=self._service_account_key,
            token_file=self._tokens.path,
            authentication_config=access.write_authentication_config(self.folder / "authentication.yaml"),
            certificate_folder=self.folder / "pki",
            feature_gates=options.feature_gates,
            disabled_admission=("TaintNodesByCondition",)
            if options.has_controllers
            else ADMISSION_WITHOUT_ITS_CONTROLLER,
            extra_args=options.apiserver_args,
        )
        server = ServerSettings(
            command=apiserver_command(settings),
            log_path=self.folder / "kube-apiserver.log",
            is_ready=lambda: self.admin.is_healthy("/readyz"),
        )
        return Server(server, guard=self._guard)

    def _wait_for_namespaces(self) -> None:
        """The API server makes its namespaces by itself, a moment after it is ready."""
        deadline = time.monotonic() + _NAMESPACE_PATIENCE_SECONDS
        while self.admin.request("GET", "/api/v1/namespaces/default").status != http.client.OK:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no namespace `default` after {_NAMESPACE_PATIENCE_SECONDS:g} s")
            time.sleep(0.05)

    def _create_default_service_account(self) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        status, body = self.admin.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
        if status not in (http.client.CREATED, http.client.CONFLICT):
            raise CommandFailed(f"creating the service account `default` was answered with {status}: {body}")

    def _run(
        self, name: str, args: Sequence[str], *, stdin: str | None, check: bool
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(program(name)), *args],
            input=stdin if stdin is not None else "",
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        if check and done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise CommandFailed(f"{name} {' '.join(args)} ended with status {done.returncode}:\n{said}")
        return done
