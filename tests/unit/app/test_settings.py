"""What is noted about the plugins of a user when files and flags become a configuration."""

from __future__ import annotations

from pathlib import Path

from bayplan.app.settings import load_settings

PLUGIN = """
from bayplan.framework import Plugin, StateKey

SEATS = StateKey("seats")


class Seats(Plugin):
    def pre_score(self, state, pod, nodes):
        state.put(SEATS, 1)

    def score(self, state, pod, node):
        return 1

    def reserve(self, state, pod, node_name):
        self.last = state[SEATS]
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
  plugins:
    score: {enabled: [{name: Seats}]}
    preScore: {disabled: [{name: Seats}]}
- schedulerName: two
"""


def test_mistakes_that_may_be_meant_are_noted(tmp_path: Path) -> None:
    plugin, config = tmp_path / "seats.py", tmp_path / "config.yaml"
    plugin.write_text(PLUGIN)
    config.write_text(CONFIG)
    whole = load_settings(None, [str(plugin)], enable=True)
    part = load_settings(config, [str(plugin)])

    assert [(each.plugin, each.text.split("`")[1]) for each in whole.cautions] == [("Seats", "reserve")]
    assert "never calls `reserve`" in part.cautions[1].text and "profile `one`" in part.cautions[1].text
    assert len(part.cautions) == 2


def test_plugins_that_come_with_bayplan_are_not_looked_into() -> None:
    assert load_settings(None, []).cautions == ()
