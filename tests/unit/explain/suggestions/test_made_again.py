"""Suggestions that delete pods count those that controllers make again, and name those that nobody makes again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from bayplan.api.meta import KubeObject, OwnerReference
from bayplan.api.pod import Pod
from bayplan.api.workload import PodDisruptionBudget
from bayplan.explain import pending
from bayplan.explain.claims.pods import Frees, WouldFit
from bayplan.explain.model import Suggestion
from bayplan.explain.pending import find_best_change
from bayplan.explain.suggestions.search import Changes, find_changes
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.observe.time_slices import Work, at_once
from bayplan.testing import Harness, node, pod, taint


def of(kind: str) -> OwnerReference:
    return OwnerReference(kind=kind, name="owner", uid="owner", api_version="apps/v1", controller=True)


def web(name: str = "web", *, cpu: Any = 2, kind: str = "ReplicaSet", on: str = "n1", **more: Any) -> Pod:
    return pod(name, cpu=cpu, node=on, owner=of(kind), **more)


def copied(
    nodes: Sequence[Any], running: Sequence[Pod], *waiting: Pod, others: Sequence[KubeObject] = ()
) -> ClusterCopy:
    harness = Harness()
    objects = ClusterObjects(
        nodes=nodes,
        placed=[(each, each.spec.node_name) for each in running],
        others=others,
        waiting=waiting,
        entered={each.key: float(place) for place, each in enumerate(waiting)},
    )
    return at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))


def deleting(copy: ClusterCopy, key: str = "default/subject") -> list[Suggestion]:
    found = at_once(find_changes(copy, copy.waiting[key])).suggestions
    return [each for each in found if any(edit.kind == "deletePod" for edit in each.edits)]


def said(copy: ClusterCopy, key: str = "default/subject") -> list[str]:
    return [each.sentence for each in deleting(copy, key)]


def test_a_pod_that_is_made_again_elsewhere_leaves_its_room() -> None:
    copy = copied([node("n1", cpu=2), node("n2", cpu=1)], [web(cpu=1)], pod("subject", cpu=2))

    assert said(copy) == ["It would fit on n1 if default/web left n1."]


def test_a_pod_that_is_made_again_and_finds_no_node_is_said_to_wait() -> None:
    copy = copied([node("n1", cpu=2)], [web()], pod("subject", cpu=2))

    assert said(copy) == [
        "It would fit on n1 if default/web left n1; default/web would be made again and find no node."
    ]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Job", "ReplicationController", "Workflow"])
def test_a_more_important_pod_that_is_made_again_takes_its_room_back(kind: str) -> None:
    copy = copied([node("n1", cpu=2)], [web(kind=kind, priority=10)], pod("subject", cpu=2))

    assert said(copy) == []


def test_a_more_important_pod_that_finds_another_place_takes_no_room_back() -> None:
    copy = copied([node("n1", cpu=2), node("n2", cpu=1)], [web(cpu=1, priority=10)], pod("subject", cpu=2))

    # It could go to either node, and leaves the larger one only if the scheduler prefers the other.
    assert all("left n1" in each for each in said(copy))


def test_a_pod_that_may_come_back_by_chance_is_not_deleted() -> None:
    """Both nodes are as good for it, and one of them is drawn."""
    reserved = node("n1", cpu=2, taints=[taint("team=a:NoSchedule")])
    important = web(cpu=1, on="n2", priority=10, tolerations=["team=a:NoSchedule"])
    less_room = node("n1", cpu=3, taints=[taint("team=a:NoSchedule")])

    assert said(copied([reserved, node("n2", cpu=2)], [important], pod("subject", cpu=2))) == []
    assert said(copied([less_room, node("n2", cpu=2)], [important], pod("subject", cpu=2))) != []


def test_pods_that_nobody_makes_again_are_named() -> None:
    running = [pod("lone", cpu=1, node="n1"), web(cpu=1)]
    copy = copied([node("n1", cpu=2), node("n2", cpu=1)], running, pod("subject", cpu=2))

    assert said(copy) == [
        "It would fit on n1 if default/web, default/lone left n1; that deletes default/lone, which nobody makes again."
    ]


def test_pods_that_come_back_to_their_node_are_not_deleted() -> None:
    mirror = pod("mirror", cpu=2, node="n1", annotations={"kubernetes.io/config.mirror": "hash"})
    for running in (web(kind="DaemonSet"), web(kind="Node"), mirror):
        assert said(copied([node("n1", cpu=2)], [running], pod("subject", cpu=2))) == []


def test_pods_that_end_already_are_not_deleted_once_more() -> None:
    ending = web()
    ending.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"

    assert said(copied([node("n1", cpu=2)], [ending], pod("subject", cpu=2))) == []


def test_pods_that_are_made_again_and_preempt_others_are_not_deleted() -> None:
    """The room that they take is not free, and who would lose it was not asked."""
    running = [web(priority=10), pod("low", cpu=2, node="n2", labels={"app": "low"})]
    subject = pod(
        "subject", cpu=2, priority=10, preemption_policy="Never", node_selector={"kubernetes.io/hostname": "n1"}
    )
    copy = copied([node("n1", cpu=2), node("n2", cpu=2)], running, subject)

    assert [each for each in said(copy) if "default/web" in each] == []


def test_pods_of_other_schedulers_are_not_deleted_if_they_are_made_again() -> None:
    """Where they go is not known."""
    copy = copied([node("n1", cpu=2)], [web(scheduler="theirs")], pod("subject", cpu=2))

    assert said(copy) == []


def test_pods_that_wait_longer_come_before_those_that_are_made_again() -> None:
    """The place on n2 is for the one that waits already."""
    nodes = [node("n1", cpu=2), node("n2", cpu=1, unschedulable=True)]
    other = pod("other", cpu=1, node_selector={"kubernetes.io/hostname": "n1"})
    copy = copied(nodes, [web()], pod("subject", cpu=1), other)

    assert said(copy)[0] == (
        "It would fit on n1 if default/web left n1; default/web would be made again and find no node."
    )


def test_a_change_frees_no_pods_if_as_many_have_to_wait_instead() -> None:
    copy = copied([node("n1", cpu=2)], [web()], pod("subject", cpu="1500m"))
    best, _ = at_once(find_best_change(copy, {"room": ["default/subject"]}, total=1))

    assert best is None or all(edit.kind != "deletePod" for edit in best.edits)


def test_a_change_that_frees_more_pods_than_it_displaces_says_both() -> None:
    copy = copied([node("n1", cpu=2)], [web()], *(pod(f"small-{number}", cpu=1) for number in range(2)))
    claims = [each.claim for each in deleting(copy, "default/small-0")]
    assert isinstance(claims[0], WouldFit) and claims[0].displaced == ("default/web",)

    best, count = at_once(find_best_change(copy, {"room": ["default/small-0", "default/small-1"]}, total=2))

    assert best is not None and isinstance(best.claim, Frees)
    if any(edit.kind == "deletePod" for edit in best.edits):
        assert count == 2 and best.claim.displaced == ("default/web",)
        assert best.sentence.endswith("left n1; default/web would be made again and find no node.")


def test_trying_leaves_the_copy_as_it_was() -> None:
    copy = copied([node("n1", cpu=2)], [web()], pod("subject", cpu=2))
    first = deleting(copy)

    assert deleting(copy) == first
    assert (set(copy.waiting), copy.remade, copy.lost) == ({"default/subject"}, {}, {})
    assert [msgspec.to_builtins(each.pod)["metadata"]["name"] for each in copy.cache.pods()] == ["web"]


def test_a_new_node_gets_the_pods_of_daemon_sets_and_kubelets_that_its_model_has() -> None:
    """A node like n1 is not empty for long."""
    mirror = pod("mirror", cpu="100m", node="n1", annotations={"kubernetes.io/config.mirror": "hash"})
    running = [web("agent", kind="DaemonSet", cpu="200m"), mirror, web("fills", cpu="1700m")]
    large, small = (copied([node("n1", cpu=2)], running, pod("subject", cpu=cpu)) for cpu in ("1800m", "1700m"))
    more = [
        [each.sentence for each in at_once(find_changes(copy, copy.waiting["default/subject"])).suggestions]
        for copy in (large, small)
    ]

    sentence = "It would fit on n1-more-1 if there were one more node like n1."
    assert [sentence in said for said in more] == [False, True]
    assert {each.key for each in small.cache.pods()} == {"default/agent", "default/mirror", "default/fills"}


def budget(name: str, app: str, *, allowed: int) -> PodDisruptionBudget:
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(document, PodDisruptionBudget)


def test_budgets_that_do_not_allow_pods_to_leave_are_named_and_such_changes_come_last() -> None:
    running = [web("kept", labels={"app": "kept"}), web("free", on="n2", labels={"app": "free"})]
    budgets = [budget("kept", "kept", allowed=0), budget("free", "free", allowed=1)]
    copy = copied([node("n1", cpu=2), node("n2", cpu=2)], running, pod("subject", cpu=2), others=budgets)
    first, second = deleting(copy)

    again = "would be made again and find no node."
    assert first.sentence == f"It would fit on n2 if default/free left n2; default/free {again}"
    assert second.sentence == (
        "It would fit on n1 if default/kept left n1; that is against the disruption budget default/kept; "
        f"default/kept {again}"
    )
    assert isinstance(second.claim, WouldFit) and second.claim.against == ("default/kept",)


def test_the_best_change_names_the_budgets_that_it_is_against(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing but a deletion helps."""

    def deletions(copy: ClusterCopy, pod: Pod) -> Work[Changes]:
        changes = yield from find_changes(copy, pod)
        changes.suggestions = [each for each in changes.suggestions if each.edits[0].kind == "deletePod"]
        return changes

    monkeypatch.setattr(pending, "find_changes", deletions)
    kept, small = web(labels={"app": "kept"}), [pod(f"small-{number}", cpu=1) for number in range(2)]
    copy = copied([node("n1", cpu=2)], [kept], *small, others=[budget("kept", "kept", allowed=0)])
    best, _ = at_once(find_best_change(copy, {"room": [each.key for each in small]}, total=2))

    assert best is not None and best.sentence == (
        "2 of 2 pending pods would find a node if default/web left n1; that is against the disruption budget "
        "default/kept; default/web would be made again and find no node."
    )
