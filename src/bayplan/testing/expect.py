"""Expectations about an outcome. One that fails shows the whole table of verdicts and scores.

    expect(outcome).scheduled_on("n1")
    expect(outcome).rejected_because("Insufficient cpu", on="n2")
    assert expect(outcome).score("ImageLocality", "n1") == 50

All but `score` and `total` can be chained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from bayplan.testing.outcome import Outcome
from bayplan.testing.tables import verdict_table

__all__ = ["Expectation", "Score", "expect"]


class Score(int):
    """A number that remembers the outcome it is from, for the message of a failed comparison."""

    outcome: Outcome
    what: str

    @classmethod
    def of(cls, number: int, what: str, outcome: Outcome) -> Score:
        score = cls(number)
        score.what, score.outcome = what, outcome
        return score


def expect(outcome: Outcome) -> Expectation:
    return Expectation(outcome)


class Expectation:
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def scheduled(self) -> Expectation:
        """On any node."""
        if not self.outcome.is_scheduled:
            self._fail("expected the pod to be scheduled")
        return self

    def scheduled_on(self, *names: str) -> Expectation:
        """On one of these nodes."""
        if self.outcome.node_name not in names:
            self._fail(f"expected the pod on {_either(names)}")
        return self

    def best(self, *names: str) -> Expectation:
        """These nodes, and no others, tie for the highest total."""
        if set(self.outcome.best) != set(names):
            self._fail(f"expected the best nodes to be {_either(names)}, they are {_either(self.outcome.best)}")
        return self

    def pending(self) -> Expectation:
        """Not scheduled because it fits nowhere; an error is something else."""
        if self.outcome.is_scheduled or self.outcome.failure is not None:
            self._fail("expected the pod to stay pending")
        return self

    def failed(self, text: str = "") -> Expectation:
        """Something went wrong, and the message holds the text."""
        if self.outcome.failure is None or text not in self.outcome.message:
            self._fail(f"expected a failure that says `{text}`")
        return self

    def held_by(self, *plugins: str) -> Expectation:
        """Has a node, and these plugins hold it at Permit."""
        if not self.outcome.is_scheduled or set(self.outcome.waits_for) != set(plugins):
            self._fail(f"expected the pod to be held by {_either(plugins)}")
        return self

    def message(self, text: str) -> Expectation:
        """The whole message of the pod's condition."""
        if self.outcome.message != text:
            self._fail(f"expected the message\n    {text}\ngot\n    {self.outcome.message}")
        return self

    def message_says(self, text: str) -> Expectation:
        """Some part of the message."""
        if text not in self.outcome.message:
            self._fail(f"expected `{text}` in the message\n    {self.outcome.message}")
        return self

    def rejected_because(self, reason: str, *, on: str | None = None, by: str | None = None) -> Expectation:
        """The reason is one that a node (`on`, or any) was rejected for; `by` names the plugin that said so."""
        rejections = self.outcome.rejections
        asked = rejections if on is None else {name: s for name, s in rejections.items() if name == on}
        if not any(reason in status.reasons and by in (None, status.plugin) for status in asked.values()):
            where = f" on `{on}`" if on is not None else ""
            self._fail(f"expected a rejection{where}{f' by {by}' if by else ''} because `{reason}`")
        return self

    def rejected(self, *names: str) -> Expectation:
        """These nodes, and no others, were rejected."""
        if set(self.outcome.rejections) != set(names):
            self._fail(f"expected exactly {_either(names)} to be rejected")
        return self

    def accepted(self, *names: str) -> Expectation:
        """These nodes were not rejected."""
        refused = [name for name in names if name in self.outcome.rejections]
        if refused or self.outcome.failure is not None:
            self._fail(f"expected {_either(names)} to be accepted")
        return self

    def scores(self, plugin: str, expected: Mapping[str, int]) -> Expectation:
        """The plugin's score, 0 to 100 before the weight, on each of these nodes."""
        got = {name: int(self.score(plugin, name)) for name in expected}
        if got != dict(expected):
            self._fail(f"expected {plugin} to score {dict(expected)}, it scored {got}")
        return self

    def score(self, plugin: str, on: str) -> Score:
        """A plugin's score of a node, 0 to 100 before the weight; 0 when the plugin skipped scoring."""
        if on not in self.outcome.totals:
            self._fail(f"expected a score of `{on}` by {plugin}, but the node was not scored")
        if plugin not in self.outcome.weights:
            self._fail(f"no plugin `{plugin}` scores in this profile; those that do: {_either(self.outcome.weights)}")
        return Score.of(self.outcome.scores.get(on, {}).get(plugin, 0), f"{plugin} on {on}", self.outcome)

    def total(self, on: str) -> Score:
        """A node's weighted sum."""
        if on not in self.outcome.totals:
            self._fail(f"expected a total of `{on}`, but the node was not scored")
        return Score.of(self.outcome.totals[on], f"total of {on}", self.outcome)

    def skipped(self, plugin: str) -> Expectation:
        """The plugin gave no score at all."""
        if any(plugin in scores for scores in self.outcome.scores.values()):
            self._fail(f"expected {plugin} to skip scoring")
        return self

    def preempts(self, victims: Iterable[str], *, on: str | None = None) -> Expectation:
        """Evicts exactly these pods, most important first. A name without a namespace is in the pod's own."""
        namespace = self.outcome.pod.namespace
        wanted = tuple(name if "/" in name else f"{namespace}/{name}" for name in victims)
        if self.outcome.victims != wanted or on not in (None, self.outcome.nominated_node):
            where = f" on `{on}`" if on else ""
            got = f"{_either(self.outcome.victims)} on `{self.outcome.nominated_node}`"
            self._fail(f"expected the victims {_either(wanted)}{where}, got {got}")
        return self

    def _fail(self, what: str) -> NoReturn:
        __tracebackhide__ = True
        raise AssertionError(f"{what}\n\n{verdict_table(self.outcome)}")


def _either(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
