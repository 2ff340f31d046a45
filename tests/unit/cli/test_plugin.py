"""`bayplan plugin show` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run

PLUGIN = '''\
from bayplan.framework import Plugin, PluginArgs


class PreferZone(Plugin):
    """Prefer nodes of one zone."""

    class Args(PluginArgs):
        zones: list[str] = []

    def score(self, state, pod, node):
        return 100 if node.labels.get("zone") in self.args.zones else 0

    async def pre_bind(self, state, pod, node_name):
        return None
'''
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {enabled: [{name: PreferZone, weight: 3}]}
  pluginConfig:
  - {name: PreferZone, args: {zones: [a]}}
"""


@pytest.fixture
def files(folder: Path) -> Path:
    (folder / "prefer_zone.py").write_text(PLUGIN)
    (folder / "config.yaml").write_text(CONFIG)
    return folder


def test_what_was_derived_is_shown(files: Path, run: Run) -> None:
    shown = run("plugin", "show", "prefer_zone.py")

    assert shown.out.splitlines() == [
        "PreferZone: Prefer nodes of one zone.",
        "  extends   score, preBind",
        "  argument  zones: list[str] = []",
        "  score     depends on NODE (derived from the code): kept until the node's own object changes",
    ]
    assert (shown.status, shown.err) == (0, "")


def test_a_configuration_adds_its_cautions(files: Path, run: Run) -> None:
    found = json.loads(run("plugin", "show", "prefer_zone.py", "--config", "config.yaml", "-o", "json").out)

    assert found["answers"][0]["depends"] == "NODE"
    assert "never calls `pre_bind`" in found["cautions"][0] and "`preBind`" in found["cautions"][0]


def test_a_plugin_that_comes_with_bayplan_is_shown_by_name(folder: Path, run: Run) -> None:
    assert "filter    depends on NODE (stated by the author)" in run("plugin", "show", "NodeAffinity").out
    assert run("plugin", "show", "Coscheduling").out.startswith("Coscheduling: ")


def test_a_setup_that_needs_a_cluster_leaves_the_values_open(files: Path, run: Run) -> None:
    source = PLUGIN.replace(
        "    def score", "    def setup(self):\n        raise OSError('no cluster')\n\n    def score"
    )
    (files / "prefer_zone.py").write_text(source)
    shown = run("plugin", "show", "prefer_zone.py")

    assert "depends on NODE" in shown.out
    assert "`setup` fails without a cluster: OSError: no cluster" in shown.err


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("NodeAffinty", "did you mean `NodeAffinity`"),
        ("absent.py", "cannot be read"),
        ("nowhere:At", "no module"),
        ("nope", "is no file, no folder and no installed plugin; write FILE.py, FOLDER or `module:Class`"),
    ],
)
def test_a_plugin_that_is_not_there_is_an_error(folder: Path, run: Run, spec: str, problem: str) -> None:
    shown = run("plugin", "show", spec)

    assert shown.status == 2
    assert problem in shown.errors[0]


def test_evaluate_notes_the_cautions(files: Path, run: Run) -> None:
    shown = run("evaluate", "-f", "cluster.yaml", "--plugin", "prefer_zone.py", "--config", "config.yaml")

    assert "note: plugin `PreferZone`: profile `default-scheduler` never calls `pre_bind`" in shown.err


def test_evaluate_reads_the_custom_resources_that_a_plugin_watches(folder: Path, run: Run) -> None:
    (folder / "seats.py").write_text(
        "from bayplan.framework import CustomResource, Plugin, ResourcePart, Unschedulable\n"
        "class Spec(ResourcePart):\n    full: bool = False\n"
        'class Pool(CustomResource, group="seats.example.com", version="v1", plural="pools", scope="Cluster"):\n'
        "    spec: Spec\n"
        "class Seats(Plugin):\n    watches = (Pool,)\n"
        "    def filter(self, state, pod, node):\n        pool = self.handle.resources(Pool).get(node.name)\n"
        '        return Unschedulable("no seat") if pool and pool.spec.full else None\n'
    )
    pool = "\n---\napiVersion: seats.example.com/v1\nkind: Pool\nmetadata: {name: large}\nspec: {full: true}\n"
    (folder / "cluster.yaml").write_text((folder / "cluster.yaml").read_text() + pool)
    shown = run("evaluate", "-f", "cluster.yaml", "--pod", "waiting", "--plugin", "seats.py")

    assert shown.out.startswith("default/waiting goes to small")
