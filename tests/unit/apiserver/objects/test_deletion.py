"""Numbers that clients write as text: refused or ignored, never a failure of the server."""

from __future__ import annotations

import pytest

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.exchange import Request
from bayplan.apiserver.simulation.controllers.deployments import absolute
from bayplan.observe.clock import VirtualClock


@pytest.mark.parametrize(("grace", "status"), [("5", 404), ("-1", 404), ("--5", 400), ("²", 400), ("9" * 5000, 400)])
def test_a_grace_period_is_a_number(grace: str, status: int) -> None:
    cluster = EmbeddedCluster(listen=False, clock=VirtualClock(), simulate=False)
    headers = {"authorization": f"Bearer {cluster.token}"}
    request = Request("DELETE", "/api/v1/namespaces/default/pods/x", {"gracePeriodSeconds": grace}, headers, b"")

    assert cluster.api.handle(request).status == status


@pytest.mark.parametrize(("value", "number"), [("25%", 3), ("3", 3), (4, 4), ("²%", 0), ("²", 0), ("9" * 5000, 0)])
def test_a_share_that_is_no_number_is_none(value: int | str, number: int) -> None:
    assert absolute(value, 10, round_up=True) == number
