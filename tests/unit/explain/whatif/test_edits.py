"""Edits: applied to a copy, taken back, and refused when they make no sense."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.api.decode import InputError
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.explain.claims.base import Edit
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.explain.whatif.edits import apply_edits, merge_patch, patched, read_object
from bayplan.observe.time_slices import at_once
from bayplan.testing import Harness, node, pod, taint


def copy_of_two_nodes() -> ClusterCopy:
    harness = Harness()
    running = pod("running", cpu=1, node="n1")
    objects = ClusterObjects(
        nodes=[node("n1"), node("n2")], placed=[(running, "n1")], others=[], waiting=[pod("waiting")]
    )
    return at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))


def test_every_edit_can_be_taken_back() -> None:
    copy = copy_of_two_nodes()
    before = msgspec.to_builtins(copy.waiting["default/waiting"])
    more = {"metadata": {"name": "n3"}, "status": {"capacity": {"cpu": "4", "pods": "10"}}}
    undo = apply_edits(
        copy,
        [
            Edit(kind="patchPod", name="default/waiting", patch={"spec": {"nodeSelector": {"a": "b"}}}),
            Edit(kind="patchNode", name="n2", patch={"metadata": {"labels": {"a": "b"}}}),
            Edit(kind="deletePod", name="default/running"),
            Edit(kind="addNode", name="n3", object=more),
            Edit(kind="removeNode", name="n1"),
        ],
    )

    assert set(copy.cache.cluster.nodes.row_of) == {"n2", "n3"}
    assert copy.waiting["default/waiting"].spec.node_selector == {"a": "b"}
    undo()
    assert msgspec.to_builtins(copy.waiting["default/waiting"]) == before
    assert set(copy.cache.cluster.nodes.row_of) == {"n1", "n2"}
    assert copy.cache.cluster.nodes.at(copy.cache.cluster.nodes.row_of["n1"]).requested[0] == 1000


@pytest.mark.parametrize(
    "edit",
    [
        Edit(kind="patchPod", name="default/nobody"),
        Edit(kind="patchNode", name="nowhere"),
        Edit(kind="patchNode", name="n1", patch={"spec": {"taints": 7}}),
        Edit(kind="deletePod", name="default/nobody"),
        Edit(kind="removeNode", name="nowhere"),
        Edit(kind="addNode", name="n1", object={"metadata": {"name": "n1"}}),
        Edit(kind="addNode", name="x", object={"kind": "Pod"}),
    ],
)
def test_an_edit_that_makes_no_sense_changes_nothing(edit: Edit) -> None:
    copy = copy_of_two_nodes()
    with pytest.raises(InputError):
        apply_edits(copy, [Edit(kind="deletePod", name="default/running"), edit])

    assert len(copy.cache) == 1


def test_a_patch_leads_from_one_object_to_the_other() -> None:
    before = node("n1", labels={"a": "1", "b": "2"}, taints=[taint("x=y:NoSchedule")])
    after = node("n1", labels={"a": "3"}, cpu=9)

    assert msgspec.to_builtins(patched(before, merge_patch(before, after))) == msgspec.to_builtins(after)


def test_objects_that_people_write_get_their_defaults() -> None:
    assert read_object({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}, Node).status.allocatable
    with pytest.raises(InputError, match="containers"):
        read_object({"metadata": {"name": "p"}}, Pod)
