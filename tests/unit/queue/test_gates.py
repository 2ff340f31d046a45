from __future__ import annotations

import logging

import pytest
from tests.unit.queue.kit import PROFILE, ScriptedGate, make_queued

from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import SUCCESS, Error, Skip, Status, Unresolvable, Unschedulable
from bayplan.queue.gates import Gates


def test_a_pod_that_every_plugin_lets_through_is_not_held() -> None:
    queued = make_queued()
    queued.gating_plugin, queued.unschedulable_plugins = "A", {"A"}

    assert not Gates({PROFILE: {"A": ScriptedGate(), "B": ScriptedGate(SUCCESS)}}).hold(queued)
    assert queued.gating_plugin == ""
    assert queued.unschedulable_plugins == {"A"}


@pytest.mark.parametrize("answer", [Unresolvable("no"), Unschedulable("no"), Skip(), Error("broken")])
def test_anything_but_success_holds_the_pod(answer: object) -> None:
    queued = make_queued()
    gates = Gates({PROFILE: {"A": ScriptedGate(), "B": ScriptedGate(answer)}})  # type: ignore[arg-type]

    assert gates.hold(queued)
    assert queued.gating_plugin == "B"
    assert queued.unschedulable_plugins == {"B"}


def test_the_first_refusal_ends_the_questions() -> None:
    second = ScriptedGate()

    assert Gates({PROFILE: {"A": ScriptedGate(Unresolvable()), "B": second}}).hold(make_queued())
    assert second.calls == 0


def test_the_plugin_that_held_the_pod_last_is_asked_first_and_once() -> None:
    first, last = ScriptedGate(), ScriptedGate(Unresolvable())
    gates = Gates({PROFILE: {"First": first, "Last": last}})
    queued = make_queued()

    assert gates.hold(queued)
    assert gates.hold(queued)
    assert (first.calls, last.calls) == (1, 2)
    last.answer = None
    assert not gates.hold(queued)
    assert (first.calls, last.calls) == (2, 3)


def test_a_plugin_that_fails_holds_the_pod_and_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    queued = make_queued("web")

    with caplog.at_level(logging.ERROR):
        assert Gates({PROFILE: {"Fragile": ScriptedGate(Error("oops"))}}).hold(queued)

    assert queued.gating_plugin == "Fragile"
    assert "`Fragile` failed in PreEnqueue and holds pod `ns/web` back: oops" in caplog.text


def test_a_pod_of_an_unknown_profile_is_held_by_nobody() -> None:
    queued = make_queued(profile="elsewhere")
    queued.gating_plugin = "A"

    assert not Gates({PROFILE: {"A": ScriptedGate(Unresolvable())}}).hold(queued)
    assert queued.gating_plugin == ""


def test_a_failure_is_reported_once_as_soon_as_it_may_be() -> None:
    reports: list[str] = []
    leads = False

    def report(queued: QueuedPod, status: Status) -> bool:
        reports.append(f"{queued.key} {status.message} {leads}")
        return leads

    gate = ScriptedGate(Error("oops"))
    gates, queued = Gates({PROFILE: {"Fragile": gate}}, on_failure=report), make_queued("web")
    assert gates.hold(queued)
    leads = True
    assert gates.hold(queued)
    assert gates.hold(queued)
    gate.answer = Error("again")
    assert gates.still_hold(queued)
    gate.answer = Unresolvable("not yet")
    assert gates.hold(queued)

    assert reports == ["ns/web oops False", "ns/web oops True", "ns/web again True"]


def test_a_failure_that_comes_back_after_the_pod_was_let_through_is_reported_again() -> None:
    """Its condition then says what became of the attempt in between."""
    reports: list[str] = []

    def report(queued: QueuedPod, status: Status) -> bool:
        reports.append(status.message)
        return True

    gate, queued = ScriptedGate(Error("oops")), make_queued("web")
    gates = Gates({PROFILE: {"Fragile": gate}}, on_failure=report)
    assert gates.hold(queued)
    gate.answer = SUCCESS
    assert not gates.hold(queued)
    gate.answer = Error("oops")
    assert gates.hold(queued)

    assert reports == ["oops", "oops"]
