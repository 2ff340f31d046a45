"""One moment of a recording: the cluster as it was for one decision, and a pytest file that decides again on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from pprint import pformat
from typing import Any

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.settings import Settings
from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.sim.compare import Choice, choice_of
from bayplan.sim.engine.simulation import Simulation
from bayplan.sim.recording.bindings import BindingReplay, BindingReport
from bayplan.sim.recording.entries import ObjectTypes, PodDecided, RecordingHeader
from bayplan.sim.recording.file import RecordingError
from bayplan.sim.recording.follower import watched_by
from bayplan.sim.recording.replay import Replay, ReplayOutcome
from bayplan.sim.recording.sessions import recorded_settings, sessions

__all__ = ["Moment", "find_moment", "list_decisions", "pytest_source"]

_replace = msgspec.structs.replace


@dataclass(kw_only=True)
class Moment:
    """What was there when a pod was decided about."""

    header: RecordingHeader
    time: float
    then: PodDecided
    """Of a recording by a follower, the binding that it saw."""
    pod: Pod
    objects: list[KubeObject]
    """Nodes, pods that count on their nodes, assumed ones included, pods with a nomination, and everything else."""
    settings: Settings
    now: Choice
    """The same decision, made again."""


def list_decisions(path: Path) -> list[PodDecided]:
    """Every decision of a recording in order; of one by a follower, every binding."""
    found: list[PodDecided] = []
    for session in sessions(path):
        if session.header.by == "scheduler":
            found += [placed.entry for placed in session.entries if isinstance(placed.entry, PodDecided)]
        else:
            settings = recorded_settings(session.header, source=str(path))
            report = BindingReport()
            BindingReplay(session, settings, report).run()
            found += [PodDecided(seen.time, seen.pod, "", 1, seen.node) for seen in report.bindings]
    return found


def find_moment(path: Path, number: int, then: PodDecided) -> Moment:
    """The moment of the decision with this place in `list_decisions`. Raises RecordingError."""
    left = number
    for session in sessions(path):
        settings = recorded_settings(session.header, source=str(path))
        capture = _Capture(session.header, settings, then, left)
        outcome = ReplayOutcome()
        if session.header.by == "scheduler":
            replay = Replay(session, settings, outcome, observers=[capture])
        else:
            replay = BindingReplay(session, settings, BindingReport(), on_binding=capture.take)
        capture.simulation = replay
        replay.run()
        if capture.moment is not None:
            return capture.moment
        if outcome.difference is not None:
            break
        left = capture.left
    hint = f"`bayplan simulate {path}` shows where"
    raise RecordingError(f"the replay differs before decision {number + 1}\nhint: {hint}", source=str(path))


class _Capture(Observer):
    """Takes the state down at one decision, and ends the replay."""

    def __init__(self, header: RecordingHeader, settings: Settings, then: PodDecided, left: int) -> None:
        self._header = header
        self._settings = settings
        self._then = then
        self.left = left
        self.simulation: Simulation | None = None
        self.moment: Moment | None = None

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        self.take(queued, decision)

    def take(self, queued: QueuedPod, decision: Decision) -> None:
        self.left -= 1
        simulation = self.simulation
        if self.left != -1 or simulation is None:
            return
        self.moment = Moment(
            header=self._header,
            time=simulation.clock.now(),
            then=self._then,
            pod=_with_nomination(queued.info.pod, simulation.core.nominations.node_of(queued.uid)),
            objects=_state(simulation, queued.uid),
            settings=self._settings,
            now=choice_of(simulation, "now", queued, decision),
        )
        simulation.stop()


def _state(simulation: Simulation, uid: str) -> list[KubeObject]:
    nominations = simulation.core.nominations
    placed = [
        info.pod
        if info.pod.spec.node_name
        else _replace(info.pod, spec=_replace(info.pod.spec, node_name=info.node_name))
        for info in simulation.core.cache.pods()
    ]
    nominated = [
        _with_nomination(info.pod, name)
        for name in sorted(nominations.nominated_nodes())
        for info in nominations.nominated_pods(name)
        if info.uid != uid
    ]
    return [*simulation.world.nodes.values(), *simulation.world.objects.values(), *placed, *nominated]


def _with_nomination(pod: Pod, node: str) -> Pod:
    return _replace(pod, status=_replace(pod.status, nominated_node_name=node))


# The test

_TEST = '''\
"""{pod} at {time}, from a recording; written by `bayplan replay --pytest`.

Recorded by a {by} of bayplan {version}. Then: {then}
"""

from bayplan.testing.recorded import recorded_moment

CONFIG = {config}

PLUGINS = {plugins}

POD = """{pod_line}"""

STATE = """\\
{state}"""


def test_{name}() -> None:
    outcome = recorded_moment(STATE, POD, config=CONFIG, plugins=PLUGINS)

{assertions}
'''


def pytest_source(moment: Moment) -> str:
    """A pytest file that makes the decision again, and expects it to come out as it does now."""
    types = ObjectTypes(watched_by(moment.settings))
    lines = [_line(types, item) for item in moment.objects]
    time = datetime.fromtimestamp(moment.time, UTC).isoformat(timespec="milliseconds")
    return _TEST.format(
        pod=_in_words(moment.pod.key),
        time=time,
        by=_in_words(moment.header.by),
        version=_in_words(moment.header.bayplan or "?"),
        then=_in_words(f"-> {moment.then.node}" if moment.then.node else moment.then.message),
        config=pformat(_decisive(moment.header.config), width=116, sort_dicts=False),
        plugins=pformat(list(moment.header.plugins)),
        pod_line=_escaped(_line(types, moment.pod)),
        state="".join(f"{_escaped(line)}\n" for line in lines),
        name=re.sub(r"\W+", "_", f"{moment.pod.key}_{time[:19]}", flags=re.ASCII).lower(),
        assertions=_assertions(moment),
    )


def _decisive(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that decisions depend on."""
    wanted = ("apiVersion", "kind", "percentageOfNodesToScore", "profiles")
    return {key: value for key, value in config.items() if key in wanted}


def _line(types: ObjectTypes, item: KubeObject) -> str:
    return msgspec.json.encode((types.name_of(type(item)), item)).decode()


def _in_words(text: str) -> str:
    """For a docstring; a recording may come from anywhere."""
    joined = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in joined).replace("\\", "/").replace('"', "'")


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _assertions(moment: Moment) -> str:
    line = moment.now.line
    if not line.node:
        return f"    assert not outcome.is_scheduled\n    assert outcome.message == {line.message!r}"
    return f"    assert {line.node!r} in (outcome.best or (outcome.node_name,))"
