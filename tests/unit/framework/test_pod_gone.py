"""Pods that leave their nodes are reported to plugins that keep count of something for them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from tests.unit.explain.stage import raw_pod, staged

from bayplan.framework import Plugin, Unschedulable
from bayplan.testing import Harness, node, pod


class Licences(Plugin):
    """One licence; a pod takes it on its node and gives it back when it leaves."""

    def setup(self) -> None:
        self.holders: set[str] = set()

    def reserve(self, state: Any, pod: Any, node_name: str) -> Any:
        if self.holders:
            return Unschedulable("no licence left")
        self.holders.add(pod.uid)
        return None

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.holders.discard(pod.uid)

    def pod_gone(self, pod: Any, node_name: str) -> None:
        self.holders.discard(pod.uid)


class Broken(Plugin):
    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        return None

    def pod_gone(self, pod: Any, node_name: str) -> None:
        raise LookupError(node_name)


def test_what_a_pod_held_is_free_again_when_it_is_gone() -> None:
    harness = Harness(nodes=[node("n")], plugins=[Licences])
    first, second = pod("first"), pod("second")

    assert harness.schedule(first).is_scheduled
    assert not harness.schedule(second).is_scheduled
    harness.remove(first)
    assert harness.schedule(second).is_scheduled


def test_a_plugin_that_fails_there_is_reported() -> None:
    harness = Harness(nodes=[node("n")], plugins=[Broken])
    harness.schedule(pod("p"))
    harness.remove(pod("p"))

    assert len(harness.complaints) == 1


async def test_a_deleted_pod_makes_room_for_the_next_in_a_running_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "licences.py"
    head = "from typing import Any\nfrom bayplan.framework import Plugin, Unschedulable\n\n\n"
    file.write_text(head + inspect.getsource(Licences))
    async with staged(1, plugins=[str(file)]) as stage:
        await stage.create(raw_pod("first"))
        await stage.settled(bound=1)
        await stage.create(raw_pod("second"))
        await stage.settled(bound=1, failed=1)
        path = "/api/v1/namespaces/default/pods/first?gracePeriodSeconds=0"
        response = await stage.local.transport().request("DELETE", path)
        assert response.status == 200
        await stage.settled(bound=2)
