"""What the API server says happened to pods, kept from the outside: who was put where, and how often.

The ledger watches all pods on a connection of its own. Together with `account_for` it answers the questions at the end
of every run: is each pod bound, once, and is no node promised more than it has?
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

from bayplan.api.pod import Pod
from bayplan.client.reflector import Reflector
from tests.e2e.api_session import CLOCK, transport_to
from tests.e2e.objects import JsonObject

_SUFFIXES = {"m": Decimal("0.001"), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30)}


class Ledger:
    """Every node that every pod was seen on, in order."""

    def __init__(self) -> None:
        self.nodes_of: dict[str, list[str]] = defaultdict(list)
        self.names: dict[str, str] = {}
        self.deleted: set[str] = set()

    def take(self, old: Pod | None, new: Pod | None) -> None:
        known = new if new is not None else old
        assert known is not None
        self.names[known.uid] = known.name
        if new is None:
            self.deleted.add(known.uid)
        elif new.spec.node_name and (not self.nodes_of[new.uid] or self.nodes_of[new.uid][-1] != new.spec.node_name):
            self.nodes_of[new.uid].append(new.spec.node_name)

    @property
    def bound(self) -> int:
        """Pods that have a node, whether they are still there or not."""
        return sum(bool(nodes) for nodes in self.nodes_of.values())

    def moved(self) -> dict[str, list[str]]:
        """Pods that were seen on more than one node: there must be none."""
        return {self.names[uid]: nodes for uid, nodes in self.nodes_of.items() if len(nodes) > 1}


@contextlib.asynccontextmanager
async def keeping_ledger(kubeconfig: Path) -> AsyncIterator[Ledger]:
    ledger = Ledger()
    transport = transport_to(kubeconfig)
    reflector = Reflector(transport, "/api/v1/pods", Pod, ledger.take, clock=CLOCK, draw=random.random)
    task = asyncio.create_task(reflector.run(), name="ledger")
    try:
        async with asyncio.timeout(30):
            await reflector.synced.wait()
        yield ledger
    finally:
        task.cancel()
        await asyncio.wait([task])
        await transport.close()


def amount(text: str | int) -> Decimal:
    """A Kubernetes quantity, for the forms that these tests use."""
    text = str(text)
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return Decimal(text.removesuffix(suffix)) * factor
    return Decimal(text)


def overcommitted(nodes: list[JsonObject], pods: list[JsonObject]) -> list[str]:
    """A sentence for every node that was promised more cpu, memory, pods or host ports than it has."""
    room = {node["metadata"]["name"]: node["status"]["allocatable"] for node in nodes}
    used: dict[str, dict[str, Decimal]] = {name: defaultdict(Decimal) for name in room}
    ports: set[tuple[str, int]] = set()
    problems = []
    for pod in pods:
        name = pod["spec"].get("nodeName", "")
        if name not in room:
            continue
        used[name]["pods"] += 1
        for container in pod["spec"]["containers"]:
            for resource, text in (container["resources"].get("requests") or {}).items():
                used[name][resource] += amount(text)
            for port in container.get("ports") or ():
                if (name, port.get("hostPort", 0)) in ports:
                    problems.append(f"{name}: host port {port['hostPort']} is taken twice")
                if port.get("hostPort"):
                    ports.add((name, port["hostPort"]))
    for name, amounts in used.items():
        for resource, total in amounts.items():
            if total > amount(room[name].get(resource, "0")):
                problems.append(f"{name}: {resource} {total} of {room[name].get(resource, '0')}")
    return problems
