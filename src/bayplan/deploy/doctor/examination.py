"""Runs all checks in order: connection, permissions, definitions, lease, workloads. A check that fails to run is a
finding too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.client.errors import ApiError, ClientError
from bayplan.client.transport import Transport
from bayplan.cluster.pod_info import parse_time
from bayplan.deploy.bundle import Bundle
from bayplan.deploy.doctor.cluster_reader import ClusterReader
from bayplan.deploy.doctor.definitions import check_definitions
from bayplan.deploy.doctor.devices import check_devices
from bayplan.deploy.doctor.finding import Finding, Level
from bayplan.deploy.doctor.permissions import check_permissions
from bayplan.deploy.doctor.workloads import check_nodes, check_pods, check_profiles, check_rivals
from bayplan.deploy.rbac import Lease

__all__ = ["Examination", "examine"]

_OLDEST_MINOR = 29


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The input of an examination."""

    bundle: Bundle
    namespace: str = "kube-system"
    """The namespace of the scheduler."""
    user: str | None = None
    """The user whose permissions are checked; None for the user of the connection."""
    now: float = 0.0


async def examine(transport: Transport, examination: Examination) -> list[Finding]:
    """Every finding, positive ones included. Stops after the first when the cluster does not answer."""
    reading = ClusterReader(transport)
    try:
        findings = _version_findings(await reading.json("/version"))
    except ClientError as error:
        return [_unreachable(error)]
    bundle = examination.bundle
    findings += _config_findings(bundle)
    lease = bundle.lease(examination.namespace) if bundle.elects else None
    checks: list[tuple[str, Callable[[], Awaitable[list[Finding]]]]] = [
        ("rbac", lambda: check_permissions(reading, bundle, lease=lease, user=examination.user)),
        ("crd", lambda: check_definitions(reading, bundle)),
        ("lease", lambda: _check_lease(reading, lease, examination.now)),
        ("pods", lambda: _check_workloads(reading, examination)),
    ]
    for name, check in checks:
        findings += await _attempted(name, check)
    return findings


async def _attempted(name: str, check: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    try:
        return await check()
    except ClientError as error:
        why = "nothing can be said about it as this user"
        return [Finding(Level.WARNING, name, f"could not be checked: {error}", why, "ask again as an administrator")]


def _unreachable(error: ClientError) -> Finding:
    if isinstance(error, ApiError):
        what, why = f"the API server refuses to answer: {error}", "the credentials are not accepted"
    else:
        what, why = f"the API server does not answer: {error}", "nothing can be scheduled, and nothing else checked"
    return Finding(Level.ERROR, "api", what, why, "kubectl cluster-info")


def _version_findings(version: dict[str, Any]) -> list[Finding]:
    text = str(version.get("gitVersion", "unknown"))
    minor = "".join(c for c in str(version.get("minor", "")) if c.isdigit())
    if minor and int(minor) < _OLDEST_MINOR:
        why = f"versions before 1.{_OLDEST_MINOR} lack fields that the scheduler reads and writes"
        return [Finding(Level.WARNING, "api", f"the API server is {text}", why, "upgrade the cluster")]
    return [Finding(Level.OK, "api", f"the API server answers: {text}")]


def _config_findings(bundle: Bundle) -> list[Finding]:
    warnings = [*bundle.settings.config.warnings, *(w for p in bundle.settings.profiles for w in p.warnings)]
    return [
        Finding(Level.WARNING, "config", str(warning), "it works today", "change the configuration as it says")
        for warning in warnings
    ] or [Finding(Level.OK, "config", f"the configuration is valid: {', '.join(bundle.scheduler_names)}")]


async def _check_lease(reading: ClusterReader, lease: Lease | None, now: float) -> list[Finding]:
    if lease is None:
        return []
    path = f"/apis/coordination.k8s.io/v1/namespaces/{lease.namespace}/leases/{lease.name}"
    found = await reading.json_if_any(path)
    label = f"{lease.namespace}/{lease.name}"
    spec = (found or {}).get("spec") or {}
    holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
    if not holder:
        why = "this scheduler has not started yet, or none of its replicas can reach the lease"
        return [Finding(Level.WARNING, "lease", f"no process holds the lease `{label}`", why, _logs(lease))]
    age = now - parse_time(renewed) if renewed else float("inf")
    if age > float(spec.get("leaseDurationSeconds") or 15):
        what = f"the lease `{label}` of {holder} was last renewed {age:.0f} s ago"
        return [Finding(Level.ERROR, "lease", what, "no replica schedules", _logs(lease))]
    return [Finding(Level.OK, "lease", f"{holder} leads")]


def _logs(lease: Lease) -> str:
    return f"kubectl --namespace {lease.namespace} logs deployment/{lease.name}"


async def _check_workloads(reading: ClusterReader, examination: Examination) -> list[Finding]:
    pods, _ = await reading.objects("/api/v1/pods", Pod)
    nodes, _ = await reading.objects("/api/v1/nodes", Node)
    bundle = examination.bundle
    is_running = await _default_is_running(reading, examination.now)
    return [
        *check_nodes(nodes),
        *check_pods(pods, bundle, now=examination.now),
        *check_profiles(pods, bundle),
        *check_rivals(pods, bundle, default_is_running=is_running),
        *await check_devices(reading, pods),
    ]


async def _default_is_running(reading: ClusterReader, now: float) -> bool:
    """kube-scheduler renews its lease every two seconds."""
    found = await reading.json_if_any("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    renewed = ((found or {}).get("spec") or {}).get("renewTime")
    return bool(renewed) and now - parse_time(renewed) < 60.0
