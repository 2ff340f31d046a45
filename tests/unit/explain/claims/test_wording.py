"""Claims as sentences."""

from __future__ import annotations

import pytest

from bayplan.explain.claims.pods import Lacks
from bayplan.explain.claims.wording import sentence


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ((), "n1 lacks 1 cpu"),
        (("DynamicResources",), "n1 lacks 1 cpu and is also rejected by DynamicResources"),
        (
            ("DynamicResources", "TaintToleration"),
            "n1 lacks 1 cpu and is also rejected by DynamicResources and TaintToleration",
        ),
    ],
)
def test_a_node_that_lacks_room_is_said_to_be_rejected_by_other_filters(also: tuple[str, ...], said: str) -> None:
    assert sentence(Lacks(pod="default/web", node="n1", amounts={"cpu": "1"}, also=also)) == said
