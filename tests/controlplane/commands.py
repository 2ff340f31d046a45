"""The command lines of etcd and kube-apiserver, and why each flag is there.

Pure functions from settings to words: nothing is started here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.controlplane.certificates import KeyPair
from tests.controlplane.ports import LOOPBACK

# Each of these adds something that a controller has to take away again, and no controller manager runs here:
# a service-account token for every pod, the not-ready taint of new nodes, the protection finalizers of volumes.
ADMISSION_WITHOUT_ITS_CONTROLLER = ("ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection")

_ETCD_QUOTA_BYTES = 8 * 1024**3
_SERVICE_ADDRESSES = "10.96.0.0/16"


@dataclass(frozen=True, kw_only=True)
class EtcdSettings:
    program: Path
    data_folder: Path
    client_port: int
    peer_port: int
    extra_args: Sequence[str] = ()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.client_port}"


@dataclass(frozen=True, kw_only=True)
class ApiServerSettings:
    program: Path
    port: int
    etcd_url: str
    ca_file: Path
    server_pair: KeyPair
    front_proxy_ca_file: Path
    front_proxy_pair: KeyPair
    service_account_key: Path
    token_file: Path
    authentication_config: Path
    certificate_folder: Path
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    disabled_admission: Sequence[str] = ADMISSION_WITHOUT_ITS_CONTROLLER
    extra_args: Sequence[str] = ()

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class ControllerManagerSettings:
    program: Path
    port: int
    kubeconfig: Path
    ca_file: Path
    server_pair: KeyPair
    service_account_key: Path


def etcd_command(settings: EtcdSettings) -> list[str]:
    """One member, loopback only. Without fsync: a test run may lose its data with the machine, never with etcd."""
    peer_url = f"http://{LOOPBACK}:{settings.peer_port}"
    return [
        str(settings.program),
        "--name=bayplan-test",
        f"--data-dir={settings.data_folder}",
        f"--listen-client-urls={settings.url}",
        f"--advertise-client-urls={settings.url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=bayplan-test={peer_url}",
        f"--quota-backend-bytes={_ETCD_QUOTA_BYTES}",
        "--unsafe-no-fsync=true",
        "--log-level=warn",
        *settings.extra_args,
    ]


def apiserver_command(settings: ApiServerSettings) -> list[str]:
    """TLS on loopback, RBAC, and limits out of the way of a scheduler that binds thousands of pods a second."""
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in settings.feature_gates.items())
    return [
        str(settings.program),
        *_serving_flags(settings),
        *_access_flags(settings),
        *_front_proxy_flags(settings),
        f"--etcd-servers={settings.etcd_url}",
        f"--service-cluster-ip-range={_SERVICE_ADDRESSES}",
        f"--disable-admission-plugins={','.join(settings.disabled_admission)}",
        "--allow-privileged=true",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=3000",
        *([f"--feature-gates={gates}"] if gates else []),
        *settings.extra_args,
    ]


def controller_manager_command(settings: ControllerManagerSettings) -> list[str]:
    """All controllers but the one that waits for reports of kubelets, of which there are none."""
    return [
        str(settings.program),
        f"--kubeconfig={settings.kubeconfig}",
        f"--authentication-kubeconfig={settings.kubeconfig}",
        f"--authorization-kubeconfig={settings.kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={settings.port}",
        f"--tls-cert-file={settings.server_pair.certificate}",
        f"--tls-private-key-file={settings.server_pair.key}",
        f"--root-ca-file={settings.ca_file}",
        f"--service-account-private-key-file={settings.service_account_key}",
        "--controllers=*,-node-lifecycle-controller",
        "--leader-elect=false",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
    ]


def _serving_flags(settings: ApiServerSettings) -> list[str]:
    return [
        f"--bind-address={LOOPBACK}",
        # A machine without a network has no other address to offer, and no endpoint may hold a loopback address.
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",
        f"--secure-port={settings.port}",
        f"--tls-cert-file={settings.server_pair.certificate}",
        f"--tls-private-key-file={settings.server_pair.key}",
        f"--cert-dir={settings.certificate_folder}",
    ]


def _access_flags(settings: ApiServerSettings) -> list[str]:
    return [
        f"--client-ca-file={settings.ca_file}",
        f"--token-auth-file={settings.token_file}",
        f"--authentication-config={settings.authentication_config}",
        "--authorization-mode=RBAC",
        f"--service-account-key-file={settings.service_account_key}",
        f"--service-account-signing-key-file={settings.service_account_key}",
        "--service-account-issuer=https://kubernetes.default.svc",
    ]


def _front_proxy_flags(settings: ApiServerSettings) -> list[str]:
    """Programs that delegate authentication (kube-scheduler, ours) read these from a ConfigMap, as in any cluster."""
    return [
        f"--requestheader-client-ca-file={settings.front_proxy_ca_file}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={settings.front_proxy_pair.certificate}",
        f"--proxy-client-key-file={settings.front_proxy_pair.key}",
    ]
