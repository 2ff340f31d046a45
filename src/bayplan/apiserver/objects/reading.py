"""Reading objects: get, list with paging, watch.

Lists are consistent: every page of one list shows the store at the revision of the first page, or answers
410 Expired. Nothing here changes an object.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import functools
from dataclasses import dataclass, replace

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.objects.representation import PLAIN, PROTOBUF, Representation, negotiate, render, render_list
from bayplan.apiserver.objects.selection import Selection, select
from bayplan.apiserver.objects.watch import WatchStream, error_event
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import BadJson, Json, decode, encode
from bayplan.apiserver.protocol.exchange import JSON_TYPE, ApiAnswer, Request
from bayplan.apiserver.storage.store import Compacted, Entry, Listing, Store
from bayplan.observe.clock import Clock

_EXPIRED_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_BOOKMARK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Where the next page starts, and which state of the store it shows; revision 0 means the current one."""

    revision: int
    start: tuple[str, str]

    def token(self) -> str:
        namespace, name = self.start
        document = {"v": "meta.k8s.io/v1", "rv": self.revision, "start": f"{namespace}/{name}\0"}
        return base64.urlsafe_b64encode(encode(document)).decode().rstrip("=")

    @classmethod
    def read(cls, token: str) -> ObjectPage:
        try:
            document = decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            namespace, slash, name = document["start"].rstrip("\0").partition("/")
            if not slash or not isinstance(document["rv"], int):
                raise ValueError("no start")
            return cls(document["rv"], (namespace, name))
        except (binascii.Error, ValueError, BadJson, KeyError, TypeError, AttributeError) as problem:
            raise errors.bad_request(f"continue key is not valid: {type(problem).__name__}") from problem


