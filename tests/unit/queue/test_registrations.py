from __future__ import annotations

import pytest
from tests.unit.queue.kit import (
    EVERYTHING,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    POD_ASSIGNED,
    POD_DELETED,
    ScriptedHint,
)

from bayplan.framework.events import ALL, WILDCARD, ActionType, ClusterEvent, EventHint, Resource
from bayplan.queue.requeue import Registrations


def plugins_for(event: ClusterEvent, *entries: tuple[str, EventHint]) -> list[str]:
    return [plugin for _, plugin in Registrations({"p": entries}).interest_in(event).rejectors]


def test_the_plugins_that_registered_a_matching_event_are_named() -> None:
    entries = [("Fit", EventHint(NODE_ADD)), ("Spread", EventHint(NODE_DELETE)), ("Fit", EventHint(NODE_LABEL))]

    assert plugins_for(NODE_ADD, *entries) == ["Fit"]
    assert plugins_for(NODE_DELETE, *entries) == ["Spread"]
    assert plugins_for(POD_ASSIGNED, *entries) == []


def test_a_pod_registration_covers_assigned_and_waiting_pods() -> None:
    entry = ("Fit", EventHint(ClusterEvent(Resource.POD, ActionType.DELETE)))

    assert plugins_for(POD_DELETED, entry) == ["Fit"]
    assert plugins_for(ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.DELETE), entry) == ["Fit"]
    assert plugins_for(NODE_DELETE, entry) == []


def test_a_wildcard_registration_hears_everything() -> None:
    assert plugins_for(NODE_LABEL, ("Extender", EventHint(WILDCARD))) == ["Extender"]
    assert plugins_for(ClusterEvent("things.v1.example.com", ActionType.ADD), ("E", EventHint(WILDCARD))) == ["E"]
    assert plugins_for(EVERYTHING, ("Fit", EventHint(NODE_ADD))) == []


@pytest.mark.parametrize(
    ("registered", "is_heard"),
    [
        (ActionType.UPDATE, True),
        (ALL, True),
        (ActionType.UPDATE_POD_LABEL, False),
        (ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, False),
        (ActionType.ADD | ActionType.DELETE, False),
    ],
)
def test_the_general_update_is_heard_only_by_who_registered_all_updates(registered: ActionType, is_heard: bool) -> None:
    """Incoming bits must overlap the registered ones and be no larger a number."""
    general = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.UPDATE)

    assert bool(plugins_for(general, ("P", EventHint(ClusterEvent(Resource.POD, registered))))) is is_heard


def test_one_plugin_may_have_several_hints_for_one_event() -> None:
    first, second = ScriptedHint(), ScriptedHint()
    both = ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
    registrations = Registrations({"p": [("Fit", EventHint(NODE_TAINT, first)), ("Fit", EventHint(both, second))]})

    assert registrations.interest_in(NODE_TAINT).by_profile == {"p": {"Fit": (first, second)}}


def test_profiles_are_told_apart() -> None:
    registrations = Registrations({"one": [("Fit", EventHint(NODE_ADD))], "two": []})

    interest = registrations.interest_in(NODE_ADD)

    assert registrations.profiles == {"one", "two"}
    assert interest.rejectors == [("one", "Fit")]
    assert interest.includes("one", "Fit")
    assert not interest.includes("two", "Fit")
    assert not interest.includes("three", "Fit")


def test_who_hears_of_new_nodes_also_hears_of_every_taint_change() -> None:
    hint = ScriptedHint()

    interest = Registrations({"p": [("Fit", EventHint(NODE_ADD, hint))]}).interest_in(NODE_TAINT)

    assert interest.by_profile == {"p": {"Fit": (None,)}}


def test_who_registered_taint_changes_keeps_only_its_own_hint() -> None:
    hint = ScriptedHint()
    entries = [("Taint", EventHint(NODE_ADD)), ("Taint", EventHint(NODE_TAINT, hint))]

    interest = Registrations({"p": entries}).interest_in(NODE_TAINT)

    assert interest.by_profile == {"p": {"Taint": (hint,)}}


def test_who_does_not_hear_of_new_nodes_gains_nothing() -> None:
    assert plugins_for(NODE_TAINT, ("Spread", EventHint(NODE_DELETE)), ("Aff", EventHint(NODE_LABEL))) == []


def test_the_answer_is_remembered_per_kind_of_event() -> None:
    registrations = Registrations({"p": [("Fit", EventHint(NODE_ADD))]})

    assert registrations.interest_in(NODE_ADD) is registrations.interest_in(ClusterEvent("Node", ActionType.ADD, "x"))
