"""`bayplan up`: what is wrong with its options is said in a line, before or instead of a cluster."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.live_cluster import status_of

from bayplan.app.settings import load_settings
from bayplan.cli.main import main
from bayplan.cli.up import _own_definitions

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec:
  containers: [{name: main, image: "example/app:1", resources: {requests: {cpu: many}}}]
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nodes=-3"], "--nodes is a number from 0 to 100,000, not -3"),
        (["--port=99999"], "--port is a number from 0 to 65535, not 99999"),
        (["--dashboard-port=-2"], "--dashboard-port is a number from -1 to 65535, not -2"),
        (["--node-file=nope.yaml"], "nope.yaml: cannot be read: No such file or directory"),
        (["--from-kubeconfig=nope"], "the kubeconfig `nope` does not exist"),
        (["--address=203.0.113.7"], "203.0.113.7"),
    ],
)
def test_a_bad_option_ends_with_a_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status = main(["up", f"--kubeconfig-out={tmp_path / 'k'}", *arguments])
    error = capsys.readouterr().err

    assert status == 2
    assert error.startswith("error: ")
    assert said in error
    assert "internal error" not in error


def test_decisions_that_cannot_be_written_are_a_problem_of_their_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = tmp_path / "own.yaml"
    (tmp_path / "a-file").touch()
    head = "apiVersion: bayplan.dev/v1alpha1\nkind: BayplanConfiguration\n"
    own.write_text(f"{head}decisions: {{file: {tmp_path}/a-file/d.jsonl}}\n")
    status = main(["up", f"--kubeconfig-out={tmp_path / 'k'}", f"--bayplan-config={own}"])
    error = capsys.readouterr().err

    assert status == 2
    assert "/a-file/d.jsonl` cannot be written" in error.splitlines()[0]
    assert error.splitlines()[1] == "hint: name a file in a folder that can"


def test_an_object_that_is_refused_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text(POD)
    status = main(["up", f"--from={dump}", f"--kubeconfig-out={tmp_path / 'k'}", "--dashboard-port=-1"])

    assert status == 2
    assert capsys.readouterr().err.startswith("error: Pod shop/p: ")


def start(*arguments: str) -> subprocess.Popen[str]:
    dashboard = () if any(a.startswith("--dashboard-port") for a in arguments) else ("--dashboard-port=-1",)
    command = [sys.executable, "-m", "bayplan.cli", "up", *dashboard, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_it_says_the_things_a_person_needs_next_and_stops_on_ctrl_c(tmp_path: Path) -> None:
    """Also: a data directory brings its own nodes, none are made up beside them."""
    data = tmp_path / "data"
    seen = []
    for arguments in (["--nodes=2"], []):
        with start(f"--data-dir={data}", *arguments) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            if first.startswith("starting a cluster"):
                first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            assert process.wait(90) == 0
        seen.append(first)
        assert f"export KUBECONFIG={data / 'kubeconfig'}" in rest
        assert "kubectl get pods" in rest
        assert rest.endswith("note: stopped\n")

    assert all(line.startswith("a cluster of 2 nodes is up at https://127.0.0.1:") for line in seen)
    assert (data / "kubeconfig").stat().st_mode & 0o777 == 0o600


OWNING = """
import msgspec
from bayplan.framework import CustomResource, Plugin

class Spec(msgspec.Struct):
    most: int = 1

class Team(CustomResource, group="example.org", version="v1", plural="teams", owned=True):
    spec: Spec = msgspec.field(default_factory=Spec)

class Teams(Plugin):
    watches = (Team,)

    def score(self, state, pod, node):
        return len(self.handle.resources(Team).list())
"""


def test_definitions_of_resources_that_plugins_own_are_there_unless_given(tmp_path: Path) -> None:
    file = tmp_path / "teams.py"
    file.write_text(OWNING)
    settings = load_settings(None, [str(file)], enable=True)

    (made,) = _own_definitions(settings, [])
    assert made["metadata"]["name"] == "teams.example.org"
    assert _own_definitions(settings, [made]) == []


def test_a_large_cluster_says_that_it_starts_and_stops_on_ctrl_c_meanwhile(tmp_path: Path) -> None:
    with start("--nodes=20000", f"--kubeconfig-out={tmp_path / 'kubeconfig'}") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        status = process.wait(90)

    assert first == "starting a cluster of 20000 objects …\n"
    assert "is up at" not in rest
    assert (status, rest) == (0, "note: stopped\n")


def test_a_kubeconfig_that_others_could_read_is_replaced_by_one_that_they_cannot(tmp_path: Path) -> None:
    """Whoever has the old file open sees nothing of the new one: it is another file, renamed."""
    kubeconfig, linked = tmp_path / "kubeconfig", tmp_path / "linked"
    kubeconfig.write_text("of an earlier cluster")
    kubeconfig.chmod(0o644)
    linked.hardlink_to(kubeconfig)
    with kubeconfig.open() as opened, start("--nodes=1", f"--kubeconfig-out={kubeconfig}") as process:
        assert process.stdout is not None
        assert any("get pods" in line for line in iter(process.stdout.readline, ""))
        mode, content = kubeconfig.stat().st_mode & 0o777, kubeconfig.read_text()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        seen = opened.read()

    assert mode == 0o600
    assert "token: " in content
    assert (seen, linked.read_text()) == ("of an earlier cluster", "of an earlier cluster")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kubeconfig", "linked"]


def test_the_command_to_try_names_a_scheduler_that_is_there(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: other}]\n"
    )
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("of an earlier cluster")
    kubeconfig.chmod(0o644)
    with start(f"--config={config}", f"--kubeconfig-out={kubeconfig}") as process:
        assert process.stdout is not None
        said = ""
        while "get pods" not in said:
            said += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said += process.stdout.read()

    assert """kubectl run web --image=nginx --overrides='{"spec":{"schedulerName":"other"}}'""" in said
    assert "create deployment" not in said
    assert kubeconfig.stat().st_mode & 0o777 == 0o600


def test_the_pages_want_the_token_of_the_printed_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with start("--dashboard-port=0", f"--kubeconfig-out={kubeconfig}") as process:
        assert process.stdout is not None
        line = ""
        while not line.startswith("  open http"):
            line = process.stdout.readline()
        server, _, token = line.split()[1].partition("/?token=")
        pages = ("/", "/dashboard/", "/bayplan/v1/overview", "/metrics")
        refused = [status_of(server + path) for path in pages]
        probe, opened = status_of(f"{server}/healthz"), status_of(f"{server}/bayplan/v1/overview", token)
        asked = main(["pending", "--brief", "--kubeconfig", str(kubeconfig)])
        process.send_signal(signal.SIGINT)
        process.stdout.read()

    assert refused == [401] * len(pages)
    assert (probe, opened, asked) == (200, 200, 0)
    assert "No pod is pending" in capsys.readouterr().out
