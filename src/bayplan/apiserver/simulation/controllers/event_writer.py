"""Events of the simulated controllers, so that `kubectl describe` tells what happened to a workload.

As chatty as the real controllers and no more: the same event again is counted, from the eleventh of a kind about one
object on they are combined into one, and an object that makes events without end is heard 25 times and then once in
five minutes. What cannot be written is let go: no controller waits for its events.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from bayplan.apiserver.objects.writing import Caller
from bayplan.apiserver.protocol.encoding import Json, timestamp
from bayplan.apiserver.protocol.errors import ApiError
from bayplan.apiserver.server.api import Api
from bayplan.apiserver.server.own_objects import create

_BURST = 25
_REFILL_SECONDS = 300.0
_SIMILAR = 10
_OBJECTS = 4096
_COMBINED = "(combined from similar events): "


@dataclass(slots=True)
class _Heard:
    """What was said about one object."""

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
        self._heard: OrderedDict[str, _Heard] = OrderedDict()
        self._count = 0

    def write(self, about: Json, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Say that something happened to an object."""
        now = self._api.clock.now()
        heard = self._of(about["metadata"]["uid"], now)
        if not _take_token(heard, now):
            return
        what = (reason, message)
        if what not in heard.names:
            heard.kinds[reason] = heard.kinds.get(reason, 0) + 1
            if heard.kinds[reason] > _SIMILAR:
                what, message = (reason, ""), _COMBINED + message
        try:
            if not self._count_again(about, heard.names.get(what, ""), message, timestamp(now)):
                heard.names[what] = self._create(about, reason, message, timestamp(now), is_warning=is_warning)
        except ApiError:  # its namespace is going away, say
            heard.names.pop(what, None)

    def _of(self, uid: str, now: float) -> _Heard:
        heard = self._heard.get(uid)
        if heard is None:
            heard = self._heard[uid] = _Heard(at=now)
            if len(self._heard) > _OBJECTS:
                self._heard.popitem(last=False)
        self._heard.move_to_end(uid)
        return heard

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


def _take_token(heard: _Heard, now: float) -> bool:
    heard.tokens = min(_BURST, heard.tokens + max(0.0, now - heard.at) / _REFILL_SECONDS)
    heard.at = now
    if heard.tokens < 1:
        return False
    heard.tokens -= 1
    return True
