"""Proof that an open watch has shown everything that was written until now, so that nothing need be listed again.

A list of one object is answered with the version of the whole store, which no write before it is newer than. A watch
shows changes in the order of their versions; so once it has shown a change, or a bookmark, of that version or a later
one, it has shown everything up to then. Versions are compared as numbers, which Kubernetes guarantees since 1.35 and
stores in etcd always were. Where they are no numbers, where the store is older than what the watch has shown (etcd was
restored), and where the watch does not get there soon, there is no proof.

Among thousands of pods some change follows within moments. Where nothing changes it takes a bookmark, which servers
send once a minute, and shortly before a watch ends: so one that ends soon is asked for (`BRIEF_WATCH_SECONDS`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bayplan.client.errors import ClientError
from bayplan.observe.clock import Clock

__all__ = ["BRIEF_WATCH_SECONDS", "WatchProof"]

BRIEF_WATCH_SECONDS = 4
"""kube-apiserver sends a bookmark about two seconds before the end."""
_PATIENCE_SECONDS = BRIEF_WATCH_SECONDS + 0.5


class WatchProof:
    """One attempt at a time: `begin`, then `pass_version` with each version that the watch shows while `is_open`."""

    def __init__(
        self,
        current_version: Callable[[], Awaitable[str]],
        shown_version: Callable[[], str],
        *,
        clock: Clock,
        on_proved: Callable[[float], None],
        on_failed: Callable[[], None],
    ) -> None:
        """`current_version` asks the server, `shown_version` is the last that the watch showed. `on_proved` is called
        with the moment, by the monotonic clock, until which everything is known."""
        self._current_version = current_version
        self._shown_version = shown_version
        self._clock = clock
        self._on_proved = on_proved
        self._on_failed = on_failed
        self._attempt: asyncio.Task[None] | None = None
        self._began = 0.0
        self._wanted: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether a version is known that the watch has yet to reach."""
        return self._wanted is not None

    def begin(self) -> None:
        self.end()
        self._attempt = asyncio.create_task(self._try(), name="proof of a watch")

    def end(self) -> None:
        """Give up, without a word."""
        self._wanted = None
        if self._attempt is not None:
            self._attempt.cancel()
            self._attempt = None

    def pass_version(self, version: str) -> None:
        """The watch has shown this version."""
        number = _number(version)
        if self._wanted is not None and number is not None and number >= self._wanted:
            began = self._began
            self.end()
            self._on_proved(began)

    async def _try(self) -> None:
        began = self._clock.monotonic()
        before = _number(self._shown_version())
        try:
            wanted = _number(await self._current_version())
        except ClientError:
            wanted = None
        if before is not None and wanted is not None and wanted >= before:
            self._began, self._wanted = began, wanted
            self.pass_version(self._shown_version())
            await self._clock.sleep(_PATIENCE_SECONDS)
        self._wanted = self._attempt = None
        self._on_failed()


def _number(version: str) -> int | None:
    return int(version) if version.isascii() and version.isdigit() else None
