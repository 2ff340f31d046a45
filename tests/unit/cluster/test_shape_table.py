"""Shapes are shared while somebody has them, and gone afterwards: unique labels must not fill the memory."""

from __future__ import annotations

import gc

from bayplan.api.pod import AwsElasticBlockStore, Volume
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import PodShape, ShapeTable
from bayplan.testing import pod


def test_pods_of_one_template_share_a_shape() -> None:
    table = ShapeTable(ResourceAxis())
    first = table.shape_of(pod("a", labels={"app": "web"}))

    assert table.shape_of(pod("b", labels={"app": "web"})) is first


def test_shapes_that_no_pod_has_are_let_go_but_for_the_latest() -> None:
    table = ShapeTable(ResourceAxis())
    for number in range(3_000):
        table.shape_of(pod("job", labels={"job": str(number)}))
    gc.collect()

    assert len(table) == 256


def test_shapes_of_gated_pods_go_with_them() -> None:
    table = ShapeTable(ResourceAxis())
    for number in range(10):
        table.shape_of(pod("gated", gates=[f"gate-{number}"]))
    gc.collect()

    assert len(table) == 0


def test_pods_that_wait_for_gates_of_other_names_share_a_shape() -> None:
    table = ShapeTable(ResourceAxis())
    gated = table.shape_of(pod("a", gates=["gate-1"]))

    assert table.shape_of(pod("b", gates=["gate-2", "gate-3"])) is gated
    assert table.shape_of(pod("c")) is not gated
    assert gated.spec.scheduling_gates


def test_what_is_kept_for_pods_to_come_is_bounded_by_its_size() -> None:
    table = ShapeTable(ResourceAxis())
    for number in range(300):
        table.shape_of(pod("job", labels={"job": f"{number}{'x' * 10_000}"}, node="n1"))
    gc.collect()

    assert 50 < len(table) < 105


def test_a_shape_stays_while_a_pod_has_it() -> None:
    table = ShapeTable(ResourceAxis())
    kept = table.shape_of(pod("a"))
    for number in range(3_000):
        table.shape_of(pod("job", labels={"job": str(number)}))

    assert table.shape_of(pod("b")) is kept


def test_a_shape_with_other_labels_takes_over_what_does_not_depend_on_them() -> None:
    table = ShapeTable(ResourceAxis())
    first = table.shape_of(pod("a", labels={"app": "web"}, cpu=1, host_ports=[80], node_selector={"disk": "ssd"}))
    noted: list[str] = first.note("key", list)
    bound = table.shape_of(
        pod("a", labels={"app": "web", "zone": "b"}, cpu=1, host_ports=[80], node="n1", node_selector={"disk": "ssd"})
    )
    alone = ShapeTable(ResourceAxis()).shape_of(bound._sample)

    assert (bound.labels, first.labels) == ({"app": "web", "zone": "b"}, {"app": "web"})
    assert bound.number != first.number
    assert bound.spec is first.spec
    assert bound.note("key", list) is not noted
    for name in ("usage", "requests", "required_nodes", "host_ports", "kind", "images", "tolerations", "priority"):
        assert getattr(bound, name) == getattr(alone, name)


def test_shapes_with_other_labels_do_not_keep_each_other() -> None:
    table = ShapeTable(ResourceAxis())
    kept = [table.shape_of(pod("a", labels={"app": str(number)})) for number in range(3)]
    for number in range(2_000):
        table.shape_of(pod("job", labels={"job": str(number)}, cpu=number + 1))
    del kept[0]
    gc.collect()

    assert table.shape_of(pod("a", labels={"app": "1"})) is kept[0]
    assert len(table) <= 1_024 + 2


def test_shapes_of_one_kind_differ_in_labels_owners_names_and_amounts_alone() -> None:
    table = ShapeTable(ResourceAxis())
    first = table.shape_of(pod("a", labels={"app": "web"}, cpu=1, memory="1Gi"))
    alike = table.shape_of(pod("b", labels={"app": "db"}, namespace="other", cpu="250m", memory=7))
    others = [
        pod("c", cpu=1),
        pod("c", cpu=0, memory="1Gi"),
        pod("c", cpu=1, memory="1Gi", image="other"),
        pod("c", cpu=1, memory="1Gi", node_selector={"disk": "ssd"}),
        pod("c", cpu=1, memory="1Gi", tolerations=["gpu"]),
        pod("c", cpu=1, memory="1Gi", host_ports=[80]),
        pod("c", cpu=1, memory="1Gi", priority=5),
        pod("c", cpu=1, memory="1Gi", requests={"vendor.example/gpu": 1}),
    ]

    assert first is not alike
    assert first.kind == alike.kind
    assert first.kind not in [table.shape_of(each).kind for each in others]


def test_volumes_other_than_claims_tell_kinds_apart() -> None:
    table = ShapeTable(ResourceAxis())
    named = [table.shape_of(pod("a", volumes=[name])).kind for name in ("one", "another")]
    two = table.shape_of(pod("a", volumes=["one", "another"])).kind
    disk = table.shape_of(
        pod("a", volumes=[Volume(name="d", aws_elastic_block_store=AwsElasticBlockStore(volume_id="v"))])
    ).kind

    assert named[0] == named[1]
    assert len({named[0], two, disk}) == 3


class _Preparing:
    def __init__(self) -> None:
        self.shapes: list[PodShape] = []

    def prepare(self, shape: PodShape) -> None:
        self.shapes.append(shape)


def test_who_wants_to_prepare_is_told_of_shapes_that_a_waiting_pod_is_the_first_to_have() -> None:
    table, listener = ShapeTable(ResourceAxis()), _Preparing()
    table.on_new(listener.prepare)
    table.shape_of(pod("runs", node="n", cpu=3))
    first = table.shape_of(pod("a", labels={"app": "web"}, cpu=1))
    table.shape_of(pod("b", labels={"app": "web"}, cpu=1))
    table.shape_of(pod("c", labels={"app": "db"}, cpu=1))
    other = table.shape_of(pod("d", cpu=2))

    assert listener.shapes == [first, other]


def test_who_is_gone_is_told_no_more() -> None:
    table, listener, stays = ShapeTable(ResourceAxis()), _Preparing(), _Preparing()
    table.on_new(listener.prepare)
    table.on_new(stays.prepare)
    del listener
    gc.collect()

    assert table.shape_of(pod("a", cpu=1)) in stays.shapes
    assert table.shape_of(pod("b", cpu=2)) in stays.shapes


class _Failing:
    def prepare(self, shape: PodShape) -> None:
        raise ValueError("cannot")


def test_a_preparation_that_fails_costs_no_pod() -> None:
    table, failing, listener = ShapeTable(ResourceAxis()), _Failing(), _Preparing()
    table.on_new(failing.prepare)
    table.on_new(listener.prepare)

    assert table.shape_of(pod("a", cpu=1)) in listener.shapes


def test_a_shape_holds_no_annotations() -> None:
    annotated = pod("a", labels={"app": "web"})
    annotated.metadata.annotations = {"text": "x" * 1000}
    shape = ShapeTable(ResourceAxis()).shape_of(annotated)

    assert "x" * 1000 not in repr(vars(shape))
