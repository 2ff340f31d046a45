"""What becomes of work beside the main path that fails."""

from __future__ import annotations

import pytest
import structlog
from tests.unit.loop.kit import Call, Loop, node, pod, refusal, running

from bayplan.client.errors import ConnectionFailed
from bayplan.client.transport import Response

AWAY = ConnectionFailed("the server closed the connection", may_have_been_processed=True)


@pytest.mark.parametrize("failure", [AWAY, refusal(503, "ServiceUnavailable")], ids=["away", "unavailable"])
async def test_a_preemption_that_the_api_server_does_not_carry_out_is_no_defect_and_is_made_again(
    failure: Response | Exception,
) -> None:
    loop = Loop([node("n", cpu=1)])
    is_away = True

    def answer(call: Call) -> Response | Exception | None:
        return failure if is_away and "/pods/low" in call.path else None

    loop.transport.answer = answer
    with structlog.testing.capture_logs() as logs:
        async with running(loop):
            loop.put(pod("low", node="n", cpu="1"), pod("high", cpu="1", priority=9))
            await loop.settle(5)
            assert not any(call.method == "DELETE" for call in loop.transport.calls)
            is_away = False
            await loop.settle(10)

    assert any(call.method == "DELETE" and call.path.endswith("/pods/low") for call in loop.transport.calls)
    levels = {entry["log_level"] for entry in logs if entry.get("task") == "preemption for default/high"}
    assert levels == {"warning"}
