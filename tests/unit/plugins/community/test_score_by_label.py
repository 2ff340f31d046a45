"""ScoreByLabel: the tutorial's numbers, and the labels that broke the original."""

from __future__ import annotations

import pytest

from bayplan.config.errors import ConfigError
from bayplan.plugins.community.score_by_label import ScoreByLabel
from bayplan.testing import Harness, Outcome, expect, node, pod


def _scored(labels: dict[str, str], **args: str) -> Outcome:
    nodes = [node(name, labels={args.get("labelKey", "score-by-label"): text}) for name, text in labels.items()]
    given = {"ScoreByLabel": args} if args else None
    return Harness(nodes=nodes, plugins=[ScoreByLabel], args=given).explain(pod("testpod"))


def test_labels_1_5_10_become_10_50_100() -> None:
    expect(_scored({"a": "1", "b": "5", "c": "10"})).scores("ScoreByLabel", {"a": 10, "b": 50, "c": 100})


def test_the_label_is_an_argument() -> None:
    expect(_scored({"a": "1", "b": "2"}, labelKey="rank")).scores("ScoreByLabel", {"a": 50, "b": 100})


def test_no_label_anywhere_is_no_division_by_zero() -> None:
    harness = Harness(nodes=["a", "b"], plugins=[ScoreByLabel])

    expect(harness.explain(pod("testpod"))).scores("ScoreByLabel", {"a": 0, "b": 0})


@pytest.mark.parametrize("text", ["", "ten", "1.5", "1e3", "0x10", "1_000", "-3", "99999999999999999999"])
def test_what_is_no_positive_whole_number_counts_as_nothing(text: str) -> None:
    expect(_scored({"odd": text, "good": "10"})).scores("ScoreByLabel", {"odd": 0, "good": 100})


def test_the_largest_number_does_not_overflow() -> None:
    outcome = _scored({"huge": str(2**63 - 1), "half": str(2**62)})

    expect(outcome).scores("ScoreByLabel", {"huge": 100, "half": 100})


def test_a_changed_label_changes_the_score() -> None:
    harness = Harness(nodes=[node("a", labels={"score-by-label": "1"}), "b"], plugins=[ScoreByLabel])
    expect(harness.explain(pod("testpod"))).scores("ScoreByLabel", {"a": 100, "b": 0})

    harness.add(node("b", labels={"score-by-label": "4"}))

    expect(harness.explain(pod("testpod"))).scores("ScoreByLabel", {"a": 25, "b": 100})


def test_an_empty_label_key_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match="labelKey: must not be empty"):
        _scored({"a": "1"}, labelKey="")
