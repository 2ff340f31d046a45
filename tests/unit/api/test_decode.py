from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.decode import InputError, decode_object
from bayplan.api.documents import parse_documents
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}, "spec": {"containers": [{"name": "c"}]}}


def read(text: str, **options: Any) -> list[KubeObject]:
    """The objects of a text, each decoded with its place."""
    places = [(document.value, f"document {document.number}") for document in parse_documents(text)]
    found = [decode_object(value, source="c.yaml", where=where, **options) for value, where in places]
    return [each for each in found if each is not None]


def refused(text: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(text, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def pod(spec: str, metadata: str = "name: p") -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{{metadata}}}\nspec: {spec}\n"


def test_an_item_of_a_typed_list_needs_no_kind() -> None:
    found = decode_object({"metadata": {"name": "p"}}, inherited={"apiVersion": "v1", "kind": "Pod"})

    assert isinstance(found, Pod)


def test_null_counts_as_absent() -> None:
    (found,) = read(pod("{nodeName: ~, containers: [{name: ~, resources: ~}], tolerations: ~}"))

    assert isinstance(found, Pod)
    assert found.spec.node_name == ""


def test_namespace_and_uid_are_there_after_reading() -> None:
    (found,) = read(pod("{}"))
    node = decode_object({**NODE, "metadata": {"name": "n", "namespace": "odd"}})
    assert node is not None

    assert (found.namespace, found.uid) == ("default", "Pod/default/p")
    assert (node.namespace, node.key) == ("", "n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("just text", "c.yaml: document 1: expected a Kubernetes object, found `just text`"),
        ("a: 1", "`apiVersion` and `kind` are missing; is this a Kubernetes object?"),
        ("apiVersion: v1\nkind: Pod", "Pod has no `metadata.name`"),
        (pod("{}", "generateName: p-"), "`generateName` needs an API server"),
        ("apiVersion: v1\nkind: Nodes\nmetadata: {name: a}", "unknown kind `Nodes`; did you mean `Node`?"),
        ("apiVersion: v1\nkind: Pdo\nmetadata: {name: a}", "not a kind that scheduling reads; did you mean `Pod`?"),
        ("apiVersion: v1\nkind: ConfigMap", "v1 ConfigMap is not a kind that scheduling reads; remove it"),
        ("apiVersion: apps/v1\nkind: Deployment", "Deployment is not read: scheduling reads pods"),
        ("apiVersion: policy/v1beta1\nkind: PodDisruptionBudget", "is read as `policy/v1`, found apiVersion"),
        (pod("[]"), "document 1: spec: expected a mapping, found a list"),
        (pod("{containers: [{ports: [{hostPort: '80'}]}]}"), "spec.containers[0].ports[0].hostPort: expected a whole"),
        (pod("{nodeSelector: {a: 1}}"), 'expected text, found `1`; put it in quotes: "1"'),
        (pod("{containers: [{resources: {requests: {cpu: 5x}}}]}"), "spec.containers[0].resources.requests[cpu]: `5x`"),
        (pod("{overhead: {memory: -1}}"), "spec.overhead[memory]: `-1` is negative"),
        (pod("{containers: [{resources: {limits: {cpu: .nan}}}]}"), "spec.containers[0].resources.limits[cpu]"),
        (pod("{containers: [3]}"), "document 1: spec.containers[0]: expected a mapping, found `3`"),
    ],
)
def test_each_problem_is_one_line_with_its_place(text: str, expected: str) -> None:
    assert expected in refused(text)


def test_kinds_that_are_not_read_can_be_left_out() -> None:
    text = f"{NODE}\n---\napiVersion: v1\nkind: ConfigMap\n---\napiVersion: serving.x/v1\nkind: Service\n"

    assert [found.name for found in read(text, ignore_unread=True)] == ["n1"]
    assert "unknown kind `Nodes`" in refused("apiVersion: v1\nkind: Nodes", ignore_unread=True)


def test_what_is_nested_deeper_than_python_calls_go_is_an_input_error() -> None:
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(InputError, match=r"c\.json: document 1: nested too deeply"):
        decode_object({**POD, "spec": {"nodeName": 3, "x": deep}}, source="c.json", where="document 1")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
FIELDS = st.sampled_from(["spec", "status", "metadata", "kind", "apiVersion", "containers", "resources", "requests"])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([NODE, POD]), FIELDS, JUNK, st.dictionaries(FIELDS, JUNK, max_size=3))
def test_junk_is_an_input_error_and_nothing_else(good: Any, field: str, junk: Any, more: dict[str, Any]) -> None:
    for document in ({**good, field: junk}, {**good, "spec": more}, {**good, "status": more}, more, junk):
        try:
            decode_object(document)
        except InputError as error:
            assert str(error)
