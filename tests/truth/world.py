"""A generated case at hand: what it came to, and what came of every experiment with it so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.explain.claims.base import Edit
from bayplan.explain.offline.cases import evaluate_case
from bayplan.loop.record import DecisionRecord
from tests.truth.changes import Change, key_of
from tests.truth.documents import SUBJECT, Case, JsonObject
from tests.truth.experiments import Outcome, observe

__all__ = ["World", "all_hold", "evaluated"]


class World:
    """A case, what it came to, and every experiment with it so far."""

    def __init__(self, case: Case, base: Outcome, *, places: Sequence[str] = ()) -> None:
        self.case = case
        self.base = base
        self.places = places
        """Where in the queue the subject was when it was asked about."""
        self.asks_extenders = True
        self._known: dict[bytes, Outcome] = {}

    @property
    def experiments(self) -> int:
        return len(self._known)

    async def after(self, change: Change) -> Outcome:
        if not self.asks_extenders:
            change = msgspec.structs.replace(change, without_extenders=True)
        key = msgspec.json.encode(change)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = await observe(self.case, change)
        return found

    async def again(
        self, *, edits: Sequence[Edit] = (), drained: Sequence[str] = (SUBJECT,), alone: bool = False, **changes: Any
    ) -> Outcome:
        """The subject, or some pods, scheduled anew beside those that wait, with everything else where it came to be:
        what a user sees who does something about a cluster that he has asked about. No other pod waits if the subject
        is `alone`."""
        nodes = self.base.nodes
        deleted = {edit.name for edit in edits if edit.kind == "deletePod"}
        moved = {*drained, *deleted}
        others = tuple((pod, node) for pod, node in sorted(nodes.items()) if node and pod not in moved)
        changes |= {"drained": tuple(drained)} if tuple(drained) != (SUBJECT,) else {}
        keys = [key_of(pod) for pod in self.case.pods]
        gone = tuple(key for key in keys if key not in nodes or (alone and not nodes[key] and key != SUBJECT))
        waiting = [key for key in keys if nodes.get(key) == "" and key not in gone]
        in_line = [key for key in self.base.line if key in waiting]
        changes = {"nominated": self.base.nominations, **changes}
        if in_line != [key for key in waiting if key in in_line]:
            changes = {"line": tuple(in_line), **changes}
        return await self.after(Change(edits=tuple(edits), gone=gone, placed=others, **changes))

    def ahead_of(self, pod: str) -> list[str]:
        """Pods as important that wait and have their turns first."""
        pods = {key_of(each): each["spec"] for each in self.case.pods}
        before = self.base.line[: self.base.line.index(pod)] if pod in self.base.line else self.base.line
        priority = pods[pod].get("priorityClassName")
        return [
            key
            for key in before
            if pods[key].get("priorityClassName") == priority and not pods[key].get("schedulingGates")
        ]

    async def let_go(self) -> Outcome:
        """What it comes to where nothing keeps pods that have to leave."""
        patch = {"metadata": {"finalizers": None}}
        held = [key_of(pod) for pod in self.case.pods if pod["metadata"].get("finalizers")]
        return await self.after(Change(edits=tuple(Edit(kind="patchPod", name=key, patch=patch) for key in held)))

    @property
    def first(self) -> DecisionRecord | None:
        """The subject's first attempt."""
        return self.base.first

    @property
    def subject(self) -> JsonObject:
        return next(pod for pod in self.case.pods if key_of(pod) == SUBJECT)


def all_hold(*checks: tuple[bool, str]) -> str:
    return "; ".join(what for holds, what in checks if not holds)


def evaluated(
    case: Case,
    *,
    without: Sequence[str] = (),
    little: bool = False,
    subject: str = SUBJECT,
    nodes: Mapping[str, str] | None = None,
) -> JsonObject | None:
    """The case as the reference cases are evaluated, from its documents; None where another plugin takes part.

    `little` lets the subject ask next to nothing; `nodes` says where pods are, if not where they began.
    """
    if case.plugin or any("resourceClaims" in pod["spec"] for pod in case.pods):
        return None
    began = {key_of(pod): pod["spec"].get("nodeName", "") for pod in case.pods}
    places = began if nodes is None else nodes
    others = [
        {**pod, "spec": {**pod["spec"], "nodeName": places[key_of(pod)]}}
        for pod in case.pods
        if key_of(pod) not in (subject, *without) and places.get(key_of(pod))
    ]
    # Those that are nominated count on their nodes, if they are as important.
    others += [pod for pod in case.pods if key_of(pod) != subject and pod.get("status", {}).get("nominatedNodeName")]
    asked = next(pod for pod in case.pods if key_of(pod) == subject)
    if little:
        container = {**asked["spec"]["containers"][0], "resources": {"requests": {"cpu": "1m"}}}
        asked = {**asked, "spec": {**asked["spec"], "containers": [container], "initContainers": [], "overhead": {}}}
    # Admission alone reads the one, controllers alone the other.
    objects = [item for item in case.objects if item["kind"] not in ("RuntimeClass", "DaemonSet")]
    result = evaluate_case({"objects": [*case.nodes, *objects, *others], "pod": asked})
    assert isinstance(result, dict)  # a single pod
    return result
