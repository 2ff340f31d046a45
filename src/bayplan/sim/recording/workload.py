"""A recording as a workload: the same pods come and go at the same times, and a policy decides anew where they run.

A pod runs for as long as it ran then, counted from its binding; one that was evicted, or that was there at the end,
runs on. Nodes and other objects change when they changed. Pods of other schedulers are where they were. What a policy
could have changed beside the places of pods (a controller that reacts to pending pods, for one) stays as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import floor
from pathlib import Path

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.frameworks import watched_resources
from bayplan.sim.engine.simulation import Simulation
from bayplan.sim.recording.entries import ClusterRead, ObjectChanged, ObjectGone, ObjectTypes, PodDecided
from bayplan.sim.recording.file import RecordingError
from bayplan.sim.recording.sessions import sessions

__all__ = ["RecordedWorkload"]

_AFTER_THE_END_SECONDS = 10.0
"""For pods that came last to be tried."""
_replace = msgspec.structs.replace


class _Life(msgspec.Struct):
    """Of a pod, in times of the recording."""

    first: Pod
    bound: float | None = None
    gone: float | None = None
    is_victim: bool = False

    @property
    def seconds(self) -> float | None:
        if self.bound is None or self.gone is None or self.is_victim:
            return None
        return max(self.gone - self.bound, 0.0)


class RecordedWorkload:
    def __init__(self, path: Path) -> None:
        """Read the recording once. Raises RecordingError."""
        self._path = path
        self.start = 0.0
        last = 0.0
        for session in sessions(path):
            self.start = self.start or session.header.time
            for where, entry in session.entries:
                last = max(last, getattr(entry, "time", 0.0))
                if isinstance(entry, ObjectChanged):
                    _check(entry, str(path), where)
        self.start = float(floor(self.start))
        self.seconds = max(last - self.start, 0.0) + _AFTER_THE_END_SECONDS

    def begin(self, simulation: Simulation) -> None:
        _Plan(simulation, self._path, self.start).fill()


_CORE_TYPES = ObjectTypes()


def _check(entry: ObjectChanged, source: str, where: str) -> None:
    kind = _CORE_TYPES.get(entry.kind)
    try:
        if kind is not None:
            msgspec.json.decode(entry.object, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RecordingError(f"is damaged: {error}", source=source, where=where) from error


_Key = tuple[type[KubeObject], str, str]


class _Plan:
    """Puts a recording on the timeline of a simulation."""

    def __init__(self, simulation: Simulation, path: Path, start: float) -> None:
        self._simulation = simulation
        self._path = path
        self._start = start
        self._types = ObjectTypes(watched_resources(simulation.core.frameworks))
        self._objects: dict[_Key, KubeObject] = {}
        self._lives: dict[str, _Life] = {}
        self._victims: set[str] = set()
        self._at_start: list[KubeObject] = []
        self._later: list[tuple[float, KubeObject | None, KubeObject | None]] = []

    def fill(self) -> None:
        for time, old, new, is_at_start in self._changes():
            self._note_life(time, old, new)
            if is_at_start and new is not None:
                self._at_start.append(new)
            elif not is_at_start:
                self._later.append((time, old, new))
        for life in self._lives.values():
            life.is_victim = life.first.key in self._victims
        self._load()
        for time, old, new in self._later:
            self._plan(time - self._start, old, new)

    def _changes(self) -> Iterator[tuple[float, KubeObject | None, KubeObject | None, bool]]:
        """(time, old, new, whether it was there at the start). What a later session no longer finds is gone."""
        is_at_start = True
        for session in sessions(self._path):
            listed: set[_Key] | None = set()
            for _, entry in session.entries:
                if isinstance(entry, ObjectChanged | ObjectGone):
                    for key, old, new in self._change(entry):
                        if listed is not None:
                            listed.add(key)
                        yield entry.time, old, new, is_at_start
                elif isinstance(entry, ClusterRead):
                    gone = [] if listed is None else [key for key in self._objects if key not in listed]
                    for key in gone:
                        yield entry.time, self._objects.pop(key), None, False
                    listed, is_at_start = None, False
                elif isinstance(entry, PodDecided):
                    self._victims.update(entry.victims)

    def _change(self, entry: ObjectChanged | ObjectGone) -> Iterator[tuple[_Key, KubeObject | None, KubeObject | None]]:
        kind = self._types.get(entry.kind)
        if kind is None:
            return
        if isinstance(entry, ObjectChanged):
            item = msgspec.json.decode(entry.object, type=kind)
            key = (kind, item.namespace, item.name)
            yield key, self._objects.get(key), item
            self._objects[key] = item
        else:
            namespace, _, name = entry.key.rpartition("/")
            key = (kind, namespace, name)
            if key in self._objects:
                yield key, self._objects.pop(key), None

    def _note_life(self, time: float, old: KubeObject | None, new: KubeObject | None) -> None:
        pod = new if new is not None else old
        if not isinstance(pod, Pod):
            return
        life = self._lives.get(pod.uid)
        if life is None:
            life = self._lives[pod.uid] = _Life(first=pod)
        if new is None:
            life.gone = time
        elif pod.spec.node_name and life.bound is None:
            life.bound = time

    def _load(self) -> None:
        simulation = self._simulation
        latest = {(type(item), item.namespace, item.name): item for item in self._at_start}
        pods = [item for item in latest.values() if isinstance(item, Pod)]
        for item in latest.values():
            if not isinstance(item, Pod):
                simulation.world.put(item)
        for pod in pods:
            if pod.spec.node_name:
                simulation.world.put(pod)
            elif self._is_ours(pod):
                simulation.submit(pod, duration_seconds=self._lives[pod.uid].seconds)
        simulation.core.cache.fill_groups(pods)

    def _is_ours(self, pod: Pod) -> bool:
        """Whether the scheduler placed it: it came without a node, and names one of the profiles."""
        first = self._lives[pod.uid].first
        return not first.spec.node_name and first.spec.scheduler_name in self._simulation.core.profiles

    def _plan(self, time: float, old: KubeObject | None, new: KubeObject | None) -> None:
        pod = new if new is not None else old
        if isinstance(pod, Pod):
            action = self._pod_action(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)
        else:
            action = self._object_action(old, new)
        if action is not None:
            self._simulation.timeline.at(max(time, 0.0), action)

    def _object_action(self, old: KubeObject | None, new: KubeObject | None) -> Callable[[], None] | None:
        world = self._simulation.world
        if new is not None:
            return lambda: world.put(new)
        return None if old is None else (lambda: self._remove(old))

    def _remove(self, item: KubeObject) -> None:
        current = self._simulation.world.find(type(item), item.name, item.namespace)
        if current is not None and current.uid == item.uid:
            self._simulation.world.remove(current)

    def _pod_action(self, old: Pod | None, new: Pod | None) -> Callable[[], None] | None:
        pod = new if new is not None else old
        assert pod is not None
        simulation, life = self._simulation, self._lives[pod.uid]
        if not self._is_ours(pod):
            if new is None:
                return lambda: self._remove(pod)
            return (lambda: simulation.world.put(new)) if new.spec.node_name else None
        if new is None:
            was_left_alone = life.bound is None and not life.is_victim
            return (lambda: simulation.delete(pod, "Deleted")) if was_left_alone else None
        if old is None:
            return lambda: simulation.submit(_without_nomination(new), duration_seconds=life.seconds)
        if new.spec.node_name or (old.spec == new.spec and old.labels == new.labels):
            return None
        return lambda: self._update(new)

    def _update(self, new: Pod) -> None:
        """A pod that waits was changed: a gate was lifted, a label set."""
        world = self._simulation.world
        current = world.pod(new.namespace, new.name)
        if current is not None and current.uid == new.uid and not current.spec.node_name:
            world.put(_replace(new, status=current.status))


def _without_nomination(pod: Pod) -> Pod:
    return _replace(pod, status=_replace(pod.status, nominated_node_name=""))
