"""Judges the bindings that a follower saw: what would this policy have decided on the state that was seen?

A follower sees a binding some time after it was decided. The state just before is that of the decision if nothing else
changed since the pod was last seen waiting; otherwise it is not certain, and the count of such changes is given. Nodes
with equal points are equally good: another scheduler breaks such ties by other dice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.settings import Settings
from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decision, decide
from bayplan.sim.compare import Choice, choice_of
from bayplan.sim.ledger import DecisionLine
from bayplan.sim.recording.entries import ObjectGone
from bayplan.sim.recording.replay import Replay, ReplayOutcome
from bayplan.sim.recording.sessions import RecordedSession, recorded_settings, sessions

__all__ = ["BindingReplay", "BindingReport", "SeenBinding", "judge_bindings"]

SAME, TIE, OTHER = "same node", "equally good", "another node"


class SeenBinding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    time: float
    pod: str
    node: str
    verdict: str
    """`same node`, `equally good` or `another node`, by the policy of now."""
    now: str
    """The node that the policy takes; empty for none."""
    message: str = ""
    """Why it takes none."""
    changes_between: int = 0
    """Of other objects, since the pod was last seen waiting: 0 makes the state certain."""

    @property
    def is_certain(self) -> bool:
        return self.changes_between == 0


class BindingReport(msgspec.Struct, kw_only=True, rename="camel"):
    bindings: list[SeenBinding] = []
    first_difference: Choice | None = None
    """What the policy says at the first certain binding to another node."""
    notes: list[str] = []

    def count(self, verdict: str, *, is_certain: bool | None = None) -> int:
        return sum(each.verdict == verdict and is_certain in (None, each.is_certain) for each in self.bindings)


def judge_bindings(path: Path, *, settings: Settings | None = None) -> BindingReport:
    """Raises RecordingError and SettingsError."""
    report = BindingReport()
    for session in sessions(path, note=report.notes.append):
        policy = settings or recorded_settings(session.header, source=str(path))
        BindingReplay(session, policy, report).run()
    return report


class BindingReplay(Replay):
    """Goes through a session and decides about each pod right before its binding was seen. Nothing is acted on."""

    def __init__(
        self,
        session: RecordedSession,
        settings: Settings,
        report: BindingReport,
        *,
        on_binding: Callable[[QueuedPod, Decision], None] = lambda *_: None,
    ) -> None:
        outcome = ReplayOutcome()
        outcome.notes = report.notes
        super().__init__(session, settings, outcome)
        self._report = report
        self._on_binding = on_binding
        self._changes = 0
        self._seen: dict[str, int] = {}

    def take_in(self, item: KubeObject) -> None:
        known = self.world.find(type(item), item.name, item.namespace)
        if isinstance(item, Pod):
            if isinstance(known, Pod) and known.uid == item.uid and item.spec.node_name and not known.spec.node_name:
                self._judge(known, item.spec.node_name)
            if item.spec.node_name:
                self._seen.pop(item.uid, None)
        if not _is_alike(known, item):
            self._changes += 1
        if isinstance(item, Pod) and not item.spec.node_name:
            self._seen[item.uid] = self._changes
        super().take_in(item)

    def _remove(self, entry: ObjectGone) -> None:
        self._changes += 1
        super()._remove(entry)

    def _judge(self, pod: Pod, node: str) -> None:
        profile = self.core.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return
        queued = QueuedPod(self.core.cache.info(pod), self.clock.now())
        decision = decide(replace(profile.decider, sampling=None), queued.info)
        verdict = self._verdict(decision, node)
        seen = SeenBinding(
            time=self.clock.now(),
            pod=pod.key,
            node=node,
            verdict=verdict,
            now=decision.node_name,
            message=decision.message,
            changes_between=self._changes - self._seen.get(pod.uid, self._changes),
        )
        self._report.bindings.append(seen)
        if verdict == OTHER and seen.is_certain and self._report.first_difference is None:
            choice = choice_of(self, "now", queued, decision, also=node)
            line = DecisionLine(seen.time, seen.pod, seen.now, seen.message)
            self._report.first_difference = msgspec.structs.replace(choice, line=line)
        self._on_binding(queued, decision)

    def _verdict(self, decision: Decision, node: str) -> str:
        if decision.node_name == node:
            return SAME
        row = self.core.cache.cluster.nodes.row_of.get(node)
        is_tied = decision.tied is not None and row is not None and row in decision.tied.tolist()
        return TIE if is_tied else OTHER


def _is_alike(old: KubeObject | None, new: KubeObject) -> bool:
    """Whether nothing but the version changed, as when a kubelet reports that it is alive."""
    if old is None:
        return False
    metadata = msgspec.structs.replace(old.metadata, resource_version=new.metadata.resource_version)
    return msgspec.structs.replace(old, metadata=metadata) == new
