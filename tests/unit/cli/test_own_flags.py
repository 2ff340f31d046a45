"""Settings of ours: the file, the flags that override it, and what is said about those that cannot be right."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bayplan.app.settings import load_settings
from bayplan.cli.output import CommandError
from bayplan.cli.own_flags import OwnFlags
from bayplan.cli.run import recorder_of, server_of
from bayplan.config.own import BayplanConfig
from bayplan.server import ServerOptions
from bayplan.server.options import PodAccess
from bayplan.sim.recording.sessions import first_header

OWN = "apiVersion: bayplan.dev/v1alpha1\nkind: BayplanConfiguration\n"


def test_without_file_and_flags_every_setting_has_its_default() -> None:
    assert OwnFlags().config() == BayplanConfig()


def test_a_flag_wins_over_the_file_and_leaves_the_rest_of_it(tmp_path: Path) -> None:
    file = tmp_path / "bayplan.yaml"
    file.write_text(OWN + "seed: 3\nwatchdog: {endAfter: 5m, stopWithin: 9s}\ndecisions: {memory: 1Gi}\n")

    config = OwnFlags(
        file=str(file), stall_limit="0", decision_memory="2Mi", decision_file="d", with_controllers=True
    ).config()

    assert (config.seed, config.with_controllers) == (3, True)
    assert (config.decisions.memory, config.decisions.file) == ("2Mi", "d")
    assert (config.watchdog.end_after, config.watchdog.stop_within) == (timedelta(0), timedelta(seconds=9))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (OwnFlags(stall_limit="soon"), "--stall-limit: `soon` is not a duration"),
        (OwnFlags(stall_limit="0.5"), "--stall-limit: found `500ms`, must not be shorter than noticeAfter"),
        (OwnFlags(decision_memory="much"), "--decision-memory: expected a size such as `64Mi`"),
        (OwnFlags(seed=2**70), "--seed: expected a whole number"),
        (OwnFlags(file="/nowhere/b.yaml"), "/nowhere/b.yaml: cannot be read"),
    ],
)
def test_what_is_wrong_names_the_flag(flags: OwnFlags, expected: str) -> None:
    with pytest.raises(CommandError) as caught:
        flags.config()

    assert expected in caught.value.problems[0]


def test_each_problem_of_the_file_is_a_line_of_its_own_with_the_name_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("kind: Deployment\napiVersion: apps/v1\n")
    with pytest.raises(CommandError) as caught:
        OwnFlags(file=str(file)).config()

    assert len(caught.value.problems) == 2
    assert all(problem.startswith(f"{file}: line ") for problem in caught.value.problems)


def test_a_recording_is_asked_for_by_flag_or_file(tmp_path: Path) -> None:
    file = tmp_path / "bayplan.yaml"
    file.write_text(OWN + "recording: {file: here.rec, size: 2Gi}\n")

    from_file = OwnFlags(file=str(file)).config().recording
    by_flag = OwnFlags(file=str(file), record="there.rec").config().recording

    assert (from_file.file, from_file.size_bytes) == (str(tmp_path / "here.rec"), 2**31)
    assert (by_flag.file, by_flag.size_bytes) == ("there.rec", 2**31)


def test_the_recording_of_a_scheduler_is_complete_when_its_block_ends(tmp_path: Path) -> None:
    config = OwnFlags(record=str(tmp_path / "r")).config()

    with recorder_of(config, []) as recorder:
        assert recorder is not None
        recorder.begin(load_settings(None, ()), ["Pod"], seed=4)
    header = first_header(tmp_path / "r")

    assert (header.by, header.seed, header.kinds) == ("scheduler", 4, ("Pod",))
    with recorder_of(BayplanConfig(), []) as none:
        assert none is None


def test_the_file_limits_connections_and_has_questions_about_pods_reviewed(tmp_path: Path) -> None:
    file = tmp_path / "bayplan.yaml"
    file.write_text(OWN + "serving: {connections: 9, connectionsPerAddress: 3, reviewPods: true}\n")
    question = ("/bayplan/v1/pending", "namespace=bank")

    limited = server_of(ServerOptions(), OwnFlags(file=str(file)).config())
    default = server_of(ServerOptions(), BayplanConfig())

    assert (limited.limits.connections, limited.limits.connections_per_peer) == (9, 3)
    assert limited.authorization.pods_in(*question) == PodAccess("list", "bank")
    assert default.authorization.pods_in(*question) is None
