"""Objects out of files, with the place they stood at."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from bayplan.api.decode import InputError
from bayplan.cli.documents import is_object_file, read_found_objects


def places(path: Path) -> list[tuple[str, str]]:
    return [(found.where, found.item.get("kind", "")) for found in read_found_objects(str(path))]


def test_a_stream_of_documents_is_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("kind: A\n---\n---\nkind: B\n")

    assert [kind for _, kind in places(path)] == ["A", "B"]
    assert "line 1" in places(path)[0][0]


def test_a_list_is_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"kind": "List", "items": [{"kind": "A"}, {"kind": "B"}]}')

    assert places(path) == [("items[0]", "A"), ("items[1]", "B")]


def test_items_of_a_typed_list_are_told_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "p"}}]}')

    assert next(read_found_objects(str(path))).item == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
    }


def test_an_empty_list_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("kind: List\nitems:\n")

    assert places(path) == []


def test_json_lines_are_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"kind": "A"}\n\n{"kind": "B"}\n')

    assert places(path) == [("line 1", "A"), ("line 3", "B")]


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfkind: A\n")))

    assert [found.source for found in read_found_objects("-")] == ["standard input"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.yaml", b"a: [\n", "a.yaml: line 2: not valid YAML"),
        ("a.yaml", b"\xff\xfe", "a.yaml: not UTF-8 text"),
        ("a.yaml", b"- 1\n", "expected a Kubernetes object"),
        ("a.yaml", b"kind: List\nitems: 3\n", "items: expected a list"),
        ("a.yaml", b"kind: List\nitems: [3]\n", "items[0]: expected a Kubernetes object"),
        ("a.jsonl", b"{}\n{", "a.jsonl: line 2: not valid JSON"),
        ("a.json", b'{"a": ', "a.json: "),
    ],
)
def test_bad_files_are_refused_in_one_line(
    name: str, content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as raised:
        list(read_found_objects(name))

    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["nowhere.yaml", ".", "nul\0.yaml"])
def test_files_that_cannot_be_read_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_found_objects(name))


def test_a_name_is_told_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")

    assert is_object_file("missing.yaml") and is_object_file("-") and is_object_file(str(tmp_path / "plain"))
    assert not is_object_file("default/web-0")
