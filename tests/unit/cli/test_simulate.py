"""`bayplan simulate` from the command line: files in, table, JSON, files and exit status out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.unit.sim.recording.recorded import record_busy_cluster

from bayplan.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples" / "simulate"
SMALL = ["simulate", str(EXAMPLES / "workload.yaml"), "--cluster", str(EXAMPLES / "cluster.yaml"), "--until", "30m"]
PACKED = ["--variant", f"packed={EXAMPLES / 'packed.yaml'}", "--processes", "1"]


def test_two_policies_are_compared_in_a_table_and_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status = main([*SMALL, *PACKED, "--html", str(tmp_path / "page.html"), "--csv", str(tmp_path / "samples.csv")])

    said = capsys.readouterr().out
    assert status == 0
    assert "wait, 99 % (s)" in said
    assert "packed parts from default after 0 equal decisions" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "samples.csv"]


def test_measures_are_written_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    main([*SMALL, "-o", "json"])

    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["variant"] == "default"
    assert run["measures"]["pods.arrived"] >= 24
    assert "decisions" not in run


def test_a_condition_decides_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--fail-if", "pods.arrived > 10"]) == 1
    assert main([*SMALL, "--fail-if", "pods.arrived < 10"]) == 0
    assert "condition `pods.arrived > 10` holds for default" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["simulate", "none.yaml", "--cluster", "none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (["simulate", "none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (
            SMALL[:2],
            "no cluster to run on\nhint: name its objects with --cluster FILE, a --kubeconfig or a --context; only",
        ),
        ([*SMALL, "--variant", "packed"], "--variant packed: write NAME=CONFIG.yaml"),
        ([*SMALL, "--variant", "default=x.yaml"], "there are two variants of the name `default`"),
        ([*SMALL, "--fail-if", "wait >"], "is no expression"),
        ([*SMALL[:-1], "soon"], "`soon` is no time"),
        ([*SMALL, "--demand", "130"], "a demand is for openb pod lists"),
        ([*SMALL, "--html", "/no/where/page.html"], "cannot be written: there is no folder /no/where"),
        ([*SMALL, "--html", "/"], "--html /: cannot be written: it is a folder; name a file in it"),
        ([*SMALL, "--csv", "x" * 300], f"error: {'x' * 300}: File name too long"),
        ([*SMALL, "--variant", "other=none.py", "--processes", "1"], "error: none.py: cannot be read"),
        ([*SMALL, "--demand", "nan"], "--demand nan: expected a percentage above 0, and at most 10,000"),
        ([*SMALL, "--processes", "0"], "expected a number of 1 or more, found 0"),
        ([*SMALL[:3], "/dev/null"], "/dev/null: is no regular file, and is read more than once"),
    ],
)
def test_wrong_input_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert main(arguments) == 2
    assert problem in capsys.readouterr().err


WAITING = """\
apiVersion: bayplan.dev/v1alpha1
kind: Workload
until: 10m
items:
- {name: a, arrivals: {at: 0s, count: 2}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 99}}}]}}}
- {name: other, template: {spec: {schedulerName: another, containers: [{name: c}]}}}
- {name: late, arrivals: {at: 1h}, template: {spec: {containers: [{name: c}]}}}
"""


def test_pods_that_wait_at_the_end_are_told_with_their_reasons(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "waiting.yaml").write_text(WAITING)

    assert main(["simulate", str(tmp_path / "waiting.yaml"), *SMALL[2:4]]) == 0

    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert notes[0].startswith("note: default: 2 pods wait at the end: 0/16 nodes are available: 16 Insufficient cpu")
    assert notes[1:] == ["note: default: 1 pod waits at the end: no profile is the scheduler `another`"]


def test_a_run_without_any_pod_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every condition on waits would pass."""
    (tmp_path / "late.yaml").write_text("\n".join((*WAITING.splitlines()[:4], WAITING.splitlines()[-1])))

    assert main(["simulate", str(tmp_path / "late.yaml"), *SMALL[2:4]]) == 0
    assert "note: default: no pod came in 10 min\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("name,cpu_milli,memory_mib,num_gpu\na,1,1,0\n", ":1: column `gpu_milli` is missing"),
        ("time\n1\n", ":1: column `name` is missing; "),
        (b"\xff\xfen\x00", "not UTF-8 text (byte 0)"),
    ],
)
def test_a_csv_file_is_a_pod_list_and_what_is_wrong_with_it_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str | bytes, problem: str
) -> None:
    path = tmp_path / "pods.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)

    assert main(["simulate", str(path), *SMALL[2:]]) == 2
    assert f"error: {path}" in (said := capsys.readouterr().err)
    assert problem in said


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recording") / "cluster.recording"
    asyncio.run(record_busy_cluster(path, pods=40))
    return str(path)


def test_a_recording_is_replayed_with_the_policy_of_then(
    recording: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["simulate", recording, "--decisions", str(tmp_path / "d")]) == 0
    assert main(["simulate", recording, "-o", "json", "--decisions", str(tmp_path / "again")]) == 0

    line, _, rest = capsys.readouterr().out.partition("\n")
    found = json.loads(rest)
    assert line == f"{found['decisions']} decisions replayed, {found['withNode']} of them with a node: all as they were"
    assert found["isEqual"] is True
    assert (tmp_path / "d").read_bytes() == (tmp_path / "again").read_bytes() != b""


@pytest.mark.parametrize("option", [["--html", "page.html"], ["--until", "1h"], ["--seed", "3"], ["--no-retry"]])
def test_options_that_a_replay_would_ignore_are_refused(
    recording: str, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", recording, *option]) == 2
    assert f"error: {option[0]}: a recording is replayed as it was" in capsys.readouterr().err


def test_decisions_of_a_replay_need_a_folder(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", recording, "--decisions", "/no/where/d"]) == 2
    assert "--decisions /no/where/d: cannot be written" in capsys.readouterr().err


def test_the_pods_of_a_recording_come_again_for_other_policies(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", recording, *PACKED, "-o", "json"]) == 0

    recorded, packed = json.loads(capsys.readouterr().out)["runs"]
    assert (recorded["variant"], packed["variant"]) == ("recorded", "packed")
    assert recorded["measures"]["pods.arrived"] == packed["measures"]["pods.arrived"] == 46
    assert recorded["measures"]["pods.bound"] == 46
    assert recorded["digest"] != packed["digest"]


def test_a_policy_that_does_not_load_is_found_before_the_first_one_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayplan.sim.compare.run_variants", lambda *_, **__: pytest.fail("it ran"))

    assert main([*SMALL, "--variant", "other=none.yaml"]) == 2
    assert "none.yaml: cannot be read" in capsys.readouterr().err


def test_a_hint_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL[:-1], "1m", "--fail-if", "wait.p98 > 1"]) == 2

    first, second = capsys.readouterr().err.splitlines()
    assert first == "error: --fail-if: `wait.p98 > 1`: there is no measure `wait.p98`"
    assert second.startswith("hint: there are attempts, cost, ")


def test_a_damaged_recording_is_an_error_line(
    recording: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    data = bytearray(Path(recording).read_bytes())
    data[40] ^= 0xFF
    damaged.write_bytes(data)

    assert main(["simulate", str(damaged)]) == 2
    assert f"error: {damaged}: block 1: is damaged: " in capsys.readouterr().err
