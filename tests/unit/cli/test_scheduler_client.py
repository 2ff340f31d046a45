"""explain, pending and whatif against a server, and explain on a decision file."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.explain.stage import raw_pod, staged

from bayplan.cli.main import main
from bayplan.cli.scheduler_client import EXTENSION, SchedulerOptions, endpoint
from bayplan.explain.decision_file import DecisionFile
from bayplan.loop.record import DecisionRecord, Step
from bayplan.server import ServerOptions, ServerParts, serve


@contextmanager
def running() -> Iterator[str]:
    """A scheduler with one placed and one pending pod, in a thread of its own: the commands have their own loop."""
    ready, done = threading.Event(), threading.Event()
    found: dict[str, str] = {}

    async def host() -> None:
        async with staged(3) as stage:
            await stage.create(raw_pod("web"), raw_pod("big", cpu="900"))
            await stage.settled(bound=1, failed=1)
            parts = ServerParts(routes=stage.explaining.routes())
            async with serve(ServerOptions(port=0, is_plain_http=True), parts) as serving:
                found["url"] = serving.url
                ready.set()
                while not done.is_set():  # noqa: ASYNC110 - a thread sets it
                    await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(host()))
    thread.start()
    try:
        assert ready.wait(90)
        yield found["url"]
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as found:
        yield found


def test_a_placed_pod_is_explained(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "pod", "web", "--server", url]) == 0

    out = capsys.readouterr().out
    assert "default/web runs on" in out
    assert "what would move it" in out


def test_json_has_every_node_and_the_changes(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "pod", "default/big", "--server", url, "-o", "json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    assert answer["now"]["nodes"] == 3
    assert answer["suggestions"]


def test_a_node_and_the_pending_board_are_shown(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pending", "--server", url]) == 0
    assert "NodeResourcesFit: Insufficient cpu" in capsys.readouterr().out
    assert main(["explain", "node", "node-1", "--server", url]) == 0
    assert "0 of 1 pending pods would fit here now" in capsys.readouterr().out


def test_a_scenario_is_played(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps(raw_pod("new")))
    arguments = ["-f", str(manifest), "--count", "2", "--weight", "ImageLocality=3", "--add-nodes", "node-1:2"]

    assert main(["whatif", "--server", url, *arguments, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["placedCount"] == 2 and answer["nodeCount"] == 5
    assert main(["whatif", "--server", url, "--disable", "NodeResourcesFit"]) == 0
    assert "The pod would be placed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["explain", "pod", "nobody"], 1, "no pod `default/nobody`"),
        (["whatif", "--drain", "nowhere"], 1, "drain: no node `nowhere`"),
        (["whatif", "--weight", "x"], 2, "expected PLUGIN=NUMBER"),
        (["whatif", "--add-nodes", "x:y"], 2, "is not a number"),
    ],
)
def test_what_is_wrong_is_said(
    url: str, arguments: list[str], status: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--server", url]) == status
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("server", ["http://example.com", "ftp://x", "nonsense", "http://127.0.0.1:1"])
def test_servers_that_cannot_be_asked(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pending", "--server", server]) == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "otherwise"),
    [
        (["dashboard"], ""),
        (["pending"], ""),
        (["whatif", "--drain", "n1"], ""),
        (["top", "-o", "json"], ""),
        (["explain", "pod", "web"], "; or read a decision file with --file"),
    ],
)
def test_a_dead_server_is_named_with_what_to_do_and_nothing_is_announced(
    command: list[str], otherwise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hint offers what the command takes, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"

    assert main([*command, "--server", server]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        f"error: {server} does not answer: connection refused; nothing listens there",
        "hint: name the scheduler with --server or BAYPLAN_SERVER, one in a cluster after `kubectl port-forward`"
        f"{otherwise}",
    ]


def test_a_decision_file_is_read_without_a_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = DecisionFile(tmp_path / "d.jsonl")
    file.append(
        DecisionRecord(
            number=1,
            time=1.0,
            pod="default/web",
            uid="u",
            profile="p",
            node="n1",
            outcome="bound",
            nodes=5,
            feasible=1,
            funnel=(Step(plugin="TaintToleration", rejected=4, left=1),),
        )
    )
    file.flush()

    assert main(["explain", "pod", "web", "--file", str(file.path)]) == 0
    out = capsys.readouterr().out
    assert "default/web was placed on n1." in out
    assert "5 nodes → 1 after TaintToleration" in out
    assert main(["explain", "node", "n1", "--file", str(file.path), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["pod"] == "default/web"
    assert main(["explain", "pod", "wep", "--file", str(file.path)]) == 1
    assert "did you mean `default/web`?" in capsys.readouterr().err
    assert main(["explain", "pod", "web", "--file", str(tmp_path / "nothing")]) == 2


def test_a_kubeconfig_may_say_where_its_scheduler_answers(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pending", "--brief", "--kubeconfig", named(tmp_path, {"server": url})]) == 0
    assert "1 pod pending" in capsys.readouterr().out


def named(tmp_path: Path, extension: dict[str, str]) -> str:
    cluster = {"server": "https://x", "extensions": [{"name": EXTENSION, "extension": extension}]}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    ("server", "token"),
    [
        (None, "of-kubeconfig"),
        ("http://127.0.0.1:7", "of-kubeconfig"),
        ("http://127.0.0.1:7/?token=of-address", "of-address"),
        ("http://127.0.0.1:8", ""),
    ],
)
def test_a_token_is_sent_to_the_address_that_it_is_for(server: str | None, token: str, tmp_path: Path) -> None:
    kubeconfig = named(tmp_path, {"server": "http://127.0.0.1:7", "token": "of-kubeconfig"})

    where = endpoint(SchedulerOptions(server=server, kubeconfig=kubeconfig))

    assert where.token == token
    assert "?" not in where.server and not where.server.endswith("/")
    assert token == "" or token not in repr(where)
