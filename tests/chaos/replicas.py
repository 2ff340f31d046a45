"""Two replicas of `bayplan run`, each behind a proxy of its own and with a clock that can be moved."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.process import Guard
from tests.e2e.api_session import ApiSession
from tests.e2e.clusters import Cluster
from tests.e2e.scheduler_process import SHORT_LEASE, SchedulerProcess
from tests.fault.faulty_proxy import FaultyProxy

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_IDENTITY = re.compile(r"attempting to acquire leader lease \S+ as (\S+)")
_FAKETIME = Path("/usr/lib") / f"{sys.implementation._multiarch}" / "faketime" / "libfaketime.so.1"
_GANGS: dict[str, Any] = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}
_QUOTAS = {
    "multiPoint": {**_GANGS, "enabled": [*_GANGS["enabled"], {"name": "CapacityScheduling"}]},
    "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
}
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": SHORT_LEASE,
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 2,
    "profiles": [
        {"schedulerName": "default-scheduler", "plugins": {"multiPoint": _GANGS}},
        {"schedulerName": "quota-scheduler", "plugins": _QUOTAS},
    ],
}


class Replica:
    def __init__(
        self, name: str, proxy: FaultyProxy, folder: Path, guard: Guard, *, sources: Path | None = None
    ) -> None:
        """`sources`: the folder of another version's packages."""
        self.name = name
        self._sources = sources
        self.proxy = proxy
        self._folder = folder
        self._guard = guard
        folder.mkdir()
        self._config = folder / "config.yaml"
        self.configure(CONFIG)
        self._kubeconfig = proxy.kubeconfig(folder)
        self._clock = folder / "clock"
        self.set_clock("+0")
        self.is_stopped = False
        self.process = self._started()

    def configure(self, document: Mapping[str, Any]) -> None:
        """For the next start."""
        self._config.write_text(yaml.safe_dump(dict(document)))

    def _started(self) -> SchedulerProcess:
        self.is_stopped = False
        flags = (f"--config={self._config}", f"--kubeconfig={self._kubeconfig}")
        return SchedulerProcess(self._folder, self._guard, *flags, environment=self._environment())

    def _environment(self) -> Mapping[str, str]:
        version = {"PYTHONPATH": str(self._sources)} if self._sources is not None else {}
        if not self.has_clock:
            return version
        return version | {
            "LD_PRELOAD": str(_FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    @property
    def has_clock(self) -> bool:
        """Whether its clock can be moved: libfaketime is installed."""
        return _FAKETIME.is_file()

    def set_clock(self, offset: str) -> None:
        """`+3600` is an hour ahead."""
        self._clock.write_text(f"{offset}\n")

    @property
    def log(self) -> str:
        return self.process.log

    @property
    def identity(self) -> str:
        found = _IDENTITY.findall(self.log)
        return str(found[-1]) if found else ""

    def restart_if_ended(self) -> bool:
        """As a kubelet would."""
        if self.process.is_running:
            return False
        self.process = self._started()
        return True

    def pause(self) -> None:
        if self.process.is_running:
            self.process.send(signal.SIGSTOP)
            self.is_stopped = True

    def go_on(self) -> None:
        if self.is_stopped and self.process.is_running:
            self.process.send(signal.SIGCONT)
        self.is_stopped = False


class Replicas:
    def __init__(
        self, cluster: Cluster, api: ApiSession, folder: Path, guard: Guard, *, other_sources: Path | None = None
    ) -> None:
        """With `other_sources`, the second replica is of another version."""
        self._cluster = cluster
        self._sources = (None, other_sources)
        self._api = api
        self._folder = folder
        self._guard = guard
        self._proxies = [FaultyProxy(cluster), FaultyProxy(cluster)]
        self.all: list[Replica] = []
        self.restarts = 0

    async def __aenter__(self) -> Replicas:
        for number, proxy in enumerate(self._proxies):
            await proxy.__aenter__()
            name = f"replica-{number}"
            sources = self._sources[number]
            self.all.append(Replica(name, proxy, self._folder / name, self._guard, sources=sources))
        return self

    async def __aexit__(self, *_: object) -> None:
        for replica in self.all:
            replica.go_on()
            if replica.process.is_running:
                await asyncio.to_thread(replica.process.stop)
        for proxy in self._proxies:
            await proxy.__aexit__()

    async def keep_running(self) -> None:
        """Start again what has ended, until cancelled."""
        while True:
            await asyncio.sleep(0.5)
            self.restarts += sum(replica.restart_if_ended() for replica in self.all)

    async def leader(self) -> Replica | None:
        """The holder of the lease, as the API has it."""
        lease = await self._api.call("GET", LEASE, allow=[404])
        holder = lease.get("spec", {}).get("holderIdentity", "")
        return next((replica for replica in self.all if holder and replica.identity == holder), None)
