"""What rooms below log while a command runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from bayplan.cli.stderr_log import log_to_stderr


@pytest.fixture(autouse=True)
def shown() -> Iterator[None]:
    log_to_stderr()
    yield
    structlog.reset_defaults()


def test_a_complaint_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise RuntimeError("boom\x1b[31m\nagain")
    except RuntimeError as error:
        structlog.get_logger().error("plugin failed", plugin="Broken", exc_info=error)

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: plugin failed (plugin Broken): RuntimeError: boom\\x1b[31m again, at ")
    assert err.count("\n") == 1


def test_the_same_complaint_is_made_once(capsys: pytest.CaptureFixture[str]) -> None:
    for plugin in ("A", "A", "B", "A"):
        structlog.get_logger().error("plugin failed", plugin=plugin)

    assert capsys.readouterr().err.count("\n") == 2


def test_chatter_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger().info("started")

    assert capsys.readouterr().err == ""
