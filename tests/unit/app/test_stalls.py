"""A process whose plugin never answers: the log names plugin and pod, and the process ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.unit.app.processes import scheduler_with

from bayplan.app.stalls import at_work
from bayplan.testing import Harness, pod

SPIN = """
from bayplan.framework import Plugin


class Spin(Plugin):
    def filter(self, state, pod, node):
        while pod.name == "forever":
            pass
"""
OWN = """
apiVersion: bayplan.dev/v1alpha1
kind: BayplanConfiguration
watchdog: {endAfter: 0s, stopWithin: 2s}
"""


@asynccontextmanager
async def spinning(folder: Path, *flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`bayplan run` with a filter that never answers for the one pod there is."""
    (folder / "own.yaml").write_text(OWN)
    async with scheduler_with(folder, SPIN, ["forever"], *flags) as (process, _):
        yield process


async def test_a_filter_that_never_answers_is_named_and_the_process_ends(tmp_path: Path) -> None:
    async with spinning(tmp_path, "--stall-limit", "2s") as process:
        _, log = await process.communicate()

    assert process.returncode == 1
    told = next(line for line in log.decode().splitlines() if 'plugin="Spin"' in line)
    assert "the event loop does not turn" in told and 'pod="default/forever"' in told
    assert "the event loop stands still for too long; the process ends" in log.decode()


async def test_a_signal_ends_a_process_whose_filter_never_answers(tmp_path: Path) -> None:
    async with spinning(tmp_path, "--bayplan-config", "own.yaml") as process:
        assert process.stderr is not None
        # On a busy machine, imports may hold the event loop for a second as well.
        while b'plugin="Spin"' not in await process.stderr.readline():
            assert process.returncode is None
        process.terminate()
        _, log = await process.communicate()

    assert process.returncode == 1
    assert "asked to stop and still at work; the process ends" in log.decode()


def test_the_innermost_plugin_and_pod_are_found() -> None:
    harness = Harness(nodes=["n1"])
    plugin, info = harness.plugin("NodeResourcesFit"), harness.info(pod("p"))

    def outer() -> dict[str, str]:
        self, other = plugin, info
        del other
        return inner(info) if self is plugin else {}

    def inner(pod: object) -> dict[str, str]:
        return at_work(sys._getframe())

    assert outer() == {"plugin": "NodeResourcesFit", "method": "outer", "pod": "default/p"}
