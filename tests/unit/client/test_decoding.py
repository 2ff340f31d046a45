from __future__ import annotations

import json
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.client import decoding
from bayplan.client.decoding import Bookmark, Event, LineSplitter, ObjectDecoder, Rejected, RejectedEvent, object_key
from bayplan.client.errors import Gone, InvalidResponse, ServerError

from .support import Meta, Thing, bookmark, event, page, status, thing

DECODER = ObjectDecoder(Thing)


def test_a_page_is_decoded_with_its_version_and_the_way_on() -> None:
    decoded = DECODER.page(page([thing("a", 1), thing("b", 2)], 7, "more").body)

    assert [DECODER.item(raw).metadata.name for raw in decoded.items] == ["a", "b"]
    assert (decoded.resource_version, decoded.continue_token) == ("7", "more")


def test_an_empty_list_may_be_null() -> None:
    assert DECODER.page(b'{"metadata": {"resourceVersion": "3"}, "items": null}').items == []


def test_one_bad_item_of_a_page_is_rejected_by_name() -> None:
    decoded = DECODER.page(page([thing("a", 1), thing("b", 2, value="many"), thing("c", 3)], 7).body)
    good, bad, last = map(DECODER.item, decoded.items)

    assert (good.metadata.name, last.metadata.name) == ("a", "c")
    assert isinstance(bad, Rejected)
    assert bad.key == "ns/b"
    assert "Expected `int`, got `str`" in bad.reason
    assert bad.metadata.resource_version == "2"


def test_an_item_without_readable_metadata_is_rejected_without_a_name() -> None:
    (item,) = map(DECODER.item, DECODER.page(b'{"metadata": {}, "items": [{"metadata": 7}]}').items)

    assert isinstance(item, Rejected)
    assert item.key == ""


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items": 7}', b"\xff", b"[]"])
def test_what_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidResponse, match="not a list"):
        DECODER.page(body)


def test_a_watch_event_is_decoded() -> None:
    decoded = DECODER.event(event("MODIFIED", thing("a", 4, value=2)))

    assert isinstance(decoded, Event)
    assert (decoded.type, decoded.object.value, decoded.object.metadata.resource_version) == ("MODIFIED", 2, "4")


def test_a_bookmark_is_recognised_even_where_its_object_does_not_fit() -> None:
    assert DECODER.event(bookmark(9)) == Bookmark("9", ends_initial_events=False)
    assert DECODER.event(bookmark(9, ends_initial_events=True)) == Bookmark("9", ends_initial_events=True)
    odd = event("BOOKMARK", {"metadata": {"resourceVersion": "5"}, "value": None})
    assert DECODER.event(odd) == Bookmark("5", ends_initial_events=False)
    with pytest.raises(InvalidResponse):
        DECODER.event(event("BOOKMARK", {}))


def test_an_error_event_raises_what_it_says() -> None:
    with pytest.raises(Gone, match="too old"):
        DECODER.event(event("ERROR", status(410, "Expired", "too old resource version")))
    with pytest.raises(ServerError):
        DECODER.event(event("ERROR", {"metadata": {}}))


def test_an_object_that_does_not_fit_is_rejected_with_its_event() -> None:
    decoded = DECODER.event(event("DELETED", thing("a", 4, value=[])))

    assert isinstance(decoded, RejectedEvent)
    assert (decoded.type, decoded.rejected.key, decoded.rejected.metadata.uid) == ("DELETED", "ns/a", "uid-a")


def test_an_event_of_an_unknown_type_is_rejected() -> None:
    decoded = DECODER.event(event("EXPLODED", thing("a", 4)))

    assert isinstance(decoded, RejectedEvent)
    assert "EXPLODED" in decoded.rejected.reason


@pytest.mark.parametrize("line", [b"nonsense", b"[]", b'{"type": "ADDED"}', b"\xff\xfe"])
def test_a_line_that_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidResponse, match="not an event"):
        DECODER.event(line)


def test_keys_are_those_of_kubernetes() -> None:
    assert object_key(Meta(name="a", namespace="ns")) == "ns/a"
    assert object_key(Meta(name="node-1")) == "node-1"


@given(st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")), max_size=10), st.data())
def test_lines_survive_any_cutting(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    splitter = LineSplitter()

    received: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += splitter.feed(stream[start:end])

    assert received == [line for line in lines if line]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    splitter.feed(b"x" * 10)

    with pytest.raises(InvalidResponse, match="more than 10 bytes"):
        splitter.feed(b"x")


def test_fields_that_the_type_does_not_have_are_passed_over() -> None:
    line = json.dumps({"type": "ADDED", "object": {**thing("a", 1), "status": {"big": [1] * 100}}}).encode()

    decoded = DECODER.event(line)

    assert isinstance(decoded, Event)
    assert not hasattr(decoded.object, "status")


def nested(depth: int, *, tail: str = "") -> bytes:
    parameters = '{"a":' + "[" * depth + "]" * depth + "}"
    return f'{{"metadata": {{"name": "deep", "namespace": "ns"}}, "parameters": {parameters}{tail}}}'.encode()


def test_an_object_as_deep_as_an_api_server_stores_is_decoded_like_any_other() -> None:
    """One claim whose opaque parameters are nested so must not end the list or the watch of all claims."""
    usual, deep = sys.getrecursionlimit(), nested(9_990)
    items = DECODER.page(b'{"items": [%s, %s]}' % (json.dumps(thing("a", 1)).encode(), deep)).items
    event = DECODER.event(b'{"type": "ADDED", "object": %s}' % deep)
    misfit = DECODER.item(msgspec.Raw(nested(9_990, tail=', "value": "many"')))

    assert [object_key(item.metadata) for item in map(DECODER.item, items)] == ["ns/a", "ns/deep"]
    assert [DECODER.metadata(raw).name for raw in items] == ["a", "deep"]
    assert isinstance(event, Event) and event.object.metadata.name == "deep"
    assert isinstance(misfit, Rejected) and misfit.key == "ns/deep"
    assert sys.getrecursionlimit() == usual


def test_what_is_deeper_than_that_is_no_answer_of_an_api_server() -> None:
    usual, deeper = sys.getrecursionlimit(), nested(15_000)
    with pytest.raises(InvalidResponse, match="nested more than"):
        DECODER.page(b'{"items": [%s]}' % deeper)
    with pytest.raises(InvalidResponse, match="nested more than"):
        DECODER.event(b'{"type": "ADDED", "object": %s}' % deeper)
    item = DECODER.item(msgspec.Raw(deeper))

    assert isinstance(item, Rejected) and "nested more than" in item.reason
    assert sys.getrecursionlimit() == usual
