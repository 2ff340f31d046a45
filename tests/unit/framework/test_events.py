"""Which registrations cover which events."""

from __future__ import annotations

import pytest

from bayplan.framework.events import ALL, WILDCARD, ActionType, ClusterEvent, Resource

NODE_ADD_LABEL = ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)


@pytest.mark.parametrize(
    ("registered", "incoming", "expected"),
    [
        (NODE_ADD_LABEL, ClusterEvent(Resource.NODE, ActionType.ADD), True),
        (NODE_ADD_LABEL, ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_LABEL), True),
        (NODE_ADD_LABEL, ClusterEvent(Resource.NODE, ActionType.UPDATE_NODE_TAINT), False),
        (NODE_ADD_LABEL, ClusterEvent(Resource.NODE, ActionType.DELETE), False),
        (NODE_ADD_LABEL, ClusterEvent(Resource.POD, ActionType.ADD), False),
        (WILDCARD, ClusterEvent(Resource.CSI_NODE, ActionType.DELETE), True),
        (ClusterEvent(Resource.POD, ActionType.DELETE), ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE), True),
        (ClusterEvent(Resource.POD, ActionType.ADD), ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.ADD), True),
        (ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD), ClusterEvent(Resource.POD, ActionType.ADD), False),
        (ClusterEvent(Resource.ANY, ActionType.ADD), ClusterEvent(Resource.NODE, ActionType.ADD), True),
        (ClusterEvent(Resource.ANY, ActionType.ADD), ClusterEvent(Resource.NODE, ActionType.DELETE), False),
    ],
)
def test_a_registration_covers_its_resource_and_actions(
    registered: ClusterEvent, incoming: ClusterEvent, expected: bool
) -> None:
    assert registered.matches(incoming) is expected


def test_a_change_of_any_kind_needs_a_registration_that_reaches_as_high() -> None:
    """The numeric comparison of kube-scheduler: a generic update is covered by a generic registration alone."""
    update = ClusterEvent(Resource.POD, ActionType.UPDATE)

    assert ClusterEvent(Resource.POD, ActionType.UPDATE).matches(update)
    assert ClusterEvent(Resource.POD, ALL).matches(update)
    assert not ClusterEvent(Resource.POD, ActionType.UPDATE_POD_LABEL | ActionType.ADD).matches(update)


def test_the_bits_are_those_of_kube_scheduler() -> None:
    assert [int(action) for action in ActionType if action is not ActionType.UPDATE] == [1 << bit for bit in range(13)]
    assert ActionType.UPDATE == 8191 - 3
    assert ALL == 8191


def test_an_event_is_called_by_its_label_or_by_what_happened() -> None:
    assert ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE).name == "AssignedPodDelete"
    assert ClusterEvent(Resource.NODE, ActionType.ADD).name == "NodeAdd"
    assert ClusterEvent(Resource.NODE, ActionType.ADD, "Start").name == "Start"
    assert WILDCARD.is_wildcard
