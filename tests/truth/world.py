"""A generated case at hand: what it came to, and what came of every experiment with it so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.explain.cases import evaluate_case
from bayplan.explain.edits import Edit
from bayplan.loop.record import DecisionRecord
from tests.truth.documents import SUBJECT, Case, JsonObject
from tests.truth.experiments import Change, Outcome, key_of, observe

__all__ = ["World", "all_hold", "evaluated"]


class World:
    """A case, what it came to, and every experiment with it so far."""

    def __init__(self, case: Case, base: Outcome, *, places: Sequence[str] = ()) -> None:
        self.case = case
        self.base = base
        self.places = places
        """Where in the queue the subject was when it was asked about."""
        self._known: dict[bytes, Outcome] = {}

    @property
    def experiments(self) -> int:
        return len(self._known)

    async def after(self, change: Change) -> Outcome:
        key = msgspec.json.encode(change)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = await observe(self.case, change)
        return found

    async def again(self, **changes: Any) -> Outcome:
        """The subject alone scheduled anew, with everything else where it came to be."""
        nodes = self.base.nodes
        others = tuple((pod, node) for pod, node in sorted(nodes.items()) if node and pod != SUBJECT)
        gone = tuple(Edit(kind="deletePod", name=key_of(pod)) for pod in self.case.pods if key_of(pod) not in nodes)
        return await self.after(Change(edits=gone, placed=others, **changes))

    @property
    def first(self) -> DecisionRecord | None:
        """The subject's first attempt."""
        return self.base.first

    @property
    def subject(self) -> JsonObject:
        return next(pod for pod in self.case.pods if key_of(pod) == SUBJECT)


def all_hold(*checks: tuple[bool, str]) -> str:
    return "; ".join(what for holds, what in checks if not holds)


def evaluated(case: Case, *, without: Sequence[str] = (), little: bool = False) -> JsonObject | None:
    """The case as the reference cases are evaluated, from its documents; None where another plugin takes part.

    `little` lets the subject ask next to nothing."""
    if case.plugin or any("resourceClaims" in pod["spec"] for pod in case.pods):
        return None
    others = [pod for pod in case.pods if key_of(pod) not in (SUBJECT, *without) and pod["spec"].get("nodeName")]
    subject = next(pod for pod in case.pods if key_of(pod) == SUBJECT)
    if little:
        container = {**subject["spec"]["containers"][0], "resources": {"requests": {"cpu": "1m"}}}
        subject = {**subject, "spec": {**subject["spec"], "containers": [container]}}
    result = evaluate_case({"objects": [*case.nodes, *case.objects, *others], "pod": subject})
    assert isinstance(result, dict)  # a single pod
    return result