class ObjectReader:
    """The reading half of the API."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.watches: dict[WatchStream, str] = {}
        """Open watches and the resource each is about."""

    def get(self, kind: ServedKind, namespace: str, name: str, request: Request) -> ApiAnswer:
        entry = self._store.get(kind.stored_as, namespace, name)
        if entry is None:
            raise errors.not_found(kind.plural, name, group=kind.group)
        representation = _representation(request)
        body = render(kind, entry.raw, representation, now=self._clock.now())
        return ApiAnswer(200, body, representation.content_type)

    # ---- list

    def list(self, kind: ServedKind, namespace: str, request: Request) -> ApiAnswer:
        selection = _selection(kind, namespace, request)
        representation = _representation(request)
        limit, token = request.seconds("limit") or 0, request.query.get("continue", "")
        if request.query.get("resourceVersion") == "0":
            limit = 0  # as where a cache answers
        listing, start = self._listing(kind, request, token)
        entries = listing.entries
        if start is not None:
            entries = [entry for entry in entries if entry.key > start]
        if not selection.is_everything:
            entries = [entry for entry in entries if selection.matches(entry)]
        metadata: Json = {"resourceVersion": str(listing.revision)}
        if limit and len(entries) > limit:
            metadata["continue"] = ObjectPage(listing.revision, entries[limit - 1].key).token()
            if not selection.has_selectors:
                metadata["remainingItemCount"] = len(entries) - limit
            entries = entries[:limit]
        body = render_list(kind, entries, metadata, representation, now=self._clock.now())
        return ApiAnswer(200, body, representation.content_type)

    def _listing(self, kind: ServedKind, request: Request, token: str) -> tuple[Listing, tuple[str, str] | None]:
        """The state of the resource to show, and the key after which to begin."""
        version, match = request.query.get("resourceVersion", ""), request.query.get("resourceVersionMatch", "")
        _check_version_match(version, match, bool(token))
        if "sendInitialEvents" in request.query:
            cause = errors.forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")
            raise errors.invalid("ListOptions", "", [cause], group="meta.k8s.io")
        if token:
            page = ObjectPage.read(token)
            if page.revision == 0:
                return self._store.listing(kind.stored_as), page.start
            return self._page(kind, page), page.start
        revision = _revision(version)
        self._check_not_ahead(revision)
        if match == "Exact":
            try:
                return self._store.listing_at(kind.stored_as, revision), None
            except Compacted as problem:
                raise errors.expired(_too_old(problem)) from problem
        return self._store.listing(kind.stored_as), None

    def _page(self, kind: ServedKind, page: ObjectPage) -> Listing:
        self._check_not_ahead(page.revision)
        try:
            return self._store.listing_at(kind.stored_as, page.revision)
        except Compacted as problem:
            inconsistent = {"continue": ObjectPage(0, page.start).token()}
            raise errors.expired(_EXPIRED_PAGE, metadata=inconsistent) from problem

    def _check_not_ahead(self, revision: int) -> None:
        if revision > self._store.revision:
            raise errors.future_version(revision, self._store.revision)

    # ---- watch

    def watch(self, kind: ServedKind, namespace: str, name: str, request: Request) -> ApiAnswer:
        selection = _selection(kind, namespace, request, name=name)
        representation = _representation(request)
        if representation.content_type == PROTOBUF:
            raise errors.not_acceptable((JSON_TYPE,))
        stream = self._stream(kind, selection, representation)
        version = request.query.get("resourceVersion", "")
        sends_initial = request.flag("sendInitialEvents")
        _check_initial_events(request, sends_initial)
        revision = _revision(version)
        self._check_not_ahead(revision)
        stream.wants_bookmarks = request.flag("allowWatchBookmarks")
        if sends_initial or (revision == 0 and request.query.get("sendInitialEvents") is None):
            stream.begin_with([e for e in self._store.listing(kind.stored_as).entries if selection.matches(e)])
            if sends_initial and stream.wants_bookmarks:
                stream.push(_bookmark(kind, self._store.revision, initial_events_end=True))
        elif revision and not self._replay(kind, stream, revision):
            return ApiAnswer(200, stream=stream)
        self._open(kind, stream, request.seconds("timeoutSeconds"))
        return ApiAnswer(200, stream=stream)

    def _stream(self, kind: ServedKind, selection: Selection, representation: Representation) -> WatchStream:
        if representation is PLAIN and kind.from_storage is None:
            return WatchStream(selection)
        as_json = replace(representation, content_type=JSON_TYPE)

        def encode_entry(entry: Entry) -> bytes:
            # A Table row shows ages, so its bytes are made when they are sent.
            return render(kind, entry.raw, as_json, now=self._clock.now())

        key = (as_json, kind)
        return WatchStream(selection, encode_entry=encode_entry, representation=key)

    def _replay(self, kind: ServedKind, stream: WatchStream, revision: int) -> bool:
        """Queue what happened since a revision; an ERROR event and the end when that is no longer known."""
        try:
            changes = self._store.changes_since(kind.stored_as, revision)
        except Compacted as problem:
            stream.push(error_event(errors.expired(_too_old(problem)).status))
            stream.close()
            return False
        for change in changes:
            stream.on_change(kind.stored_as, change)
        return True

    def _open(self, kind: ServedKind, stream: WatchStream, timeout_seconds: int | None) -> None:
        self.watches[stream] = kind.stored_as
        stream.on_close(self._store.listen(kind.stored_as, stream.on_change))
        stream.on_close(functools.partial(self._forget, stream))
        if timeout_seconds or stream.wants_bookmarks:
            keeper = asyncio.get_running_loop().create_task(
                self._keep(kind, stream, timeout_seconds), name=f"watch {kind.resource}"
            )
            stream.on_close(functools.partial(_cancel, keeper))

    async def _keep(self, kind: ServedKind, stream: WatchStream, timeout_seconds: int | None) -> None:
        """Send bookmarks, and end the watch when its time is up."""
        end = self._clock.monotonic() + (timeout_seconds or float("inf"))
        while (left := end - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, _BOOKMARK_SECONDS))
            if stream.wants_bookmarks:
                stream.push(_bookmark(kind, self._store.revision))
        stream.close()

    def _forget(self, stream: WatchStream) -> None:
        self.watches.pop(stream, None)

    def cut_watches(self, resource: str = "") -> int:
        """End the open watches of a resource, or all; answers how many."""
        found = [stream for stream, about in self.watches.items() if resource in ("", about)]
        for stream in found:
            stream.close()
        return len(found)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _representation(request: Request) -> Representation:
    return negotiate(request.headers.get("accept", ""), request.query.get("includeObject", ""))


def _selection(kind: ServedKind, namespace: str, request: Request, *, name: str = "") -> Selection:
    return select(
        kind,
        namespace=namespace,
        name=name,
        label_selector=request.query.get("labelSelector", ""),
        field_selector=request.query.get("fieldSelector", ""),
    )


def _revision(text: str) -> int:
    if text in ("", "0"):
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise errors.bad_request(f'Invalid value: "{text}": resourceVersion is not a number')
    return int(text)


def _check_version_match(version: str, match: str, is_continued: bool) -> None:
    problem = ""
    if match and match not in ("Exact", "NotOlderThan"):
        cause = errors.not_supported("resourceVersionMatch", match, ["Exact", "NotOlderThan"])
        raise errors.invalid("ListOptions", "", [cause], group="meta.k8s.io")
    if match and is_continued:
        problem = "resourceVersionMatch is forbidden with continue"
    elif match and not version:
        problem = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match == "Exact" and version == "0":
        problem = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if problem:
        cause = errors.forbidden_field("resourceVersionMatch", problem)
        raise errors.invalid("ListOptions", "", [cause], group="meta.k8s.io")
    if is_continued and version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")


def _check_initial_events(request: Request, sends_initial: bool) -> None:
    match = request.query.get("resourceVersionMatch", "")
    asked = request.query.get("sendInitialEvents") is not None
    causes = []
    if asked and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(errors.forbidden_field("resourceVersionMatch", detail))
    elif not asked and match:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(errors.forbidden_field("resourceVersionMatch", detail))
    if causes:
        raise errors.invalid("ListOptions", "", causes, group="meta.k8s.io")


def _too_old(problem: Compacted) -> str:
    return f"too old resource version: {problem.asked} ({problem.oldest})"


def _bookmark(kind: ServedKind, revision: int, *, initial_events_end: bool = False) -> bytes:
    metadata: Json = {"resourceVersion": str(revision)}
    if initial_events_end:
        metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
    bare = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    return b'{"type":"BOOKMARK","object":' + encode(bare) + b"}\n"
