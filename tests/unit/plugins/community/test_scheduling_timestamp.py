"""SchedulingTimestamp: one patch a pod, with the time of its scoring."""

from __future__ import annotations

from typing import Any

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework import Code, CycleState, Plugin
from bayplan.plugins.community.alnair_cost_saving import AlnairCostSaving
from bayplan.plugins.community.scheduling_timestamp import SchedulingTimestamp
from bayplan.testing import Harness, pod


class _Ports:
    """Clock and API as far as the plugin uses them."""

    def __init__(self, *, failure: Exception | None = None) -> None:
        self.clock = self.api = self
        self.time = 1_700_000_000.25
        self.patches: list[tuple[str, dict[str, Any]]] = []
        self._failure = failure

    def now(self) -> float:
        return self.time

    async def patch_pod(self, pod: PodInfo, patch: dict[str, Any], *, subresource: str = "") -> None:
        if self._failure is not None:
            raise self._failure
        self.patches.append((pod.key, patch))


def _made(kind: type[Plugin], ports: _Ports) -> Any:
    return kind(None, ports)  # type: ignore[arg-type]


def _info() -> PodInfo:
    return Harness(nodes=["n1"]).info(pod("web"))


async def test_the_time_of_scoring_is_written_once_before_binding() -> None:
    ports = _Ports()
    plugin, state, info = _made(SchedulingTimestamp, ports), CycleState(), _info()
    plugin.pre_score(state, info, None)
    ports.time += 5

    status = await plugin.pre_bind(state, info, "n1")

    assert status is None
    assert ports.patches == [
        ("default/web", {"metadata": {"annotations": {"scheduler-timestamp": "1700000000250000000"}}})
    ]


async def test_a_pod_that_was_not_scored_is_annotated_too() -> None:
    ports = _Ports()

    await _made(SchedulingTimestamp, ports).pre_bind(CycleState(), _info(), "n1")

    assert len(ports.patches) == 1


async def test_a_refused_patch_fails_the_attempt_with_the_servers_words() -> None:
    ports = _Ports(failure=RuntimeError("pods is forbidden"))

    status = await _made(SchedulingTimestamp, ports).pre_bind(CycleState(), _info(), "n1")

    assert status.code is Code.ERROR
    assert status.reasons == ("cannot patch timestamp to pod web, err: pods is forbidden",)


async def test_the_alnair_plugins_write_their_own_annotation() -> None:
    ports = _Ports()

    await _made(AlnairCostSaving, ports).pre_bind(CycleState(), _info(), "n1")

    [(_, patch)] = ports.patches
    assert list(patch["metadata"]["annotations"]) == ["ai.centaurus.io/scheduler-timestamp"]
