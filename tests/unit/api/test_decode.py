from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.decode import InputError, decode_object, read_objects, read_objects_text
from bayplan.api.node import Node
from bayplan.api.pod import Pod

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}, "spec": {"containers": [{"name": "c"}]}}


def refused(text: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_objects_text(text, source="c.yaml", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def pod(spec: str, metadata: str = "name: p") -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{{metadata}}}\nspec: {spec}\n"


def test_yaml_streams_json_lines_and_lists_are_read_alike(tmp_path: Path) -> None:
    forms = {
        "a.yaml": f"---\n{json.dumps(NODE)}\n---\n# nothing\n---\n{json.dumps(POD)}\n",
        "b.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}),
        "c.jsonl": f"{json.dumps(NODE)}\n\n{json.dumps(POD)}\n",
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        node, found = read_objects(tmp_path / name)
        assert isinstance(node, Node)
        assert isinstance(found, Pod)
        assert (node.key, found.key) == ("n1", "default/p1")


def test_items_of_a_typed_list_need_no_kind() -> None:
    bare = {"metadata": {"name": "p"}}
    (found,) = read_objects_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [bare]}))

    assert isinstance(found, Pod)
    assert read_objects_text('{"apiVersion": "v1", "kind": "PodList", "items": null}') == []


def test_null_counts_as_absent() -> None:
    (found,) = read_objects_text(pod("{nodeName: ~, containers: [{name: ~, resources: ~}], tolerations: ~}"))

    assert isinstance(found, Pod)
    assert found.spec.node_name == ""


def test_namespace_and_uid_are_there_after_reading() -> None:
    (found,) = read_objects_text(pod("{}"))
    (node,) = read_objects_text(json.dumps({**NODE, "metadata": {"name": "n", "namespace": "odd"}}))

    assert (found.namespace, found.uid) == ("default", "Pod/default/p")
    assert (node.namespace, node.key) == ("", "n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "c.yaml: line 2: not valid YAML"),
        ("just text", "c.yaml: document 1 (line 1): expected a Kubernetes object, found `just text`"),
        ("a: 1", "`apiVersion` and `kind` are missing; is this a Kubernetes object?"),
        ("apiVersion: v1\nkind: Pod", "Pod has no `metadata.name`"),
        (pod("{}", "generateName: p-"), "`generateName` needs an API server"),
        ("apiVersion: v1\nkind: Nodes\nmetadata: {name: a}", "unknown kind `Nodes`; did you mean `Node`?"),
        ("apiVersion: v1\nkind: Pdo\nmetadata: {name: a}", "not a kind that scheduling reads; did you mean `Pod`?"),
        ("apiVersion: v1\nkind: ConfigMap", "v1 ConfigMap is not a kind that scheduling reads; remove it"),
        ("apiVersion: apps/v1\nkind: Deployment", "Deployment is not read: scheduling reads pods"),
        ("apiVersion: policy/v1beta1\nkind: PodDisruptionBudget", "is read as `policy/v1`, found apiVersion"),
        (pod("[]"), "document 1 (line 1): spec: expected a mapping, found a list"),
        (pod("{containers: [{ports: [{hostPort: '80'}]}]}"), "spec.containers[0].ports[0].hostPort: expected a whole"),
        (pod("{nodeSelector: {a: 1}}"), 'expected text, found `1`; put it in quotes: "1"'),
        (pod("{containers: [{resources: {requests: {cpu: 5x}}}]}"), "spec.containers[0].resources.requests[cpu]: `5x`"),
        (pod("{overhead: {memory: -1}}"), "spec.overhead[memory]: `-1` is negative"),
        (pod("{containers: [{resources: {limits: {cpu: .nan}}}]}"), "spec.containers[0].resources.limits[cpu]"),
        (f"{pod('{}')}---\n{pod('{}')}", "Pod `default/p` is there twice, first in document 1 (line 1)"),
        ('{"apiVersion": "v1", "kind": "List", "items": {}}', "items: expected a list, found a mapping"),
        (
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, {**POD, "spec": {"containers": [3]}}]}),
            "c.yaml: items[1].spec.containers[0]: expected a mapping, found `3`",
        ),
    ],
)
def test_each_problem_is_one_line_with_its_place(text: str, expected: str) -> None:
    assert expected in refused(text)


def test_a_line_that_is_no_json_is_named() -> None:
    assert "c.yaml: line 2: not valid JSON" in refused(f"{json.dumps(NODE)}\nnope\n", is_lines=True)


def test_kinds_that_are_not_read_can_be_left_out() -> None:
    text = f"{json.dumps(NODE)}\n---\napiVersion: v1\nkind: ConfigMap\n---\napiVersion: serving.x/v1\nkind: Service\n"

    assert [found.name for found in read_objects_text(text, ignore_unread=True)] == ["n1"]
    assert "unknown kind `Nodes`" in refused("apiVersion: v1\nkind: Nodes", ignore_unread=True)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_objects(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_objects(tmp_path / "b.yaml")


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
