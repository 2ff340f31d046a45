"""Writes down what a scheduler works on and decides, or what a follower sees, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from bayplan import __version__
from bayplan.app.live import ChangeRecorder
from bayplan.app.settings import Settings
from bayplan.config.effective import effective_dict
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.points import leading_pair, weighted_points
from bayplan.observe.clock import Clock
from bayplan.sim.recording.entries import (
    FORMAT,
    VERSION,
    AttemptEnded,
    ClusterRead,
    NewConfiguration,
    ObjectGone,
    ObjectTypes,
    PodDecided,
    RecordingHeader,
)
from bayplan.sim.recording.file import RecordingFile

__all__ = ["RecordingWriter"]

Handler = Callable[[Any, Any], None]


class RecordingWriter(ChangeRecorder):
    """Everything here runs inside the loop, and only hands lines over."""

    def __init__(self, file: RecordingFile, clock: Clock, *, plugins: Sequence[str] = ()) -> None:
        self._file = file
        self._now = clock.now
        self._plugins = tuple(plugins)
        self._types = ObjectTypes()
        self._encode = msgspec.json.Encoder().encode
        self._rejected = ""

    @property
    def file(self) -> RecordingFile:
        return self._file

    def begin(self, settings: Settings, kinds: Iterable[str], *, seed: int = 0, by: str = "scheduler") -> None:
        """Begin a session."""
        header = RecordingHeader(
            format=FORMAT,
            version=VERSION,
            by=by,
            bayplan=__version__,
            time=self._now(),
            seed=seed,
            config=effective_dict(settings.config, settings.profiles),
            plugins=self._plugins,
            plugin_digests=plugin_digests(settings),
            kinds=tuple(kinds),
        )
        self._file.append(self._encode(header))

    def reloaded(self, settings: Settings) -> None:
        """Another configuration is in force."""
        config = effective_dict(settings.config, settings.profiles)
        self._write(NewConfiguration(self._now(), config, self._plugins, plugin_digests(settings)))

    def cluster_read(self) -> None:
        """All objects that were there at the start are written."""
        self._write(ClusterRead(self._now()))

    def around(self, handle: Handler) -> Handler:
        """The handler of changes, with each written down before it is handled."""
        write, encode, now, name_of = self._file.append, self._encode, self._now, self._types.name_of

        def changed(old: Any, new: Any) -> None:
            try:
                if new is not None:
                    write(encode(("+", now(), name_of(type(new)), new)))
                elif old is not None:
                    write(encode(ObjectGone(now(), name_of(type(old)), old.key)))
            except Exception as error:
                self._file.end(f"an object cannot be written: {error}")
            handle(old, new)

        return changed

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        nomination = decision.nomination
        self._rejected = "" if decision.node_name else queued.uid
        self._write(
            PodDecided(
                self._now(),
                queued.key,
                queued.uid,
                queued.attempts,
                decision.node_name,
                decision.message,
                (nomination.nominated_node_name or "") if nomination is not None else "",
                tuple(victim.key for victim in nomination.victims) if nomination is not None else (),
                decision.feasible_nodes,
                decision.total,
                decision.ties,
                _best_nodes(decision),
            )
        )

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        self._write(AttemptEnded(self._now(), queued.key, queued.uid))

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        if queued.uid != self._rejected:
            self._write(AttemptEnded(self._now(), queued.key, queued.uid, status.message or status.code.label))
        self._rejected = ""

    def _write(self, entry: msgspec.Struct) -> None:
        try:
            self._file.append(self._encode(entry))
        except (UnicodeEncodeError, msgspec.MsgspecError):
            # Half a letter in what a plugin said; the decision counts, its words do not.
            if isinstance(entry, PodDecided):
                self._file.append(self._encode(msgspec.structs.replace(entry, message=ascii(entry.message))))
            elif isinstance(entry, AttemptEnded):
                self._file.append(self._encode(msgspec.structs.replace(entry, error=ascii(entry.error))))


def _best_nodes(decision: Decision) -> tuple[tuple[str, int, dict[str, int]], ...]:
    """The node that was taken and the runner-up, with their points."""
    plan = decision.plan
    if plan is None or decision.tied is None:
        return ()
    calls, chosen, runner_up, total, others = leading_pair(decision, plan)
    first = (decision.node_name, decision.total, weighted_points(calls, chosen))
    return (first, (runner_up, total, weighted_points(calls, others))) if runner_up else (first,)


def plugin_digests(settings: Settings) -> dict[str, str]:
    """SHA-256 of the code of plugins that do not come with bayplan, by file or folder."""
    return {place: _digest(Path(place)) for place in settings.plugin_places}


def _digest(place: Path) -> str:
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    total = sha256()
    for file in files:
        try:
            total.update(file.read_bytes())
        except OSError:
            return ""
    return total.hexdigest()
