"""Every node is looked at, whatever a plugin says of itself, live as in `evaluate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.settings import load_settings
from bayplan.testing import Harness, cluster, node, pod

NODES = 300
"""kube-scheduler would score some 143 of them for a pod."""
CHOSEN = "node-217"
HEAD = "from bayplan.framework import Depends, Plugin\n\nclass Mine(Plugin):\n"
FORMS = {
    "derived": "    def score(self, state, pod, node):\n        return 100 if node.name == 'node-217' else 0\n",
    "not understood": "    def score(self, state, pod, node):\n"
    "        return (100 if node.name == 'node-217' else 0) + 0 * len(pod.name)\n",
    "stated": "    depends = Depends.CLUSTER\n    def score(self, state, pod, node):\n"
    "        return 100 if node.name == 'node-217' else 0\n",
}
"""The same answers, one of them understood, and none with a word about nodes to leave out."""


@pytest.mark.parametrize("form", FORMS)
async def test_live_and_offline_agree_on_all_nodes(form: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(HEAD + FORMS[form])
    nodes = [node(f"node-{number}", cpu=64) for number in range(1, NODES + 1)]
    harness = Harness(nodes=nodes, plugins=[file], weights={"Mine": 1000})
    offline = [str(harness.schedule(pod(f"p{number}")).node_name) for number in range(6)]
    weighted = tmp_path / "scheduler.yaml"
    weighted.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins: {multiPoint: {enabled: [{name: Mine, weight: 1000}]}}\n"
    )
    assert load_settings(weighted, [str(file)]).profiles[0].percentage_of_nodes_to_score == 100
    async with cluster(nodes=nodes, plugins=[str(file)], config=weighted.read_text()) as local:
        for number in range(6):
            await local.create(pod(f"p{number}"))
        live = [str(await local.node_of(f"p{number}", within=90)) for number in range(6)]

    assert offline == live == [CHOSEN] * 6
