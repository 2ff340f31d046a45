"""Events of the simulated controllers, shown by `kubectl describe`.

Limited as in client-go: a repeated event is counted, from the eleventh event with one reason about one object on they
are combined, and an object gets at most 25 events in a burst and then one in five minutes. An event that cannot be
written is dropped; no controller waits for its events.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from bayplan.apiserver.objects.writing import Caller
from bayplan.apiserver.protocol.encoding import Json, timestamp
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.server.api import Api
from bayplan.apiserver.server.own_objects import create

_BURST = 25
_REFILL_SECONDS = 300.0
_SIMILAR = 10
_OBJECTS = 4096
_COMBINED = "(combined from similar events): "


@dataclass(slots=True)
class _ObjectEvents:
    """The events written about one object."""

    tokens: float = _BURST
    at: float = 0.0
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """The event's name by reason and message; the message is empty for the combined one."""
    kinds: dict[str, int] = field(default_factory=dict)


class EventWriter:
    """The events of one controller."""

    def __init__(self, api: Api, component: str, caller: Caller) -> None:
        self._api = api
        self._component = component
        self._caller = caller
        self._written: OrderedDict[str, _ObjectEvents] = OrderedDict()
        self._count = 0

    def write(self, about: Json, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Write an event about an object."""
        now = self._api.clock.now()
        written = self._of(about["metadata"]["uid"], now)
        if not _take_token(written, now):
            return
        what = (reason, message)
        if what not in written.names:
            written.kinds[reason] = written.kinds.get(reason, 0) + 1
            if written.kinds[reason] > _SIMILAR:
                what, message = (reason, ""), _COMBINED + message
        try:
            if not self._count_again(about, written.names.get(what, ""), message, timestamp(now)):
                written.names[what] = self._create(about, reason, message, timestamp(now), is_warning=is_warning)
        except RequestRefused:  # for instance, its namespace is being deleted
            written.names.pop(what, None)

    def _of(self, uid: str, now: float) -> _ObjectEvents:
        written = self._written.get(uid)
        if written is None:
            written = self._written[uid] = _ObjectEvents(at=now)
            if len(self._written) > _OBJECTS:
                self._written.popitem(last=False)
        self._written.move_to_end(uid)
        return written

    def _count_again(self, about: Json, name: str, message: str, now: str) -> bool:
        namespace = _namespace(about)
        if not name or self._api.store.get("events", namespace, name) is None:
            return False

        def change(event: Json) -> Json:
            return event | {"count": event.get("count", 1) + 1, "lastTimestamp": now, "message": message}

        self._api.objects.update(self._api.kinds.resource("events"), namespace, name, change, self._caller)
        return True

    def _create(self, about: Json, reason: str, message: str, now: str, *, is_warning: bool) -> str:
        self._count += 1
        metadata = about["metadata"]
        name = f"{metadata['name']}.{int(self._api.clock.now() * 1e6):x}{self._count:04x}"
        reference = {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": metadata["name"]}
        reference |= {"uid": metadata["uid"], "resourceVersion": metadata.get("resourceVersion", "")}
        if metadata.get("namespace"):
            reference["namespace"] = metadata["namespace"]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(about)},
            "involvedObject": reference,
            "reason": reason,
            "message": message,
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        create(self._api, event, self._caller)
        return name


def _namespace(about: Json) -> str:
    return str(about["metadata"].get("namespace") or "default")


def _take_token(written: _ObjectEvents, now: float) -> bool:
    written.tokens = min(_BURST, written.tokens + max(0.0, now - written.at) / _REFILL_SECONDS)
    written.at = now
    if written.tokens < 1:
        return False
    written.tokens -= 1
    return True
