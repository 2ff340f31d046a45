"""What is said of a plugin before it has run."""

from __future__ import annotations

from typing import Any

from bayplan.framework import Depends, Plugin, PluginArgs, Unschedulable
from bayplan.framework.description import describe, kept_answers


class Busy(Plugin):
    """Prefer nodes with few pods.

    More of the story.
    """

    class Args(PluginArgs):
        zone: str
        most_pods: int = 10

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        return Unschedulable("no") if pod.name else None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return min(100, self.args.most_pods - len(node.pods))

    def normalize(self, state: Any, pod: Any, scores: Any) -> Any:
        return scores


class Understated(Plugin):
    score_depends = Depends.NODE

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(node.pods)


class Overstated(Understated):
    score_depends = Depends.ROW


class Columns(Plugin):
    depends = Depends.USE

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        return nodes.pod_count


def test_a_description_has_what_the_class_declares() -> None:
    found = describe(Busy)

    assert (found.name, found.summary) == ("Busy", "Prefer nodes with few pods.")
    assert found.points == ["filter", "score"]
    assert found.arguments == ["zone: str", "mostPods: int = 10"]


def test_what_keeps_answers_from_being_kept_longer_is_located() -> None:
    first, second = kept_answers(Busy)

    line = Busy.filter.__code__.co_firstlineno + 1
    assert (first.method, first.depends, first.origin) == ("filter", "CLUSTER", "not all of the code is understood")
    assert first.reasons == [
        f"test_description.py:{line}: `pod.name` is the pod's own: pods of one shape may differ in it"
    ]
    assert "`filter_depends`" in first.advice
    assert (second.depends, second.origin) == ("USE", "derived from the code")
    assert second.reasons == [f"line {line + 3}: `len(node.pods)`"]
    assert "`normalize` is a method of your own" in second.advice


def test_a_statement_that_the_code_contradicts_is_noticed() -> None:
    (less,), (more,), (columns,) = kept_answers(Understated), kept_answers(Overstated), kept_answers(Columns)

    assert less.origin == "stated by the author"
    assert "depends on USE, more than is stated" in less.advice and "`len(node.pods)`" in less.reasons[0]
    assert "depends on USE alone" in more.advice and more.reasons == []
    assert (columns.method, columns.depends, columns.reasons, columns.advice) == ("score_nodes", "USE", [], "")


def test_what_was_withdrawn_is_not_said_to_be_kept() -> None:
    class Fewest(Plugin):
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return len(node.labels)

    (derived,) = kept_answers(Fewest())
    (withdrawn,) = kept_answers(Fewest(), {"score": Depends.CLUSTER})

    assert (derived.depends, withdrawn.depends) == ("NODE", "CLUSTER")
    assert "no longer" in withdrawn.origin
