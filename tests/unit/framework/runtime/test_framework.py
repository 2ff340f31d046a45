"""The framework: plans are kept while plugins stay the same, and failures come out at the right moment."""

from __future__ import annotations

from typing import ClassVar

import pytest
from tests.unit.framework.runtime.toys import (
    Changes,
    Emptier,
    ErrorColumn,
    FailingPreScore,
    Room,
    framework_of,
)

from bayplan.api.workload import Service
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework import NodeColumns, NodeInfo, Plugin
from bayplan.framework.cycle import CycleState
from bayplan.framework.offline import FixedNominator
from bayplan.framework.runtime.call import PluginFailure
from bayplan.framework.runtime.filtering import find_feasible
from bayplan.framework.runtime.framework import Framework
from bayplan.testing.build import pod


def _waiting(changes: Changes) -> PodInfo:
    return changes.cache.info(pod("waiting"))


def _search(framework: Framework, waiting: PodInfo) -> None:
    find_feasible(framework, framework.plan(waiting), CycleState(), waiting, FixedNominator())


def test_a_plan_is_kept_from_the_second_time_on_and_made_anew_when_a_plugin_changes() -> None:
    changes = Changes(1)
    framework: Framework = framework_of(changes.cache, Room, Emptier)
    waiting = _waiting(changes)
    framework.plan(waiting)
    kept = framework.plan(waiting)
    assert framework.plan(waiting) is kept

    framework.forget("Room")

    assert framework.plan(waiting) is not kept


@pytest.mark.parametrize("remember", [True, False])
def test_a_failing_pre_score_of_a_remembered_plugin_fails_the_decision(remember: bool) -> None:
    """It is asked once per shape, and its failure is told in every decision that gets as far as scoring."""
    changes = Changes(2)
    framework: Framework = framework_of(changes.cache, FailingPreScore, remember=remember)
    waiting = _waiting(changes)
    for _ in range(3):
        plan = framework.plan(waiting)
        with pytest.raises(PluginFailure) as raised:
            framework.run_pre_scores(plan, CycleState(), waiting, changes.cache.cluster.columns())

        assert str(raised.value) == 'running PreScore plugin "FailingPreScore": cannot read the map'
        assert raised.value.status.plugin == "FailingPreScore"


def test_an_error_in_a_remembered_column_is_no_rejection() -> None:
    changes = Changes(3)
    framework: Framework = framework_of(changes.cache, ErrorColumn)
    waiting = _waiting(changes)
    for _ in range(3):
        with pytest.raises(PluginFailure, match='running "ErrorColumn" filter plugin: lost its mind'):
            _search(framework, waiting)


class _Alarm(Plugin):
    """Has something to say only while there is a Service; asked anew for every decision."""

    asked: ClassVar[list[str]] = []

    def is_idle(self, pod: PodInfo) -> bool:
        if pod.labels.get("broken"):
            raise ValueError("cannot tell")
        return not any(True for _ in SERVICES)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> None:
        _Alarm.asked.append(pod.name)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 1


SERVICES: list[str] = []


def _ask(framework: Framework, changes: Changes, waiting: PodInfo) -> list[str]:
    _Alarm.asked.clear()
    plan, state = framework.plan(waiting), CycleState()
    framework.run_pre_filters(plan, state, waiting)
    framework.run_pre_scores(plan, state, waiting, changes.cache.cluster.columns())
    return list(_Alarm.asked)


def test_an_idle_plugin_is_not_asked_until_something_that_could_wake_it_changes() -> None:
    changes = Changes(5)
    framework: Framework = framework_of(changes.cache, _Alarm, Emptier)
    waiting = _waiting(changes)
    assert _ask(framework, changes, waiting) == []
    plan = framework.plan(waiting)
    assert [call.name for call in plan.due_scores] == []
    assert plan.idle == {"_Alarm"}

    SERVICES.append("one")
    changes.cache.put_object(Service())
    try:
        assert _ask(framework, changes, waiting) == ["waiting"]
    finally:
        SERVICES.clear()


def test_a_plugin_that_cannot_tell_whether_it_is_idle_is_asked() -> None:
    changes = Changes(6)
    framework: Framework = framework_of(changes.cache, _Alarm)
    broken = changes.cache.info(pod("broken", labels={"broken": "yes"}))

    assert _ask(framework, changes, broken) == ["broken"]


def test_without_memory_nobody_is_taken_to_be_idle() -> None:
    changes = Changes(7)
    framework: Framework = framework_of(changes.cache, _Alarm, remember=False)

    assert _ask(framework, changes, _waiting(changes)) == ["waiting"]


def test_only_what_is_relevant_is_planned_for() -> None:
    class Choosy(Room):
        def is_relevant(self, pod: PodInfo) -> bool:
            return False

    changes = Changes(4)
    framework: Framework = framework_of(changes.cache, Choosy, Emptier)
    plan = framework.plan(_waiting(changes))

    assert plan.filters == []
    assert plan.skip_filter == {"Choosy"}
    assert [call.name for call in plan.scores] == ["Emptier"]


def test_a_version_that_moves_is_noticed_by_every_framework() -> None:
    changes = Changes(2)
    frameworks = [framework_of(changes.cache, Room, Emptier) for _ in range(2)]
    new = changes.cache.info(pod("web"))
    before = [framework.plan(new) for framework in frameworks]

    frameworks[0].plugins["Room"].version += 1

    assert frameworks[0].plan(new).versions != before[0].versions
    assert frameworks[1].plan(new).versions == before[1].versions


def test_a_class_that_takes_the_name_of_the_version_is_refused() -> None:
    with pytest.raises(TypeError, match="`version` counts changes of answers"):
        type("Versioned", (Plugin,), {"version": "1.2"})
