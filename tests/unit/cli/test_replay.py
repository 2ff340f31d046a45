"""`bayplan record` and `bayplan replay`: a cluster into a file, and a moment of it into a test that passes."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.unit.sim.recording.recorded import record_busy_cluster, settings_with
from tests.waiting import until

from bayplan.api.pod import Pod
from bayplan.cli.main import main
from bayplan.sim.local import LocalCluster, LocalOptions
from bayplan.sim.recording.entries import FORMAT, VERSION, ObjectChanged, RecordingHeader
from bayplan.sim.recording.file import RecordingError, RecordingFile, read_recording
from bayplan.sim.recording.moment import list_decisions
from bayplan.testing import pod
from bayplan.testing.local_cluster import TestCluster


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recording") / "cluster.recording"
    asyncio.run(record_busy_cluster(path))
    return str(path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["replay", *arguments]) == 0
    return capsys.readouterr().out


def test_decisions_are_listed_and_filtered_by_pod(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = json.loads(shown(capsys, recording, "-o", "json"))
    of_one = json.loads(shown(capsys, recording, "--pod", "default/p7", "-o", "json"))

    assert len(every) > 80
    assert of_one == [each for each in every if each["pod"] == "default/p7"] != []
    assert "default/p7" in shown(capsys, recording)


def test_a_moment_shows_the_cluster_and_both_decisions(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, recording, "--at", "+0s", "--pod", "default/p3")
    found = json.loads(shown(capsys, recording, "--at", "2020-01-01T00:00:00Z", "--pod", "default/p3", "-o", "json"))

    assert "10 nodes, 3 pods on them" in text
    assert f"then: default/p3 -> {found['then']['node']}" in text
    assert found["now"]["line"][2] == found["then"]["node"]
    assert "points: TaintToleration 300" in text


def moments(recording: str) -> list[dict[str, str]]:
    """A decision with a node, one that preempts, one of a nominated pod, and one that only fails."""
    every = list_decisions(Path(recording))
    preempting = next(each for each in every if each.victims)
    after = next(each for each in every if each.pod == preempting.pod and each.node)
    failing = next(each for each in every if not each.node and not each.nominated)
    return [{"pod": each.pod, "time": str(each.time)} for each in (every[5], preempting, after, failing)]


def test_moments_become_tests_that_pass(recording: str, tmp_path: Path) -> None:
    for number, each in enumerate(moments(recording)):
        time = datetime.fromtimestamp(float(each["time"]) - 0.0005, UTC).isoformat()
        target = str(tmp_path / f"test_moment_{number}.py")
        assert main(["replay", recording, "--at", time, "--pod", each["pod"], "--pytest", "--to", target]) == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert "4 passed" in found.stdout, found.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--pytest"], "--pytest needs a moment"),
        (["--at", "soon"], "--at soon: is no time"),
        (["--at", "+900d"], "--at +900d: nothing was decided from then on"),
        (["--pod", "default/nobody"], "there is no decision about `default/nobody`"),
    ],
)
def test_wrong_requests_are_refused_with_a_hint(
    recording: str, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert main(["replay", recording, *arguments]) == 2

    said = capsys.readouterr().err
    assert problem in said
    assert "hint: " in said


@pytest.mark.parametrize("command", [["simulate"], ["replay", "--at", "+0s"]])
def test_a_plugin_that_is_no_longer_there_is_told_with_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    path = tmp_path / "cluster.recording"
    header = RecordingHeader(format=FORMAT, version=VERSION, by="scheduler", time=5.0, plugins=("/no/where.py",))
    file = RecordingFile(path, limit_bytes=10_000)
    file.append(msgspec.json.encode(header))
    file.append(b'["d",6.0,"default/web","u",1,"n1","","",[],1,1,1]')
    file.close()

    assert main([command[0], str(path), *command[1:]]) == 2
    said = capsys.readouterr().err
    assert f"error: {path}: was recorded with a plugin: /no/where.py: cannot be read" in said
    assert "hint: put it back where it was" in said


def test_no_file_is_an_error_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "none.recording"]) == 2
    assert "none.recording: cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_recording_that_never_began_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", str(tmp_path / "r"), "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_is_followed_into_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "cluster.recording"
    status, said = asyncio.run(record_by_command(target, tmp_path / "kubeconfig"))

    assert status == 0
    assert "the cluster is read" in said
    assert "changes recorded" in said
    assert main(["simulate", str(target)]) == 0
    assert "3 bindings seen by a follower" in capsys.readouterr().out
    assert "-> node-" in shown(capsys, str(target))


async def record_by_command(target: Path, kubeconfig: Path) -> tuple[int | None, str]:
    """Record three pods, and end the command as Ctrl-C does; its exit status and what it said."""
    async with LocalCluster(settings_with(), LocalOptions(nodes=3)) as local:
        await asyncio.to_thread(kubeconfig.write_text, yaml.safe_dump(local.cluster.kubeconfig()))
        command = [sys.executable, "-m", "bayplan.cli", "record", str(target), "--kubeconfig", str(kubeconfig)]
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        assert process.stderr is not None
        first = await process.stderr.readline()
        users = TestCluster(local)
        for name in ("a", "b", "c"):
            await users.create(pod(name))
            await users.node_of(name)
        await until(lambda: bindings_in(target) == 3, what="three bindings in the file")
        process.send_signal(signal.SIGTERM)
        _, rest = await process.communicate()
    return process.returncode, (first + rest).decode()


def bindings_in(target: Path) -> int:
    """How many are in the file by now; it gets what was seen every second."""
    with suppress(RecordingError):
        changes = [placed.entry for placed in read_recording(target) if isinstance(placed.entry, ObjectChanged)]
        pods = [msgspec.json.decode(entry.object, type=Pod) for entry in changes if entry.kind == "Pod"]
        return len({each.key for each in pods if each.spec.node_name})
    return 0
