"""The users of a cluster in trouble: what they ask for, and the ledger of it.

Each kind of workload has nodes of its own, with room for all that may be asked for there at a time. So at the end every
pod must have a node, but for those that a quota keeps waiting. Requests are repeated until they are answered.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from bayplan.client.errors import ClientError
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL
from tests.e2e.api_session import NO_GRACE, ApiSession
from tests.e2e.claim_controller import give_back, make_claims
from tests.e2e.device_objects import device_class, published, template
from tests.e2e.objects import ZONE, JsonObject, claim, node, pod, priority_class, spread, storage_class, volume
from tests.waiting import answer

POOL = "pool"
BORROWER, LENDER, BYSTANDER = "borrower", "lender", "bystander"
GUARANTEED = 4
LOW_PODS, HIGH_PODS = 12, 6
_MOST_PLAIN, _MOST_APPS, _MOST_GANGS, _MOST_VOLUMES, _MOST_DEVICES = 150, 6, 6, 18, 20
_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
_QUOTAS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/elasticquotas"
_PAUSE_SECONDS = 0.3


def nodes() -> list[JsonObject]:
    made = [node(f"plain-{i:02}", cpu="8", pods=60, labels={POOL: "plain", ZONE: f"zone-{i % 3}"}) for i in range(12)]
    made += [node(f"spread-{i}", cpu="8", pods=60, labels={POOL: "spread", ZONE: f"zone-{i}"}) for i in range(3)]
    for pool in ("gang", "high", "quota", "volumes", "devices"):
        made += [
            node(f"{pool}-{i}", cpu="8" if pool in ("gang", "volumes", "devices") else "4", labels={POOL: pool})
            for i in range(3)
        ]
    return made


def fixtures() -> list[JsonObject]:
    """What stands there before the first pod."""
    volumes = [
        volume(f"volume-{i}", storage_class="local", node_names=[f"volumes-{i % 3}"]) for i in range(_MOST_VOLUMES)
    ]
    drivers = [published(f"devices-{i}", 8) for i in range(3)]
    return [
        priority_class("high", 1000),
        storage_class("local", waits=True),
        device_class(),
        template(1),
        *volumes,
        *drivers,
        *nodes(),
    ]


@dataclass
class Asked:
    """The ledger of what clients asked for, by `namespace/name`."""

    pods: dict[str, str] = field(default_factory=dict)
    """The kind of workload."""
    deleted: set[str] = field(default_factory=set)

    def wanted(self, *kinds: str) -> list[str]:
        return [key for key, kind in self.pods.items() if kind in kinds and key not in self.deleted]


class Clients:
    def __init__(self, api: ApiSession, dice: random.Random) -> None:
        self._api = api
        self._dice = dice
        self.asked = Asked()
        self._serial = 0
        self._is_over = False

    def stop(self) -> None:
        """Let `run` end once the present step is answered."""
        self._is_over = True

    async def run(self) -> None:
        """Ask for things until stopped."""
        steps = [self._plain] * 3 + [self._spread, self._gang, self._volumes, self._devices, self._high, self._lender]
        while not self._is_over:
            await self._dice.choice(steps)()
            await asyncio.sleep(self._dice.uniform(0.1, 0.6))

    async def prepare(self) -> None:
        """Pods that fill their nodes before anybody comes who must make room there."""
        low = [self._pod(f"low-{i}", "high", cpu="1") for i in range(LOW_PODS)]
        await self._create("low", low)
        for namespace in (BORROWER, LENDER, BYSTANDER):
            await self._call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            quota = {"metadata": {"name": "quota"}, "spec": {"min": {"cpu": GUARANTEED}}}
            body = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", **quota}
            await self._call("POST", _QUOTAS.format(namespace), body)
        await self._quota_pods(BYSTANDER, GUARANTEED)

        async def are_bound() -> bool:
            return all(each["spec"].get("nodeName") for each in await self._api.pods())

        await answer(are_bound, what="the first pods bound")

    async def finish(self) -> None:
        """What every run has at its end, whatever the dice said."""
        while len(self.asked.wanted("high")) < HIGH_PODS:
            await self._high()
        await self._lender()

    async def run_claim_controller(self) -> None:
        while True:
            try:
                await make_claims(self._api)
                await give_back(self._api)
            except (ClientError, AssertionError, KeyError):
                pass  # the API server is away, or a pod went meanwhile: next time
            await asyncio.sleep(0.5)

    # Workloads

    async def _plain(self) -> None:
        alive = self.asked.wanted("plain")
        if len(alive) > _MOST_PLAIN:
            await self._delete(*self._dice.sample(alive, 20))
        await self._create("plain", [self._pod(self._name("plain"), "plain") for _ in range(self._dice.randint(5, 20))])

    async def _spread(self) -> None:
        apps = {key.rpartition("-")[0] for key in self.asked.wanted("spread")}
        if len(apps) >= _MOST_APPS:
            gone = self._dice.choice(sorted(apps))
            await self._delete(*(key for key in self.asked.wanted("spread") if key.startswith(f"{gone}-")))
        app = self._name("app")
        constraint = spread(ZONE, app, hard=True)
        rules = {"topologySpreadConstraints": [constraint]}
        made = [self._pod(f"{app}-{i}", "spread", cpu="100m", labels={"app": app}, **rules) for i in range(9)]
        await self._create("spread", made)

    async def _gang(self) -> None:
        groups = {key.rpartition("-")[0] for key in self.asked.wanted("gang")}
        if len(groups) >= _MOST_GANGS:
            gone = self._dice.choice(sorted(groups))
            await self._delete(*(key for key in self.asked.wanted("gang") if key.startswith(f"{gone}-")))
        name = self._name("gang")
        group = {"metadata": {"name": name}, "spec": {"minMember": 5}}
        await self._call("POST", _GROUPS, {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", **group})
        labels = {POD_GROUP_LABEL: name}
        await self._create("gang", [self._pod(f"{name}-{i}", "gang", cpu="500m", labels=labels) for i in range(5)])

    async def _volumes(self) -> None:
        if len(self.asked.wanted("volumes")) >= _MOST_VOLUMES:
            return
        name = self._name("disk")
        path = "/api/v1/namespaces/default/persistentvolumeclaims"
        await self._call("POST", path, claim(name, storage_class="local"))
        await self._create("volumes", [self._pod(name, "volumes", claims=[name])])

    async def _devices(self) -> None:
        alive = self.asked.wanted("devices")
        if len(alive) >= _MOST_DEVICES:
            await self._delete(*self._dice.sample(alive, 4))
            return
        claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
        await self._create("devices", [self._pod(self._name("device"), "devices", resourceClaims=claims)])

    async def _high(self) -> None:
        if len(self.asked.wanted("high")) < HIGH_PODS:
            await self._create("high", [self._pod(self._name("high"), "high", cpu="1", priorityClassName="high")])

    async def _lender(self) -> None:
        """The borrower takes what is idle; later the lender wants it back."""
        if not self.asked.wanted(BORROWER):
            await self._quota_pods(BORROWER, 10)
        elif not self.asked.wanted(LENDER):
            await self._quota_pods(LENDER, GUARANTEED)

    async def _quota_pods(self, namespace: str, count: int) -> None:
        made = [self._pod(f"{namespace}-{i}", "quota", cpu="1", schedulerName="quota-scheduler") for i in range(count)]
        await self._create(namespace, made, namespace=namespace)

    # Requests

    def _name(self, prefix: str) -> str:
        self._serial += 1
        return f"{prefix}-{self._serial:04}"

    def _pod(self, name: str, pool: str, **fields: Any) -> JsonObject:
        return pod(name, nodeSelector={POOL: pool}, **fields)

    async def _create(self, kind: str, pods: list[JsonObject], *, namespace: str = "default") -> None:
        self.asked.pods |= {f"{namespace}/{each['metadata']['name']}": kind for each in pods}
        path = f"/api/v1/namespaces/{namespace}/pods"
        await asyncio.gather(*(self._call("POST", path, each) for each in pods))

    async def _delete(self, *keys: str) -> None:
        self.asked.deleted |= set(keys)
        paths = [f"/api/v1/namespaces/{key.replace('/', '/pods/')}" for key in keys]
        await asyncio.gather(*(self._call("DELETE", path, NO_GRACE) for path in paths))

    async def _call(self, method: str, path: str, body: JsonObject) -> None:
        """Until it is answered. Names are never used twice, so that what exists already is ours."""
        while True:
            try:
                await self._api.call(method, path, body, allow=[404] if method == "DELETE" else [409])
                return
            except (ClientError, AssertionError):
                await asyncio.sleep(_PAUSE_SECONDS)
