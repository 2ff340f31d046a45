"""Plans: what shapes of one kind share, and what keeps them from sharing it."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from tests.property.histories import scheduler
from tests.unit.framework.runtime.toys import ByZone, Changes, Emptier, Room, Zones, framework_of

from bayplan.api.pod import Pod
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework import SKIP, Depends, Plugin, Status
from bayplan.framework.cycle import CycleState
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.promises import UNSIGNED
from bayplan.framework.runtime.framework import Framework
from bayplan.testing import pod
from bayplan.testing.generate import random_pod


class Choosy(Plugin):
    """Has a say about pods of one image, and says so by kind."""

    depends = Depends.NODE
    settles_by_kind = True
    signs_by_kind = True

    def sign(self, pod: Any) -> Any:
        return 0

    def is_relevant(self, pod: PodInfo) -> bool:
        return "app" in pod.shape.images[0]

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> Status | None:
        return SKIP

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class ByLabel(Choosy):
    """The same by label, without a word about kinds."""

    name = "Choosy"

    def is_relevant(self, pod: PodInfo) -> bool:
        return "app" in pod.labels


def _pods(changes: Changes, **spec: Any) -> list[PodInfo]:
    """Pods that differ in what a kind leaves out."""
    return [
        changes.cache.info(pod(f"p{i}", labels={"app": f"a{i}"}, cpu=f"{i + 1}m", memory=f"{i + 3}Mi", **spec))
        for i in range(4)
    ]


def _plans(framework: Framework, pods: list[PodInfo]) -> list[Any]:
    return [framework.plan(each) for each in pods]


def test_shapes_of_one_kind_share_an_outline_from_the_second_on() -> None:
    changes = Changes(1)
    plans = _plans(framework_of(changes.cache, Choosy, Room), _pods(changes))

    assert plans[0].outline is not plans[1].outline
    assert plans[1].outline is plans[2].outline is plans[3].outline


def test_shapes_that_differ_in_more_have_outlines_of_their_own() -> None:
    changes = Changes(1)
    framework = framework_of(changes.cache, Choosy, Room)
    first = _plans(framework, _pods(changes))[-1]
    other = _plans(framework, _pods(changes, image="tool:1"))[-1]

    assert [call.name for call in first.scores] == []
    assert [call.name for call in other.scores] == []
    assert first.outline is not other.outline


@pytest.mark.parametrize("remember", [True, False])
def test_nothing_is_shared_where_a_plugin_does_not_promise_or_nothing_is_remembered(remember: bool) -> None:
    changes = Changes(1)
    framework = framework_of(changes.cache, ByLabel if remember else Choosy, Room, remember=remember)

    assert len({id(plan.outline) for plan in _plans(framework, _pods(changes))}) == 4


def test_a_promise_does_not_hold_for_methods_that_replace_the_promised_ones() -> None:
    class Signing(Choosy):
        def sign(self, pod: Any) -> Any:
            return pod.shape.labels.get("app")

    assert not ByLabel.settles_by_kind
    assert ByLabel.signs_by_kind
    assert Signing.settles_by_kind
    assert not Signing.signs_by_kind


def test_an_outline_is_made_anew_when_a_plugin_changes() -> None:
    changes = Changes(1)
    framework = framework_of(changes.cache, Choosy, Room)
    pods = _pods(changes)
    before = _plans(framework, pods)[-1]

    framework.forget("Choosy")

    assert framework.plan(pods[0]).outline is not before.outline


def test_shapes_that_sign_alike_share_an_evaluation() -> None:
    """As toys sign by shape unless they say otherwise, only filters and scores with signs of their own take part."""

    class Signed(Emptier):
        name = "Emptier"

        def sign(self, pod: Any) -> Any:
            return pod.shape.labels["app"] == "a3"

    changes = Changes(1)
    framework = framework_of(changes.cache, Room, Signed)
    evaluations = [plan.evaluation for _ in range(2) for plan in _plans(framework, _pods(changes))]

    assert evaluations[5] is evaluations[6]
    assert evaluations[6] is not evaluations[7]


def test_pods_that_must_not_be_remembered_share_nothing() -> None:
    class Unsigned(Emptier):
        name = "Emptier"

        def sign(self, pod: Any) -> Any:
            return UNSIGNED

    changes = Changes(1)
    framework = framework_of(changes.cache, Room, Unsigned)

    assert len({id(plan.evaluation) for plan in _plans(framework, _pods(changes))}) == 4


def test_a_plugin_that_signs_by_shape_keeps_its_own_column() -> None:
    """Its answers about nodes are not those for another shape of the kind."""
    changes = Changes(1)
    framework = framework_of(changes.cache, Zones, ByZone, Room)
    plans = _plans(framework, _pods(changes))

    assert len({id(plan.evaluation.filters[0][1]) for plan in plans}) == 4
    assert plans[2].outline is plans[3].outline


# What in-tree plugins promise


def _told(framework: Framework, info: PodInfo) -> dict[tuple[str, str], Any]:
    """Everything that an outline is made from."""
    nodes = framework.cluster.columns()
    told: dict[tuple[str, str], Any] = {}
    for name, plugin in framework.plugins.items():
        if plugin.settles_by_kind:
            told[name, "is_relevant"] = plugin.is_relevant(info)
        if plugin.signs_by_kind:
            told[name, "sign"] = plugin.sign(info)
    settling = [(ExtensionPoint.PRE_FILTER, "pre_filter"), (ExtensionPoint.PRE_SCORE, "pre_score")]
    for point, method in settling:
        for plugin in framework.at(point):
            remembered = plugin.depends is not Depends.CLUSTER or plugin.filter_depends or plugin.score_depends
            if plugin.settles_by_kind and remembered:
                told[plugin.name, method] = getattr(plugin, method)(CycleState(), info, nodes)
    return told


def _twin(one: Pod, rng: Random) -> Pod:
    """A pod of the same kind with another name, namespace, labels, owner and amounts."""
    made = msgspec.json.decode(msgspec.json.encode(one), type=Pod)
    made.metadata.name, made.metadata.uid, made.metadata.namespace = "twin", "uid-twin", "elsewhere"
    made.metadata.labels = {"twin": str(rng.randrange(9))}
    made.metadata.owner_references = None
    for container in (*(made.spec.containers or ()), *(made.spec.init_containers or ())):
        container.name = f"other-{container.name}"
        requests = container.resources.requests if container.resources is not None else None
        for name in requests or ():
            if requests and str(requests[name]) not in ("0", "0m"):
                requests[name] = str(rng.randrange(1, 9))
    return made


def test_in_tree_plugins_settle_by_kind_what_they_promise_to() -> None:
    """Over random pods and twins of them that differ in what a kind leaves out."""
    one = scheduler(remember=True)
    framework = next(iter(one.deciders.values())).framework
    rng = Random(11)
    alike = 0
    for number in range(400):
        made = random_pod(rng, f"p{number}")
        first, second = one.info(made), one.info(_twin(made, rng))
        if first.shape.kind == second.shape.kind:
            alike += 1
            assert _told(framework, first) == _told(framework, second)
    assert alike > 100


def test_every_in_tree_plugin_of_the_default_profile_promises() -> None:
    """Otherwise each pod of a new shape would cost an outline again."""
    framework = next(iter(scheduler(remember=True).deciders.values())).framework
    pods = [framework_pod(framework, number) for number in range(3)]
    plans = [framework.plan(each) for each in pods]

    assert plans[1].outline is plans[2].outline
    assert [plan.evaluation for plan in plans]
    outlined = plans[2].outline.scores
    assert outlined is not None
    assert outlined.node_only is not None


def framework_pod(framework: Framework, number: int) -> PodInfo:
    made = pod(f"p{number}", labels={"app": f"a{number}"}, cpu=f"{number + 1}m", memory="1Mi")
    return PodInfo(made, framework.cluster.shapes.shape_of(made))
