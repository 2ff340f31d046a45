"""A scheduler from start to stop, without an API server: what a reload changes, and what a stop waits for."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.unit.loop.kit import Loop, node, pod, running
from tests.waiting import until

from bayplan.api.devices import DeviceClass
from bayplan.api.meta import Metadata
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.framework import EventHint, Plugin, PluginArgs
from bayplan.framework.errors import PluginError
from bayplan.plugins.intree import default_registry
from bayplan.queue import Place
from bayplan.testing import Harness

TWO = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]
"""
ONE = TWO.replace("{schedulerName: default-scheduler}, ", "")


HOLDING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Holder}]}}
  pluginConfig: [{name: Holder, args: {label: LABEL}}]
"""


ONE_NODE_ALONE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: OneNodeAlone, weight: 100}]}}}]
"""


class OneNodeAlone(Plugin):
    """Called for each node, because it reads more than the engine can follow."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 100 if node.name == vars(self).get("favourite", "n777") else 0


class HolderArgs(PluginArgs):
    label: str = ""


def reload(loop: Loop, config: str) -> None:
    registry, settings = default_registry(), load_config(config)
    loop.live.reload(settings, resolve_profiles(settings, registry), registry)


async def test_a_new_profile_claims_the_pods_that_have_been_waiting_for_it() -> None:
    loop = Loop([node("n")])
    async with running(loop):
        loop.put(pod("p", scheduler="second"))
        await loop.settle()
        assert loop.transport.bindings == {}
        reload(loop, TWO)
        await loop.settle()

    assert loop.transport.bindings == {"p": "n"}


async def test_pods_of_a_profile_that_is_gone_are_left_alone() -> None:
    loop = Loop([node("n")], config=TWO)
    async with running(loop):
        reload(loop, ONE)
        loop.put(pod("p"), pod("q", scheduler="second"))
        await loop.settle()

    assert loop.transport.bindings == {"q": "n"}


async def test_a_rejected_pod_is_tried_with_the_new_plugins() -> None:
    loop = Loop([node("n", taints=["a=b:NoSchedule"])])
    lenient = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}}]
"""
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        assert loop.queue.place_of("default/p") is Place.UNSCHEDULABLE
        reload(loop, lenient)
        await loop.settle(2)

    assert loop.transport.bindings == {"p": "n"}


async def test_a_stop_waits_for_bindings_under_way() -> None:
    loop = Loop([node("n")])
    loop.transport.hold = asyncio.Event()
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        assert len(loop.live.tasks) == 1
        stopping = asyncio.create_task(loop.live._stop([]))
        await loop.settle()
        assert not stopping.done()
        loop.transport.hold.set()
        await loop.settle(10)
        await stopping

    assert loop.live.cache.assumed_count == 1


async def test_a_replica_that_lost_its_lease_waits_for_nothing() -> None:
    leads = [True]
    loop = Loop([node("n")], is_leader=lambda: leads[0])
    loop.transport.hold = asyncio.Event()
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        leads[0] = False
        await asyncio.wait_for(loop.live._stop([]), 60)
        assert len(loop.live.tasks) == 0

    assert loop.live.cache.assumed_count == 0


async def test_a_replica_that_lost_its_lease_leaves_conditions_and_nominations_to_the_next() -> None:
    loop = Loop([node("n")], is_leader=lambda: False)
    loop.live.status.report(pod("p"), reason="Unschedulable", message="no room", nominated_node_name="n")
    await asyncio.wait_for(loop.live._stop([]), 60)

    assert loop.transport.patches("p") == []


async def test_events_wait_while_many_pods_wait_for_a_decision() -> None:
    loop = Loop([node("n")])
    assert not loop.live._is_under_load()

    loop.put(*(pod(f"p{i}") for i in range(100)))
    assert loop.live._is_under_load()

    async with running(loop):
        await loop.settle()
        assert not loop.live._is_under_load()


async def test_plugins_are_torn_down_when_a_reload_replaces_them_and_when_the_scheduler_stops() -> None:
    torn_down: list[str] = []

    class Holder(Plugin[HolderArgs]):
        def filter(self, state: Any, pod: Any, node: Any) -> None: ...

        def teardown(self) -> None:
            torn_down.append(self.args.label)

    registry = default_registry()
    registry.add(Holder)

    loop = Loop([node("n")], config=HOLDING.replace("LABEL", "first"), plugins=[Holder])
    async with running(loop):
        second = load_config(HOLDING.replace("LABEL", "second"))
        loop.live.reload(second, resolve_profiles(second, registry), registry)
        assert torn_down == ["first"]
    await loop.live._stop([])

    assert torn_down == ["first", "second"]


async def test_plugins_of_a_configuration_that_does_not_take_effect_are_torn_down() -> None:
    """Its first plugin is built already when the second one fails, in `setup` or when its events are read."""
    torn_down: list[str] = []

    class Holder(Plugin[HolderArgs]):
        def filter(self, state: Any, pod: Any, node: Any) -> None: ...

        def teardown(self) -> None:
            torn_down.append(self.args.label)

    class FailsInSetup(Plugin):
        def setup(self) -> None:
            raise ValueError("no key")

        def filter(self, state: Any, pod: Any, node: Any) -> None: ...

    class FailsInEvents(Plugin):
        def filter(self, state: Any, pod: Any, node: Any) -> None: ...

        def events_to_register(self) -> list[EventHint]:
            raise ValueError("no key")

    loop = Loop([node("n")], config=HOLDING.replace("LABEL", "first"), plugins=[Holder])
    async with running(loop):
        for number, fragile in enumerate((FailsInSetup, FailsInEvents)):
            registry = default_registry()
            registry.add(Holder)
            registry.add(fragile)
            text = HOLDING.replace("{name: Holder}]", f"{{name: Holder}}, {{name: {fragile.__name__}}}]")
            config = load_config(text.replace("LABEL", f"try {number}"))
            with pytest.raises(PluginError, match="no key"):
                loop.live.reload(config, resolve_profiles(config, registry), registry)
        assert torn_down == ["try 0", "try 1"]
        loop.put(pod("p"))
        await loop.settle()

    assert loop.transport.bindings == {"p": "n"}


async def test_a_plugin_that_is_called_for_each_node_sees_all_of_them_live_and_offline() -> None:
    nodes = [node(f"n{number}") for number in range(1000)]
    pods = [pod(f"p{number}") for number in range(6)]
    loop = Loop(nodes, plugins=[OneNodeAlone], config=ONE_NODE_ALONE)
    async with running(loop):
        loop.put(*pods)
        await loop.settle()
    harness = Harness(nodes=nodes, plugins=[OneNodeAlone], config=ONE_NODE_ALONE)
    offline = {each.name: harness.schedule(each).node_name for each in pods}

    assert loop.transport.bindings == {each.name: "n777" for each in pods}
    assert offline == loop.transport.bindings


async def test_the_language_that_selects_devices_is_loaded_in_a_thread_before_a_claim_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[tuple[str, bool]] = []

    def load(name: str) -> None:
        loaded.append((name, threading.current_thread() is threading.main_thread()))

    monkeypatch.setattr("bayplan.app.live.import_module", load)
    loop = Loop([node("n")])
    async with running(loop):
        assert loaded == []
        for name in ("gpu", "nic"):
            loop.live.intake.object_handler("DeviceClass")(None, DeviceClass(metadata=Metadata(name=name)))
        await until(lambda: bool(loaded), what="the language loaded")

    assert loaded == [("bayplan.cel.devices", False)]
