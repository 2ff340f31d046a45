"""Plugins that want all memory or all time for one pod: the others are scheduled, and the process can be ended."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.unit.app.processes import PODS, scheduler_with
from tests.waiting import answer

GREEDY = """
from bayplan.framework import Plugin, Wait


class Greedy(Plugin):
    def filter(self, state, pod, node):
        taken = []
        while pod.name == "hungry":
            taken.append(bytearray(1 << 28))

    def permit(self, state, pod, node_name):
        return Wait(10**12) if pod.name == "patient" else None
"""
MOST_BYTES = 3 << 30


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


async def test_one_pod_for_which_a_plugin_takes_all_memory_or_waits_forever_stops_nobody(tmp_path: Path) -> None:
    names = ["hungry", "patient", "one", "two"]
    async with scheduler_with(tmp_path, GREEDY, names, before=limit_memory) as (process, transport):
        found: dict[str, str] = {}

        async def is_settled() -> bool:
            for name in names:
                spec = (await transport.request("GET", f"{PODS}/{name}")).json()
                found[name] = spec["spec"].get("nodeName", "")
                conditions = spec["status"].get("conditions", ())
                found[f"why {name}"] = next((c.get("reason", "") for c in conditions if c["status"] == "False"), "")
            return bool(found["one"] and found["two"] and found["why hungry"])

        await answer(is_settled)
        is_running = process.returncode is None
        process.terminate()
        _, log = await process.communicate()

    assert is_running
    assert (found["hungry"], found["patient"], found["why hungry"]) == ("", "", "SchedulerError")
    assert "MemoryError" in log.decode()
    assert process.returncode == 0


QUITTER = """
import sys

from bayplan.framework import Plugin


class Quitter(Plugin):
    def filter(self, state, pod, node):
        if pod.name == "exits":
            sys.exit(3)
        if pod.name == "closes":
            raise GeneratorExit

    def permit(self, state, pod, node_name):
        if pod.name == "exits-late":
            sys.exit(4)
"""


async def test_a_plugin_that_wants_to_end_the_process_fails_its_pod_and_nothing_else(tmp_path: Path) -> None:
    unlucky = ["exits", "closes", "exits-late"]
    names = [*unlucky, "one", "two"]
    async with scheduler_with(tmp_path, QUITTER, names) as (process, transport):
        reasons: dict[str, str] = {}

        async def is_settled() -> bool:
            nodes = {}
            for name in names:
                spec = (await transport.request("GET", f"{PODS}/{name}")).json()
                nodes[name] = spec["spec"].get("nodeName", "")
                conditions = spec["status"].get("conditions", ())
                reasons[name] = next((c.get("reason", "") for c in conditions if c["status"] == "False"), "")
            return bool(nodes["one"] and nodes["two"] and all(reasons[name] for name in unlucky))

        await answer(is_settled)
        is_running = process.returncode is None
        process.terminate()
        await process.communicate()

    assert is_running
    assert {reasons[name] for name in unlucky} == {"SchedulerError"}
    assert process.returncode == 0
