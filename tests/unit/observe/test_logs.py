from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from bayplan.observe import logs
from bayplan.observe.clock import VirtualClock
from bayplan.observe.logs import Log, LogSettings, configure_logging

_module_log = structlog.get_logger()


class Captured:
    """A log and what was written to it."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.clock = VirtualClock()

    def configure(self, **settings: Any) -> Log:
        return configure_logging(LogSettings(stream=self.stream, clock=self.clock, **settings))

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def captured() -> Iterator[Captured]:
    root, own = logging.getLogger(), logging.getLogger("bayplan")
    handlers, levels = list(root.handlers), (root.level, own.level)
    yield Captured()
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])
    logging.captureWarnings(False)
    structlog.reset_defaults()


def test_a_logger_made_at_import_writes_under_its_modules_name(captured: Captured) -> None:
    captured.configure()
    _module_log.info("pod bound", pod="default/web")

    assert captured.lines[0].endswith('test_logs] pod bound pod="default/web"')


def test_the_standard_library_is_routed_into_the_same_log(captured: Captured) -> None:
    captured.configure()
    logging.getLogger("bayplan.queue.machine").info("pod `%s` is new", "a/b")
    logging.getLogger("uvicorn.error").warning("odd request")
    logging.getLogger("asyncio").info("not ours and not important")

    assert [line.split("] ", 1)[1] for line in captured.lines] == ["pod `a/b` is new", "odd request"]


def test_configuring_again_replaces_the_log(captured: Captured) -> None:
    captured.configure()
    captured.configure(format="json")
    logging.getLogger("bayplan.x").warning("once")

    assert [json.loads(line)["msg"] for line in captured.lines] == ["once"]


def test_a_line_shows_from_its_verbosity_on(captured: Captured) -> None:
    log = captured.configure(verbosity=2)
    _module_log.info("two", v=2)
    _module_log.info("three", v=3)
    _module_log.debug("debug")
    log.set_verbosity(4)
    _module_log.debug("debug again")
    logging.getLogger("bayplan.x").debug("and from the library")

    assert [line.split("] ", 1)[1] for line in captured.lines] == ["two", "debug again", "and from the library"]
    assert log.is_shown(4)
    assert not log.is_shown(5)


def test_an_exception_comes_with_its_traceback(captured: Captured) -> None:
    captured.configure(format="json")
    try:
        raise ValueError("boom")
    except ValueError as error:
        _module_log.exception("failed")
        _module_log.error("failed too", exc_info=error)
        logging.getLogger("bayplan.x").exception("and here")

    records = [json.loads(line) for line in captured.lines]
    assert [record["level"] for record in records] == ["error"] * 3
    assert all("ValueError: boom" in record["stacktrace"] for record in records)


def test_secrets_are_blanked_wherever_they_are(captured: Captured) -> None:
    captured.configure()
    try:
        raise ValueError("GET /?token=hunter22")
    except ValueError as error:
        fields = {"password": "hunter22", "nested": {"token": "hunter22"}}
        _module_log.error("Bearer hunter22222", error=error, exc_info=True, **fields)
    logging.getLogger("bayplan.x").error("Authorization: Bearer %s", "hunter222222")

    assert "hunter22" not in captured.stream.getvalue()


def test_a_kind_of_error_that_repeats_is_written_a_few_times_and_counted(captured: Captured) -> None:
    captured.configure()
    for number in range(100):
        _module_log.error("binding failed", pod=f"default/p{number}")
        logging.getLogger("bayplan.x").warning("pod %d is odd", number)
    captured.clock.advance(10.0)
    _module_log.error("binding failed", pod="default/last")

    assert len(captured.lines) == 41
    assert captured.lines[-1].endswith('pod="default/last" repeats_left_out=80')


def test_information_is_never_left_out(captured: Captured) -> None:
    captured.configure()
    for _ in range(100):
        _module_log.info("pod bound")

    assert len(captured.lines) == 100


def test_a_stream_that_fails_fails_nobody(captured: Captured) -> None:
    log = captured.configure()
    captured.stream.close()
    _module_log.error("lost")

    assert log.lost_lines == 1


def test_arguments_that_do_not_fit_their_message_are_shown_anyway(captured: Captured) -> None:
    captured.configure()
    (bridge,) = [handler for handler in logging.getLogger().handlers if type(handler).__module__ == logs.__name__]
    bridge.emit(logging.LogRecord("bayplan.x", logging.ERROR, "here.py", 1, "only %d", ("text",), None))

    assert "only %d ('text',)" in captured.lines[0]


@pytest.mark.parametrize("settings", [{"format": "xml"}, {"verbosity": -1}, {"verbosity": 11}])
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"format|verbosity"):
        LogSettings(**settings)
