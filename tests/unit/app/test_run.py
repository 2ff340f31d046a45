"""The process around a scheduler: how it starts when the API server is not ready for it."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.app.answering import Answering, answer

from bayplan.app.run import RunOptions, SchedulerProcess
from bayplan.app.settings import load_settings
from bayplan.client.errors import ConnectionFailed, CredentialError, Forbidden
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock
from bayplan.observe.logs import LogSettings, configure_logging

AWAY = ConnectionFailed("connection refused", may_have_been_processed=False)
SERVED = answer(200, {"resources": []})


def process(clock: VirtualClock, *answers: Response | Exception) -> SchedulerProcess:
    transport = Answering(*answers)
    log = configure_logging(LogSettings(verbosity=0))
    return SchedulerProcess(transport, load_settings(None, ()), RunOptions(), clock, lease_transport=transport, log=log)


async def discover(clock: VirtualClock, *answers: Response | Exception) -> None:
    task = asyncio.create_task(process(clock, *answers)._discover())
    await clock.run_for(120)
    await task


@pytest.mark.parametrize("trouble", [AWAY, answer(503, {}), answer(403, {}), answer(429, {})])
async def test_an_api_server_that_is_not_ready_is_waited_for(trouble: Response | Exception) -> None:
    await discover(VirtualClock(), trouble, trouble, *[SERVED] * 30)


async def test_one_that_never_answers_is_given_up_with_its_own_words() -> None:
    with pytest.raises(ConnectionFailed, match="connection refused"):
        await discover(VirtualClock(), *[AWAY] * 100)
    with pytest.raises(Forbidden):
        await discover(VirtualClock(), *[answer(403, {})] * 100)


async def test_an_unknown_user_is_told_what_to_renew_at_once() -> None:
    with pytest.raises(CredentialError, match="hint: renew the token or certificate"):
        await discover(VirtualClock(), answer(401, {}))
