"""Injected faults of the in-process transport: which calls fail, break, or are delayed.

Counted per fault over the calls it matches, from one; nothing here is random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.exchange import Request

Match = Callable[[Request], bool]


@dataclass(slots=True)
class Fault:
    """One fault: at the `call`-th matching call, for `times` calls."""

    call: int
    match: Match
    times: int = 1
    status: Json | None = None
    """Answer with this Status instead."""
    breaks: bool = False
    """Lose the connection instead of answering."""
    after_write: bool = False
    """Let the server do its work first, and then lose its answer."""
    delay_seconds: float = 0.0
    seen: int = 0

    def strikes(self, request: Request) -> bool:
        if not self.match(request):
            return False
        self.seen += 1
        return self.call <= self.seen < self.call + self.times


@dataclass(slots=True)
class Faults:
    """The injected faults, in the order in which they were added."""

    _faults: list[Fault] = field(default_factory=list)

    def fail_call(
        self,
        call: int = 1,
        *,
        status: int = 500,
        reason: str = "InternalError",
        times: int = 1,
        match: Match | None = None,
        method: str = "",
        path: str = "",
        after_write: bool = False,
    ) -> None:
        """Answer the `call`-th matching call with an error Status."""
        document = errors.failure(status, reason, f"injected fault: {reason}")
        chosen = match or matching(method=method, path=path)
        self._faults.append(Fault(call, chosen, times, status=document, after_write=after_write))

    def break_call(
        self,
        call: int = 1,
        *,
        times: int = 1,
        match: Match | None = None,
        method: str = "",
        path: str = "",
        after_write: bool = False,
    ) -> None:
        """Lose the connection at the `call`-th matching call, before or after the server did its work."""
        chosen = match or matching(method=method, path=path)
        self._faults.append(Fault(call, chosen, times, breaks=True, after_write=after_write))

    def delay_call(
        self,
        call: int = 1,
        *,
        seconds: float,
        times: int = 1,
        match: Match | None = None,
        method: str = "",
        path: str = "",
    ) -> None:
        """Let the `call`-th matching call wait on the clock before the server sees it."""
        chosen = match or matching(method=method, path=path)
        self._faults.append(Fault(call, chosen, times, delay_seconds=seconds))

    def clear(self) -> None:
        self._faults.clear()

    def striking(self, request: Request) -> list[Fault]:
        return [fault for fault in self._faults if fault.strikes(request)]


def matching(*, method: str = "", path: str = "") -> Match:
    """Calls with this method and with this text in their path; empty means any."""
    return lambda request: (not method or request.method == method) and path in request.path
