from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.documents import DocumentError, Rows, Table, parse_documents


def parse(text: str) -> Any:
    (document,) = parse_documents(text)
    return document.value


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1", 1), ("-3", -3), ("+5", 5), ("0x10", 16), ("010", 8), ("0", 0), ("1_000", 1000), ("0b11", 3),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("-.inf", float("-inf")),
        ("yes", True), ("off", False), ("~", None), ("null", None), ("''", ""), ("'1'", "1"),
        ("500m", "500m"), ("1:30", "1:30"), ("2026-01-01", "2026-01-01"), ("1.2.3", "1.2.3"), ("-", None),
        ("!!str 1", "1"), ("!!int 7", 7), ("0x_", "0x_"),
    ],
)  # fmt: skip
def test_scalars_are_read_as_kubernetes_reads_them(scalar: str, value: Any) -> None:
    expected = [None] if scalar == "-" else value

    assert parse(f"a: {scalar}" if scalar != "-" else "a:\n  -")["a"] == expected


def test_lines_are_kept() -> None:
    value = parse("a: 1\nb:\n  c: 2\n  d:\n  - 3\n  - 4\n")

    assert isinstance(value, Table)
    assert value.lines == {"a": 1, "b": 2}
    assert value["b"].lines == {"c": 3, "d": 4}
    assert isinstance(value["b"]["d"], Rows)
    assert value["b"]["d"].lines == [5, 6]


def test_a_repeated_key_keeps_the_first_value_and_is_remembered() -> None:
    value = parse("a: 1\nb: 2\na: 3\n")

    assert value == {"a": 1, "b": 2}
    assert value.repeated == [("a", 1, 3)]


def test_anchors_aliases_and_merges_work() -> None:
    value = parse("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: [*x]\n")

    assert value["y"] == {"a": 1, "b": 3}
    assert value["z"] == [{"a": 1, "b": 2}]


def test_empty_documents_are_left_out_and_the_others_numbered() -> None:
    documents = list(parse_documents("---\n# nothing\n---\na: 1\n---\nb: 2\n"))

    assert [(document.number, document.line, document.value) for document in documents] == [
        (2, 3, {"a": 1}),
        (3, 5, {"b": 2}),
    ]


def test_json_with_surrogate_pairs_is_read() -> None:
    assert parse('{"a": "\\ud83d\\ude00", "b": [1]}') == {"a": "\U0001f600", "b": [1]}
    assert parse('{"a\\u0062": 1, "ab": 2}').repeated == [("ab", 0, 0)]
    with pytest.raises(DocumentError, match="not valid JSON"):
        parse('{"\\u0061": }')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("a: b: c", "mapping values are not allowed"),
        ("\t- a", "tab"),
        ("[" * 1000, "nested more than 128 levels"),
        ("a: &a [*a]", "stands for nothing, or for itself"),
        ("a: *b", "stands for nothing"),
        ("? [a]\n: 1", "a key must be a text"),
        ("x: &x [1]\n? *x\n: 1", "a key must be a text"),
        ("a: !!python/object:os.system x", "is not supported"),
        ("a: !thing {}", "is not supported"),
        ("<<: 3", "`<<` needs a mapping"),
        ("\x00", "control characters"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message.replace("<<", "<<")):
        list(parse_documents(text))


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]

    with pytest.raises(DocumentError, match="aliases stand for more than"):
        list(parse_documents("\n".join(lines)))


# The writer leaves some texts unquoted that Kubernetes reads as numbers (0E0, 08) or as a merge.
TEXTS = st.text(max_size=10).filter(lambda text: text != "<<" and text.lstrip("+-")[:1] not in tuple(".0123456789"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXTS.filter(bool), VALUES, min_size=1, max_size=4))
def test_what_a_yaml_writer_writes_is_read_back(value: dict[str, Any]) -> None:
    assert parse(yaml.safe_dump(value, allow_unicode=False)) == value
