"""Commands on a real terminal against a cluster of `bayplan up`: top, watches, completion of names, contexts.

One cluster in a process of its own serves all of them; each command runs in a pseudo-terminal or in a pipe.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.unit.cli.live_cluster import BAYPLAN, Cluster, Terminal, cluster

__all__ = ["cluster"]

pytestmark = pytest.mark.timeout(300)


def test_top_draws_queue_rates_causes_and_decisions_and_ends_with_q(cluster: Cluster) -> None:
    terminal = Terminal(cluster, "top", "--interval", "0.3")
    for said in (
        "bound / s",
        "p99 ms",
        "refused",
        "Insufficient cpu",
        "waiting for the scheduler `nobody`",
        "shop/cart",
        "q ends",
    ):
        terminal.wait_for(said)
    terminal.press("q")

    assert terminal.end() == 0


def test_top_ends_quietly_with_ctrl_c_and_prints_once_into_a_pipe(cluster: Cluster) -> None:
    terminal = Terminal(cluster, "top")
    terminal.wait_for("bound / s")
    terminal.process.send_signal(signal.SIGINT)
    status = terminal.end()
    once = cluster.run("top", COLUMNS="60", NO_COLOR="1")

    assert status in (0, 130)
    assert "Traceback" not in terminal.text
    assert once.returncode == 0 and "wait because of" in once.stdout
    assert "q ends" not in once.stdout
    assert max(map(len, once.stdout.splitlines())) <= 60
    assert "\x1b" not in once.stdout


def test_watches_show_what_changes(cluster: Cluster) -> None:
    rows, causes = Terminal(cluster, "get", "pods", "-w", "-n", "shop"), Terminal(cluster, "pending", "-w")
    rows.wait_for("cart")
    causes.wait_for("Insufficient cpu")
    late = "apiVersion: v1\nkind: Pod\nmetadata: {name: late, namespace: shop}\n"
    late += "spec: {nodeSelector: {disk: none}, containers: [{name: c, image: app}]}\n"
    assert cluster.run("apply", "-f", "-", given=late).returncode == 0
    rows.wait_for("late")
    causes.wait_for("NodeAffinity")
    assert cluster.run("delete", "pod", "late", "-n", "shop").returncode == 0
    rows.wait_for("pod/late deleted")
    for terminal in (rows, causes):
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text


def test_names_of_pods_and_nodes_are_completed(cluster: Cluster) -> None:
    def asked(*words: str) -> list[str]:
        return [line.partition("\t")[0] for line in cluster.run("__complete", *words).stdout.splitlines()[:-1]]

    assert asked("explain", "pod", "b") == ["big"]
    assert asked("explain", "pod/b") == ["pod/big"]
    assert asked("explain", "pod", "-n", "shop", "") == ["cart"]
    assert asked("explain", "node", "node-2") == ["node-2"]
    assert asked("whatif", "--drain", "") == ["node-1", "node-2", "node-3"]
    assert asked("get", "pod", "o") == ["orphan"]
    assert asked("get", "nod") == ["nodes"]
    assert "shop" in asked("get", "pods", "-n", "s")
    program = Path(sys.executable).with_name("kubectl_complete-bayplan")
    done = subprocess.run(
        [program, "explain", "pod", "b"], capture_output=True, text=True, env=cluster.environment, check=True
    )
    assert done.stdout == "big\tunschedulable\n:4\n"


def test_the_context_gives_cluster_scheduler_and_namespace(cluster: Cluster, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    name = config["contexts"][0]["name"]
    inner = {**config["contexts"][0]["context"], "namespace": "shop"}
    config["contexts"].append({"name": "shopping", "context": inner})
    config["contexts"].append({"name": "nowhere", "context": {**inner, "cluster": "gone"}})
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({**config, "current-context": "nowhere"}))
    shopping = cluster.run("explain", "po/cart", "--brief", "--context", "shopping", KUBECONFIG=str(file))
    other = cluster.run("explain", "po/big", "--brief", "--context", name, KUBECONFIG=str(file))
    limited = cluster.run(
        "pending", "--brief", "-n", "shop", "-A", "-o", "name", "--context", name, KUBECONFIG=str(file)
    )
    unknown = cluster.run("explain", "pod", "x", "--context", "typo", KUBECONFIG=str(file))

    assert shopping.stdout.startswith("shop/cart runs on")
    assert other.stdout.startswith("default/big is pending")
    assert "pod/default/big" in limited.stdout.split()
    assert unknown.returncode == 2 and "`typo`" in unknown.stderr


def test_several_kinds_and_names_at_once(cluster: Cluster) -> None:
    both = cluster.run("get", "po,no", "-A")
    named = cluster.run("get", "pod/big", "node/node-1", "-o", "name")
    explained = cluster.run("explain", "po/big", "no/node-1", "--brief", "-o", "json")
    table = cluster.run("explain", "pods", "big,orphan", "--brief")

    assert "pod/big" in both.stdout and "node/node-3" in both.stdout
    assert named.stdout.split() == ["pod/big", "node/node-1"]
    assert [each.get("pod", each.get("node")) for each in yaml.safe_load(explained.stdout)] == ["default/big", "node-1"]
    assert "orphan waits for the scheduler `nobody`" in table.stdout or "nobody" in table.stdout


def test_pods_that_no_scheduler_serves_are_listed_and_metrics_are_served(cluster: Cluster) -> None:
    pending = cluster.run("pending", "--brief", "-o", "wide")
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    scheduler = config["clusters"][0]["cluster"]["extensions"][0]["extension"]
    import urllib.request

    request = urllib.request.Request(f"{scheduler['server']}/metrics")
    request.add_header("Authorization", f"Bearer {scheduler['token']}")
    with urllib.request.urlopen(request, timeout=60) as response:
        metrics = response.read().decode()

    assert "waiting for the scheduler `nobody`" in pending.stdout
    assert re.search(r'^scheduler_schedule_attempts_total\{.*result="scheduled".*\} [1-9]', metrics, re.MULTILINE)
    assert re.search(r'^scheduler_pending_pods\{queue="unschedulable"\} 1', metrics, re.MULTILINE)


def test_a_server_that_does_not_answer_is_named(cluster: Cluster) -> None:
    for command in (["pending"], ["dashboard"], ["top"], ["explain", "pod", "x"], ["whatif", "--drain", "a"]):
        done = cluster.run(*command, "--server", "http://127.0.0.1:9")
        assert done.returncode != 0, command
        assert "http://127.0.0.1:9 does not answer" in done.stderr, (command, done.stderr)
        assert "shows" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["get", "pods", "-A"],
        ["get", "pods", "-A", "-o", "yaml"],
        ["get", "pods", "-w"],
        ["pending", "--brief"],
        ["pending", "-w"],
        ["explain", "pod", "big", "--brief"],
        ["whatif", "--drain", "node-1"],
        ["top", "--once"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_each_command_quietly(cluster: Cluster, command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*BAYPLAN, *command],
        stdout=writing,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=cluster.environment,
        timeout=120,
        check=False,
    )
    os.close(writing)

    assert done.returncode == 141
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr and "error" not in done.stderr


def test_tables_fit_sixty_columns_without_colour(cluster: Cluster) -> None:
    for command in (["pending", "--brief"], ["explain", "pod", "big", "--brief"], ["whatif", "--drain", "node-1"]):
        done = cluster.run(*command, COLUMNS="60", NO_COLOR="1")
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        assert [line for line in done.stdout.splitlines() if len(line) > 60] == []


def test_a_shell_completes_the_name_of_a_pod_at_the_tab_key(cluster: Cluster) -> None:
    """In an interactive bash, as a person has it."""
    script = f'bayplan() {{ "{sys.executable}" -m bayplan.cli "$@"; }}; source <(bayplan completion bash); echo rea""dy'
    shell = Terminal(cluster, program=["bash", "--norc", "--noprofile", "-i"])
    shell.press(f"{script}\n")
    shell.wait_for("ready\n")
    shell.press("bayplan explain pod bi\t")
    shell.wait_for("explain pod big ")
    shell.press("\x15exit\n")

    assert shell.end() == 0


def test_programs_get_objects_and_figures(cluster: Cluster) -> None:
    small = "apiVersion: v1\nkind: Pod\nmetadata: {name: small}\nspec: {containers: [{name: c, image: app}]}\n"
    applied = cluster.run("apply", "-f", "-", "-o", "json", given=small)
    again = cluster.run("apply", "-f", "-", "-o", "name", given=small)
    deleted = cluster.run("delete", "pod", "small", "-o", "name")
    figures = cluster.run("top", "-o", "json")
    wide = cluster.run("explain", "pod", "cart", "-n", "shop", "--brief", "-o", "wide")

    assert yaml.safe_load(applied.stdout)["metadata"]["name"] == "small"
    assert "managedFields" not in applied.stdout
    assert again.stdout == deleted.stdout == "pod/small\n"
    assert yaml.safe_load(figures.stdout).keys() == {"overview", "timeline", "log", "pending"}
    assert wide.stdout.startswith("shop/cart runs on")
