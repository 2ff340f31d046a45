"""A reflector keeps a local copy of one resource up to date: it lists, then watches, without losing a change.

                    ┌──────────── 410, or the server keeps refusing the resume point ───────────┐
                    ▼                                                                           │
    start ──▶ list (paged or streamed) ──▶ drop what is gone ──▶ synced ──▶ watch ──ended──▶ resume from the last
                    │                                                         ▲              resourceVersion
                    └── failed: back off, list again                          └── failed: back off ──┘

Every change is reported once, in order, as `on_change(old, new)` (see `replica`). A deletion that happened while no
watch was open is found by comparing with the next list. Calls are synchronous and come in batches between awaits, so a
reader on the same event loop never sees half a batch. An object that cannot be decoded is reported by name and skipped.

Run it in a task and cancel the task to stop; it ends in no other way. It only reads, and never polls.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Generic

import msgspec

from bayplan.client.backoff import Backoff, Draw
from bayplan.client.decoding import (
    Bookmark,
    Event,
    LineSplitter,
    ListPage,
    ObjectDecoder,
    Rejected,
    RejectedEvent,
    T,
    object_key,
)
from bayplan.client.errors import (
    ApiError,
    BadRequest,
    ClientError,
    ConnectionFailed,
    Forbidden,
    Gone,
    Invalid,
    InvalidResponse,
    RequestTimeout,
    TooManyRequests,
    advice_to_follow,
    api_error,
)
from bayplan.client.reflector_settings import ReflectorSettings, ReflectorStats
from bayplan.client.replica import Replica
from bayplan.client.transport import Transport
from bayplan.client.watch_proof import BRIEF_WATCH_SECONDS, WatchProof
from bayplan.observe.clock import Clock

__all__ = ["Reflector", "ReflectorSettings", "ReflectorStats"]

_HEALTHY_AFTER_SECONDS = 1.0
_REFUSALS_BEFORE_RELIST = 5
_OBJECTS_PER_SLICE = 500
_SECONDS_BETWEEN_LOOKS = (5.0, 2.0)
"""At whether a watch is silent; more often where writes of our own are expected to show."""
_TOO_LARGE = "ResourceVersionTooLarge"

_log = logging.getLogger(__name__)


class Reflector(Generic[T]):
    """A live copy of the objects under one collection path. `run` it in a task; wait for `synced`."""

    def __init__(
        self,
        transport: Transport,
        path: str,
        object_type: type[T],
        on_change: Callable[[T | None, T | None], None],
        *,
        clock: Clock,
        draw: Draw,
        field_selector: str = "",
        label_selector: str = "",
        transform: Callable[[T], T | None] | None = None,
        settings: ReflectorSettings | None = None,
    ) -> None:
        """`transform` may trim an object before it is kept, or return None to leave it out."""
        self._transport = transport
        self._path = path
        self._decoder = ObjectDecoder(object_type)
        self._clock = clock
        self._draw = draw
        self._settings = settings or ReflectorSettings()
        self._backoff = Backoff(self._settings.backoff, draw=draw)
        selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
        self._selectors = {name: value for name, value in selectors.items() if value}
        self._needs_list = True
        self._can_stream = self._settings.is_streaming
        self._listed: set[str] | None = None
        self._heard_at = 0.0
        self._changes_until_silence = 0
        self._lacks_a_write = False
        """A watch ended because a write of ours did not show; the list after it has not come yet."""
        self._expected_by: float | None = None
        self._is_written = False
        self._refusals = 0
        self._watching_since: float | None = None
        self._list_began = self._refresh_began = -math.inf
        self._round: asyncio.Task[None] | None = None
        self._is_brief = False
        self._proof = WatchProof(
            self._current_version,
            lambda: self.stats.resource_version,
            clock=clock,
            on_proved=self._note_known,
            on_failed=self.list_again,
        )
        self.known_until = -math.inf
        """By the monotonic clock: what was written before is known, by a list that began then, or by proof."""
        self.replica = Replica(path, on_change, transform=transform)
        self.synced = asyncio.Event()
        self.stats = ReflectorStats()

    @property
    def path(self) -> str:
        return self._path

    @property
    def objects(self) -> Mapping[str, T]:
        """The copy: objects by `namespace/name`, or by name. Live; do not keep it across an await."""
        return self.replica.objects

    def expect_event(self) -> None:
        """Expect something on the watch soon, because an object was written just now."""
        self._is_written = True
        if self._expected_by is None:
            self._expected_by = self._clock.monotonic() + self._settings.answer_seconds

    def list_again(self) -> None:
        """Begin to list again: a watch may be late by any time, or have fallen silent."""
        self._needs_list = True
        self._refresh_began = self._clock.monotonic()
        self.synced.clear()
        self._restart()

    def prepare_refresh(self) -> None:
        """`refresh` may follow in a second: have a watch open then that can prove to be up to date."""
        if self._is_provable:
            self._is_brief = True
            self._restart()

    def refresh(self) -> None:
        """Begin to learn everything that was written until now, by proof that the watch has shown it where a list would
        take more than one page, else by a list. Not `synced` until then."""
        if not self._is_provable:
            self.list_again()
            return
        self._refresh_began = self._clock.monotonic()
        self.synced.clear()
        self._proof.begin()
        if not self._is_brief:
            self.prepare_refresh()

    async def catch_up(self, moment: float) -> None:
        """Wait until everything is known that was written before then, by the monotonic clock."""
        if self.known_until > moment:
            return
        is_under_way = not self.synced.is_set() and self._refresh_began > moment
        if not is_under_way:
            self.refresh()
        await self.synced.wait()

    @property
    def _is_provable(self) -> bool:
        return self.stats.is_connected and not self._needs_list and len(self.objects) > self._settings.page_size

    async def _current_version(self) -> str:
        return (await self._get_page(1, "")).resource_version

    def _note_known(self, until: float) -> None:
        self._proof.end()
        self.known_until = until
        self.synced.set()

    def _restart(self) -> None:
        if self._round is not None:
            self._round.cancel()

    async def run(self) -> None:
        """Reflect until cancelled."""
        try:
            while True:
                await self._run_round()
        finally:
            self._proof.end()

    async def _run_round(self) -> None:
        self._round = asyncio.create_task(self._reflect(), name=f"a round of {self._path}")
        try:
            await asyncio.wait([self._round])
        finally:
            self._round.cancel()
            await asyncio.wait([self._round])
        if not self._round.cancelled():
            self._round.result()

    async def _reflect(self) -> None:
        """Until something fails, or another round is wanted."""
        while True:
            delay = await self._attempt()
            await self._clock.sleep(delay)

    async def _attempt(self) -> float:
        """List if that is needed, then watch to the end; returns how long to wait before the next attempt."""
        events_before = self.stats.events
        self._watching_since = None
        failure: ClientError | None = None
        try:
            await self._list_and_watch()
        except ClientError as error:
            failure = error
            self._learn_from(error)
        finally:
            self.stats.is_connected = False
        self._is_brief = False
        was_healthy = self._was_healthy(events_before)
        self._report(failure, was_healthy=was_healthy)
        if was_healthy and not isinstance(failure, TooManyRequests):
            self._backoff.succeeded()
            return 0.0
        asked_for = (failure.retry_after or 0.0) if isinstance(failure, ApiError) else 0.0
        return max(self._backoff.next_delay(), asked_for)

    def _was_healthy(self, events_before: int) -> bool:
        """Whether the last watch delivered anything or lasted: then the next one may follow at once."""
        if self._watching_since is None:
            return False
        lived = self._clock.monotonic() - self._watching_since
        return lived >= _HEALTHY_AFTER_SECONDS or self.stats.events > events_before

    def _learn_from(self, error: ClientError) -> None:
        """Decide whether the resume point is still good."""
        if not isinstance(error, (ApiError, InvalidResponse)):
            return
        self._refusals += 1
        is_point_bad = isinstance(error, (Gone, BadRequest, Invalid, InvalidResponse)) or (
            isinstance(error, ApiError) and _TOO_LARGE in error.causes
        )
        if is_point_bad or self._refusals >= _REFUSALS_BEFORE_RELIST:
            self._needs_list = True
            self._refusals = 0

    def _report(self, failure: ClientError | None, *, was_healthy: bool) -> None:
        if failure is None:
            return
        text = f"{failure}{advice_to_follow(failure)}"
        self.stats.is_forbidden = isinstance(failure, Forbidden)
        # Of a watch that was merely silent, the list after it tells whether it was dead.
        is_worth_saying = not was_healthy or self._lacks_a_write
        is_news = text != self.stats.last_error and not isinstance(failure, Gone) and is_worth_saying
        self.stats.last_error = text
        level = logging.WARNING if is_news else logging.DEBUG
        _log.log(level, "cannot follow %s, will try again: %s", self._path, text)

    # listing

    async def _list_and_watch(self) -> None:
        if self._needs_list:
            self._proof.end()
        if self._needs_list and self._can_stream:
            try:
                await self._watch(is_list=True)
                return
            except (ApiError, RequestTimeout) as error:
                if not self._needs_list:
                    raise
                _log.info("the server does not stream the list of %s, asking for pages: %s", self._path, error)
                self._can_stream = False
        if self._needs_list:
            await self._list()
        await self._watch(is_list=False)

    async def _list(self) -> None:
        """Read all pages and apply each as it comes; then whatever was in none of them is gone."""
        self._listed, self._list_began = set(), self._clock.monotonic()
        limit, token = self._settings.page_size, ""
        coming = asyncio.create_task(self._get_page(limit, token), name=f"a page of {self._path}")
        try:
            while True:
                try:
                    page = await coming
                except Gone:
                    if not token:
                        raise
                    # The list's resourceVersion expired. List again in one page, which cannot expire half-way.
                    self._listed, self._list_began = set(), self._clock.monotonic()
                    limit, token = 0, ""
                    coming = asyncio.create_task(self._get_page(limit, token), name=f"all of {self._path}")
                    continue
                if page.continue_token and page.continue_token == token:
                    raise InvalidResponse(f"the list of {self._path} does not advance from page to page")
                token = page.continue_token
                if token:
                    # The server works on the next page while this one is applied.
                    coming = asyncio.create_task(self._get_page(limit, token), name=f"a page of {self._path}")
                await self._apply_page(page, self._listed)
                if not token:
                    break
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        self._finish_list(page.resource_version)

    async def _get_page(self, limit: int, token: str) -> ListPage:
        query = dict(self._selectors)
        if limit:
            query["limit"] = str(limit)
        if token:
            query["continue"] = token
        response = await self._transport.request(
            "GET", self._path, query=query, timeout=self._settings.list_timeout_seconds
        )
        if response.status != 200:
            raise api_error(response.status, response.body, headers=response.headers)
        page = self._decoder.page(response.body)
        if not page.resource_version:
            # An object of any other kind would be taken for an empty list, and all that is known for gone.
            raise InvalidResponse(f"the answer to a list of {self._path} is not a list: it has no resourceVersion")
        return page

    async def _apply_page(self, page: ListPage, listed: set[str]) -> None:
        decode, keep = self._decoder.item, self.replica.keep
        is_first = not self.stats.lists
        for start in range(0, len(page.items), _OBJECTS_PER_SLICE):
            for raw in page.items[start : start + _OBJECTS_PER_SLICE]:
                if not is_first and (key := self._known_as(raw)):
                    listed.add(key)
                    continue
                item = decode(raw)
                if isinstance(item, Rejected):
                    listed.add(item.key)
                    self.replica.reject(item)
                    continue
                key = object_key(item.metadata)
                listed.add(key)
                keep(item, key)
            await asyncio.sleep(0)

    def _known_as(self, raw: msgspec.Raw) -> str:
        """The key of an object that is known in this very version, which is most of them when they are listed again."""
        metadata = self._decoder.metadata(raw)
        key = object_key(metadata)
        known = self.objects.get(key)
        if known is None or known.metadata.uid != metadata.uid:
            return ""
        return key if known.metadata.resource_version == metadata.resource_version else ""

    def _finish_list(self, resource_version: str) -> None:
        assert self._listed is not None
        self.replica.drop_all_but(self._listed)
        self._listed = None
        self._needs_list = False
        self._refusals = 0
        self.stats.lists += 1
        self.stats.resource_version = resource_version
        self._note_known(self._list_began)
        if self.stats.is_silent:
            self._judge_silence()

    def _judge_silence(self) -> None:
        """A list was read after a watch had been silent. Where it shows nothing new, there was nothing to say:
        kube-apiserver sends no bookmarks of a kind that nobody has changed since it started, unless etcd reports its
        progress."""
        missed = self.replica.changes - self._changes_until_silence
        self._lacks_a_write = False
        if missed:
            _log.warning("the watch of %s was silent and had not shown %d changes", self._path, missed)
        else:
            self.stats.is_silent = False

    # watching

    async def _watch(self, *, is_list: bool) -> None:
        """Follow one stream to its end. As a list, it begins with every object there is."""
        splitter = LineSplitter()
        self._listed = set() if is_list else None
        if is_list:
            self._list_began = self._clock.monotonic()
        async with (
            self._unless_silent(),
            self._transport.stream(self._path, query=self._watch_query(is_list=is_list)) as chunks,
        ):
            self._watching_since = self._clock.monotonic()
            self.stats.is_connected = True
            self.stats.last_error = ""
            self.stats.is_forbidden = False
            self.stats.watches += 1
            async for chunk in chunks:
                self._heard_at = self._clock.monotonic()
                self._expected_by, self.stats.is_silent = None, False
                for line in splitter.feed(chunk):
                    self._handle(line)
                if self._proof.is_open:
                    self._proof.pass_version(self.stats.resource_version)
        if self._needs_list:
            raise ConnectionFailed(f"the list of {self._path} ended half-way", may_have_been_processed=True)

    def _watch_query(self, *, is_list: bool) -> dict[str, str]:
        seconds = BRIEF_WATCH_SECONDS if self._is_brief else self._settings.watch_seconds * (1.0 + self._draw())
        query = {
            **self._selectors,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, int(seconds))),
        }
        if is_list:
            return {**query, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return {**query, "resourceVersion": self.stats.resource_version}

    def _handle(self, line: bytes) -> None:
        event = self._decoder.event(line)
        if isinstance(event, Bookmark):
            self._pass_bookmark(event)
            return
        self.stats.events += 1
        self._refusals = 0
        if isinstance(event, Event):
            self._take(event)
            version = event.object.metadata.resource_version
        else:
            self._take_rejected(event)
            version = event.rejected.metadata.resource_version
        if version:
            self.stats.resource_version = version

    def _pass_bookmark(self, bookmark: Bookmark) -> None:
        self._refusals = 0
        if self._listed is None:
            self.stats.resource_version = bookmark.resource_version or self.stats.resource_version
        elif bookmark.ends_initial_events:
            self._finish_list(bookmark.resource_version)

    def _take(self, event: Event[T]) -> None:
        metadata = event.object.metadata
        if event.type == "DELETED":
            self.replica.drop(object_key(metadata), uid=metadata.uid)
            return
        if self._listed is not None:
            self._listed.add(object_key(metadata))
        self.replica.keep(event.object)

    def _take_rejected(self, event: RejectedEvent) -> None:
        """The content is unreadable, but a deletion needs no content, and a streamed list still names the object."""
        rejected = event.rejected
        if event.type == "DELETED":
            self.replica.drop(rejected.key, uid=rejected.metadata.uid)
            return
        if self._listed is not None:
            self._listed.add(rejected.key)
        self.replica.reject(rejected)

    @contextlib.asynccontextmanager
    async def _unless_silent(self) -> AsyncIterator[None]:
        """End the block with `RequestTimeout` when nothing has been heard for too long, by our clock. The objects are
        then listed again: what froze one watch may freeze the next."""
        reader = asyncio.current_task()
        assert reader is not None
        self._heard_at, self._expected_by = self._clock.monotonic(), None
        silence = ""

        async def watch_the_time() -> None:
            nonlocal silence
            while not (silence := self._silence()):
                left = self._heard_at + self._settings.stall_seconds - self._clock.monotonic()
                await self._clock.sleep(min(left, _SECONDS_BETWEEN_LOOKS[self._is_written]))
            reader.cancel()

        watcher = asyncio.create_task(watch_the_time(), name=f"stall watch of {self._path}")
        try:
            yield
        except asyncio.CancelledError:
            if silence and reader.uncancel() == 0:
                self.stats.is_silent = self._needs_list = True
                self._lacks_a_write = self._expected_by is not None
                self._changes_until_silence = self.replica.changes
                raise RequestTimeout(f"the watch of {self._path} {silence}", may_have_been_processed=True) from None
            raise
        finally:
            watcher.cancel()
            await asyncio.wait([watcher])

    def _silence(self) -> str:
        """What is wrong with an open watch; empty if nothing is."""
        now, settings = self._clock.monotonic(), self._settings
        if now >= self._heard_at + settings.stall_seconds:
            return f"was silent for {settings.stall_seconds:g} s"
        if self._expected_by is not None and now >= self._expected_by:
            return f"did not show a write within {settings.answer_seconds:g} s"
        return ""
