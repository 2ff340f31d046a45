"""A small cluster on a virtual clock, without sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.apiserver.driving import Driver

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.server.inprocess import InProcessTransport
from bayplan.observe.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def cluster(clock: VirtualClock) -> AsyncIterator[EmbeddedCluster]:
    """Three simulated nodes with all controllers."""
    cluster = EmbeddedCluster(nodes=3, clock=clock, listen=False, seed=7)
    await cluster.start()
    yield cluster
    await cluster.stop()


@pytest.fixture
async def quiet(clock: VirtualClock) -> AsyncIterator[EmbeddedCluster]:
    """An API server alone: nothing in it moves by itself."""
    cluster = EmbeddedCluster(clock=clock, listen=False, seed=7, simulate=False)
    await cluster.start()
    yield cluster
    await cluster.stop()


@pytest.fixture
def transport(cluster: EmbeddedCluster) -> InProcessTransport:
    return cluster.in_process_transport()


@pytest.fixture
def driver(cluster: EmbeddedCluster, clock: VirtualClock) -> Driver:
    return Driver(cluster, clock)
