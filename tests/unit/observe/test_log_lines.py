from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bayplan.observe.log_lines import json_line, text_line


def event(message: str, level: str = "info", **fields: Any) -> dict[str, Any]:
    return {"event": message, "level": level, "logger": "bayplan.loop", "timestamp": 1_700_000_000.5, **fields}


def test_a_line_of_text_begins_like_klog() -> None:
    line = text_line(event("pod bound", pod="default/web", tries=2, ok=True))

    assert re.fullmatch(
        r'I\d{4} \d\d:\d\d:\d\d\.500000 \d+ bayplan\.loop\] pod bound pod="default/web" tries=2 ok=true', line
    )


def test_the_letter_is_the_level() -> None:
    letters = [text_line(event("x", level))[0] for level in ("debug", "info", "warning", "error", "critical")]

    assert letters == ["D", "I", "W", "E", "F"]


def test_a_hint_becomes_a_field() -> None:
    assert text_line(event("bad config\nhint: fix it")).endswith('bad config hint="fix it"')
    assert json.loads(json_line(event("bad config\nhint: fix it")))["hint"] == "fix it"


def test_a_traceback_is_indented_under_its_line() -> None:
    lines = text_line(event("failed", "error", stacktrace="Traceback:\n  File\nValueError")).splitlines()

    assert lines[1:] == ["    Traceback:", "      File", "    ValueError"]


def test_json_has_the_keys_of_kubernetes() -> None:
    record = json.loads(json_line(event("pod bound", v=2, pod="default/web", plugins={"a": 1}, odd=object)))

    assert record["ts"] == 1_700_000_000_500.0
    assert (record["msg"], record["v"], record["level"], record["logger"]) == ("pod bound", 2, "info", "bayplan.loop")
    assert record["plugins"] == {"a": 1}
    assert record["odd"] == "<class 'object'>"


def test_a_long_value_is_cut() -> None:
    assert len(text_line(event("x", value="y" * 100_000))) < 5_000
    assert len(json_line(event("x", value="y" * 100_000))) < 5_000


@given(st.text(), st.text(min_size=1), st.text())
def test_no_text_from_outside_makes_a_second_line(message: str, name: str, value: str) -> None:
    fields = event(message, **{name: value} if name not in event("") else {})

    assert len(text_line(fields).splitlines()) == 1
    assert "\n" not in json_line(fields)
    assert json.loads(json_line(fields))["msg"] == message.partition("\nhint: ")[0]
