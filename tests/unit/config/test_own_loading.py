"""BayplanConfiguration: read by the rules of the configuration beside it, with defaults in the structs alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.config.support import HEADER

from bayplan.config import BayplanConfig, ConfigError, load_config, load_own_config, load_own_config_file

OWN = "apiVersion: bayplan.dev/v1alpha1\nkind: BayplanConfiguration\n"


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_own_config(text)
    return [str(problem) for problem in caught.value.problems]


def test_an_empty_one_has_every_default() -> None:
    assert load_own_config(OWN) == BayplanConfig()


def test_what_is_written_comes_back_and_null_means_the_default() -> None:
    config = load_own_config(
        OWN + "seed: 7\ndecisions: {memory: 1Gi, file: null}\nwatchdog: {endAfter: 0s}\nlogging: {slowCall: 20ms}\n"
    )

    assert (config.seed, config.decisions.memory_bytes, config.decisions.file) == (7, 2**30, "")
    assert config.watchdog.end_after == timedelta(0)
    assert config.logging.slow_call == timedelta(milliseconds=20)
    assert load_own_config(config.to_dict()) == config


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decisons: {}", "line 3: decisons: unknown field; did you mean `decisions`?"),
        ("watchdog: {endafter: 5s}", "line 3: watchdog.endafter: unknown field; did you mean `endAfter`?"),
        ("watchdog: {endAfter: 5}", "line 3: watchdog.endAfter: expected a duration such as `15s` or `1m30s`"),
        ("watchdog: {endAfter: 500ms}", "found `500ms`, must not be shorter than noticeAfter (1s)"),
        ("watchdog: {noticeAfter: 1ms}", "found `1ms`, must be at least 100ms"),
        ("watchdog: {stopWithin: -1s}", "found `-1s`, must be at least 1s"),
        ("decisions: {memory: lots}", "line 3: decisions.memory: expected a size such as `64Mi`, found `lots`"),
        ("decisions: {fileSize: 12Ki}", "decisions.fileSize: found `12Ki`, must be at least 1Mi"),
        ("decisions: {filesKept: -1}", "expected a whole number at least 0 and at most 1000"),
        ("serving: {connections: 3}", "connectionsPerAddress: found `64`, must not be more than connections (3)"),
        ("logging: {slowCall: 0s}", "found `0s`, must be longer than 0s"),
        ("plugins: [' ']", "line 3: plugins[0]: found ` `, must name a plugin"),
        ("seed: 1\nseed: 2", "seed: is written on lines 3 and 4; keep one"),
    ],
)
def test_problems_name_the_line_and_what_to_write(text: str, expected: str) -> None:
    assert any(expected in problem for problem in problems_of(OWN + text))


def test_all_problems_come_at_once() -> None:
    assert len(problems_of(OWN + "sed: 1\nwatchdog: {endAfter: x, stopWithin: 0s}\ndecisions: []\n")) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty; write at least `apiVersion: bayplan.dev/v1alpha1`"),
        ("kind: BayplanConfiguration", "apiVersion: is missing; write `apiVersion: bayplan.dev/v1alpha1`"),
        ("apiVersion: bayplan.dev/v1\nkind: BayplanConfiguration", "found `bayplan.dev/v1`"),
        (HEADER, "found `KubeSchedulerConfiguration`; give it with --config"),
        ("- a", "expected a mapping"),
        (OWN + "---\n" + OWN, "expected one document, found a second; give it as a file of its own"),
        ("a: " + "[" * 3000 + "]" * 3000, "nested more than 128 levels deep"),
    ],
)
def test_another_document_is_refused_with_the_way_to_give_it(text: str, expected: str) -> None:
    assert any(expected in problem for problem in problems_of(text))


def test_the_other_configuration_says_where_these_settings_belong() -> None:
    with pytest.raises(ConfigError, match=r"watchdog: unknown field; it belongs into a BayplanConfiguration"):
        load_config(HEADER + "watchdog: {}\n")
    with pytest.raises(ConfigError, match=r"found `BayplanConfiguration`; give it with --bayplan-config"):
        load_config(OWN)
    with pytest.raises(ConfigError, match=r"found a second; give it as a file of its own with --bayplan-config"):
        load_config(HEADER + "---\n" + OWN)


def test_paths_are_relative_to_the_file_and_other_names_are_left(tmp_path: Path) -> None:
    file = tmp_path / "bayplan.yaml"
    file.write_text(OWN + "plugins: [fit.py, ./pkg, a.b:C, Coscheduling, /abs/x.whl]\ndecisions: {file: d.jsonl}\n")

    config = load_own_config_file(file)

    inside = [str(tmp_path / "fit.py"), str(tmp_path / "pkg")]
    assert list(config.plugins) == [*inside, "a.b:C", "Coscheduling", "/abs/x.whl"]
    assert config.decisions.file == str(tmp_path / "d.jsonl")


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        load_own_config_file(tmp_path / "none.yaml")
