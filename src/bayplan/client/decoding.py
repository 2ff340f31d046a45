"""Decodes lists and watch events into typed objects, and isolates objects that cannot be decoded.

The caller names a msgspec Struct type; fields that it does not have are skipped while scanning and never built. A page
of a list is cut into its objects first, and each is decoded when it is used: thousands at once would have left the
processor's caches by then. One that does not fit its type is reported by name and the others are kept.
"""

from __future__ import annotations

import sys
from typing import Generic, Protocol, TypeVar

import msgspec

from bayplan.client.errors import ApiError, InvalidResponse, api_error

MAX_LINE_BYTES = 64 << 20
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class ListMetadata(Protocol):
    """The part of ObjectMeta that a reflector reads."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class ApiObject(Protocol):
    """Any typed Kubernetes object."""

    @property
    def metadata(self) -> ListMetadata: ...


T = TypeVar("T", bound=ApiObject)


class PartialMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class PartialObject(msgspec.Struct):
    """Identity of an object that does not fit its type."""

    metadata: PartialMetadata = msgspec.field(default_factory=PartialMetadata)


class Rejected(msgspec.Struct, frozen=True):
    """An object that could not be decoded: which one, which version, and what is wrong with it."""

    key: str
    metadata: PartialMetadata
    reason: str


class ListPage(msgspec.Struct):
    """One page of a list, its objects not decoded yet."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str


class Event(msgspec.Struct, Generic[T]):
    """A watch event that carries an object of the wanted type."""

    type: str
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """A bookmark: the resourceVersion of the stream; `ends_initial_events` marks the end of a streamed list."""

    resource_version: str
    ends_initial_events: bool


class RejectedEvent(msgspec.Struct, frozen=True):
    """A watch event whose object could not be decoded."""

    type: str
    rejected: Rejected


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _RawPage(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct):
    metadata: _BookmarkMeta


_RAW_PAGE = msgspec.json.Decoder(_RawPage)
_RAW_EVENT = msgspec.json.Decoder(_RawEvent)
_PARTIAL = msgspec.json.Decoder(PartialObject)
_BOOKMARK = msgspec.json.Decoder(_BookmarkObject)
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError)
_DEEPEST = 10_200
"""kube-apiserver refuses what is nested more than 10,000 levels deep. The decoder takes 400 bytes of stack for each."""
D = TypeVar("D")


class ObjectDecoder(Generic[T]):
    """Decodes lists and watch events of one type."""

    def __init__(self, object_type: type[T]) -> None:
        self._object = msgspec.json.Decoder(object_type)
        self._event: msgspec.json.Decoder[Event[T]] = msgspec.json.Decoder(Event[object_type])  # type: ignore[valid-type]

    def page(self, body: bytes) -> ListPage:
        """Cut one page of a list into its objects. Raises `InvalidResponse` when it is no list at all."""
        try:
            page = _decoded(_RAW_PAGE, body)
        except _NOT_JSON as error:
            raise InvalidResponse(f"the answer is not a list of objects: {error}") from error
        return ListPage(page.items or [], page.metadata.resource_version, page.metadata.continue_token)

    def item(self, raw: msgspec.Raw) -> T | Rejected:
        """Decode one object of a page."""
        try:
            return _decoded(self._object, raw)
        except _NOT_JSON as error:
            return _rejected(bytes(raw), str(error))

    def metadata(self, raw: msgspec.Raw) -> PartialMetadata:
        """Name and version of one object of a page; empty if it cannot be decoded."""
        try:
            return _decoded(_PARTIAL, raw).metadata
        except _NOT_JSON:
            return PartialMetadata()

    def event(self, line: bytes) -> Event[T] | Bookmark | RejectedEvent:
        """Decode one line of a watch. Raises the `ApiError` that an ERROR event carries."""
        try:
            event = _decoded(self._event, line)
        except _NOT_JSON as error:
            return self._odd_event(line, str(error))
        if event.type in ("ADDED", "MODIFIED", "DELETED"):
            return event
        return self._odd_event(line, f"unknown event type `{event.type}`")

    def _odd_event(self, line: bytes, reason: str) -> Bookmark | RejectedEvent:
        """Bookmarks, errors, and objects that do not fit their type: rare, so decoded a second time."""
        try:
            raw = _decoded(_RAW_EVENT, line)
        except _NOT_JSON as error:
            raise InvalidResponse(f"the watch sent a line that is not an event: {error}") from error
        if raw.type == "ERROR":
            raise _error_of(bytes(raw.object))
        if raw.type == "BOOKMARK":
            return _bookmark(bytes(raw.object))
        return RejectedEvent(raw.type, _rejected(bytes(raw.object), reason))


def object_key(metadata: ListMetadata) -> str:
    """`namespace/name`, or the name alone for what has no namespace."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def _decoded(decoder: msgspec.json.Decoder[D], data: bytes | msgspec.Raw) -> D:
    """Decode what may be nested as deep as an API server stores, such as the parameters of a resource claim. Python's
    own limit is lower, and one object of a user must not end the list that holds it."""
    try:
        return decoder.decode(data)
    except RecursionError:
        usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, _DEEPEST))
    try:
        return decoder.decode(data)
    except RecursionError:
        raise msgspec.DecodeError(f"nested more than {_DEEPEST:,} levels deep") from None
    finally:
        sys.setrecursionlimit(usual)


def _error_of(body: bytes) -> ApiError:
    return api_error(500, body)


def _bookmark(body: bytes) -> Bookmark:
    try:
        meta = _BOOKMARK.decode(body).metadata
    except _NOT_JSON as error:
        raise InvalidResponse(f"the watch sent a bookmark without a resourceVersion: {error}") from error
    return Bookmark(meta.resource_version, (meta.annotations or {}).get(_INITIAL_EVENTS_END) == "true")


def _rejected(body: bytes, reason: str) -> Rejected:
    try:
        metadata = _decoded(_PARTIAL, body).metadata
    except _NOT_JSON:
        metadata = PartialMetadata()
    return Rejected(object_key(metadata), metadata, reason)


class LineSplitter:
    """Splits chunks of any size into lines. A long line costs one join, whatever the number of its chunks."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their ends; empty lines are left out."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        lines = [b"".join((*self._pieces, first)), *rest[:-1]]
        self._pieces = []
        self._held_bytes = 0
        self._hold(rest[-1])
        return [line for line in lines if line]

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        self._held_bytes += len(piece)
        if self._held_bytes > MAX_LINE_BYTES:
            raise InvalidResponse(f"the watch sent a line of more than {MAX_LINE_BYTES} bytes")
