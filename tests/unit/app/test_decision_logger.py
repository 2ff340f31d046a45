"""What each level of the log says about a pod, from nothing at 0 to the score of each node at 10."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.waiting import until

from bayplan.app.decision_logger import DecisionLogger
from bayplan.app.settings import load_settings
from bayplan.observe.logs import Log, LogSettings, configure_logging
from bayplan.sim.local import LocalCluster, LocalOptions
from bayplan.testing import node, pod
from bayplan.testing.local_cluster import TestCluster, document_of

WRITES = """\
import logging

from bayplan.framework import Plugin

named, other = logging.getLogger("anything"), logging.getLogger(__name__)


class Writes(Plugin):
    def score(self, state, pod, node):
        self.log.info("through the plugin")
        named.info("through a logger of any name")
        other.debug("only from level 4 on")
        return 50
"""


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, level = logging.getLogger(), logging.getLogger().level
    yield io.StringIO()
    structlog.reset_defaults()
    for handler in [handler for handler in root.handlers if type(handler).__module__ == "bayplan.observe.logs"]:
        root.removeHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(False)


async def lines_of(stream: io.StringIO, log: Log, plugins: list[str], *, slow_seconds: float = 100.0) -> list[str]:
    """One pod that fits on two of three nodes and one that fits nowhere, and all that was written about them."""
    settings = load_settings(None, plugins, enable=True)
    log.show_plugins_in(settings.plugin_places)
    decisions = DecisionLogger(log, slow_seconds=slow_seconds)
    nodes = [document_of(node("n1")), document_of(node("n2")), document_of(node("off", unschedulable=True))]
    options = LocalOptions(nodes=nodes, listen=False, observers=[decisions], on_move=decisions.moved)
    async with LocalCluster(settings, options) as local:
        decisions.attach(local.live)
        test = TestCluster(local)
        await test.create(pod("web"))
        await test.node_of("web")
        await test.create(pod("big", cpu="900"))
        await test.pending_message("big")
        if log.verbosity >= 2 and not plugins:
            await until(lambda: "pod bound" in stream.getvalue(), what="the binding was written down")
    return [line.split("] ", 1)[1] for line in stream.getvalue().splitlines() if "] " in line]


def starting(lines: list[str], text: str) -> list[str]:
    return [line for line in lines if line.startswith(text)]


async def test_nothing_is_written_about_pods_below_two(stream: io.StringIO) -> None:
    lines = await lines_of(stream, configure_logging(LogSettings(verbosity=1, stream=stream)), [])

    assert not [line for line in lines if "default/" in line]


async def test_two_says_what_was_decided_for_each_pod(stream: io.StringIO) -> None:
    lines = await lines_of(stream, configure_logging(LogSettings(verbosity=2, stream=stream)), [])

    (chosen,) = starting(lines, "node chosen")
    assert 'pod="default/web"' in chosen
    assert "feasible=2 evaluated=3" in chosen
    assert starting(lines, 'pod bound pod="default/web"')
    assert "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu" in starting(lines, "no node")[0]
    assert not starting(lines, "pod moved") + starting(lines, "nodes rejected") + starting(lines, "node scored")


async def test_ten_says_moves_filters_and_the_score_of_each_node_by_plugin(stream: io.StringIO) -> None:
    lines = await lines_of(stream, configure_logging(LogSettings(verbosity=10, stream=stream)), [])

    (entered, *_) = starting(lines, 'pod moved in the queue pod="default/web" to="active"')
    assert "cause=" in entered
    refused = starting(lines, 'nodes rejected pod="default/web" plugin="NodeUnschedulable"')
    assert "off" in refused[0]
    scored = starting(lines, "node scored")
    assert [name for line in scored for name in ("n1", "n2") if f'node="{name}"' in line] == ["n1", "n2"]
    assert all("'NodeResourcesFit': " in line and "total=" in line for line in scored)


async def test_a_slow_decision_names_the_plugin(stream: io.StringIO, tmp_path: Path) -> None:
    plugin = tmp_path / "sleeps.py"
    plugin.write_text(
        "import time\nfrom bayplan.framework import Plugin\n\n\nclass Sleeps(Plugin):\n"
        "    def pre_filter(self, state, pod, nodes):\n        time.sleep(0.02)\n"
    )
    log = configure_logging(LogSettings(verbosity=2, stream=stream))

    lines = await lines_of(stream, log, [str(plugin)], slow_seconds=0.02)

    slow = starting(lines, "slow decision")
    assert "PreFilter" in slow[0]
    assert "'Sleeps.PreFilter': " in slow[1], "the decision after a slow one is measured by plugin"


@pytest.mark.parametrize(("verbosity", "is_debug_shown"), [(0, False), (4, True)])
async def test_plugins_write_at_their_own_level(
    stream: io.StringIO, tmp_path: Path, verbosity: int, is_debug_shown: bool
) -> None:
    plugin = tmp_path / "writes.py"
    plugin.write_text(WRITES)
    log = configure_logging(LogSettings(verbosity=verbosity, stream=stream, is_own_quiet=True))

    lines = await lines_of(stream, log, [str(plugin)])
    logging.getLogger("some.library").info("not ours")

    assert any(line.startswith('through the plugin plugin="Writes"') for line in lines)
    assert "through a logger of any name" in lines
    assert ("only from level 4 on" in lines) is is_debug_shown
    assert not starting(lines, "scheduling begins"), "the scheduler itself is quiet"
    assert "not ours" not in stream.getvalue()


def test_when_off_a_decision_costs_a_comparison(stream: io.StringIO) -> None:
    """Not a measurement: nothing of the decision is touched, so nothing of it can cost anything."""
    decisions = DecisionLogger(configure_logging(LogSettings(verbosity=0, stream=stream)))
    untouchable: Any = object()

    decisions.decided(untouchable, untouchable, 10.0)
    decisions.bound(untouchable, "n1", 10.0)
    decisions.moved(untouchable, "active", "PodAdd")
    decisions.attempt_failed(untouchable, untouchable, 10.0)

    assert stream.getvalue() == ""
