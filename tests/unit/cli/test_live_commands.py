"""Every command that talks to a cluster, on one of `bayplan up`: contexts, namespaces, names as for kubectl, forms."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.unit.cli.live_cluster import BAYPLAN, Cluster, cluster, status_of

__all__ = ["cluster"]

pytestmark = pytest.mark.timeout(300)
ASKING = {
    "explain": ["explain", "po/cart", "--brief"],
    "pending": ["pending", "--brief"],
    "whatif": ["whatif", "--drain", "node-1"],
    "top": ["top", "--once"],
    "get": ["get", "po"],
    "doctor": ["doctor"],
}
DRAWN = {
    **ASKING,
    "explain": ["explain", "po/cart", "-n", "shop"],
    "explain, pending": ["explain", "po/big"],
    "explain node": ["explain", "node", "node-1"],
    "help": ["--help"],
}
FORMS = {
    "explain": ("table", "wide", "json", "yaml"),
    "pending": ("table", "wide", "json", "yaml", "name"),
    "whatif": ("table", "wide", "json", "yaml"),
    "top": ("json", "yaml"),
    "get": ("table", "wide", "json", "yaml", "name"),
    "doctor": ("table", "json", "yaml"),
}
SMALL = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: app}}]}}\n"


@pytest.fixture
def contexts(cluster: Cluster, tmp_path: Path) -> str:
    """A kubeconfig whose current context leads nowhere, with another one for the namespace `shop`."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    inner = {**config["contexts"][0]["context"], "namespace": "shop"}
    config["contexts"] += [
        {"name": "shopping", "context": inner},
        {"name": "nowhere", "context": {**inner, "cluster": "gone"}},
    ]
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({**config, "current-context": "nowhere"}))
    return str(file)


@pytest.mark.parametrize("name", ASKING)
def test_a_context_leads_every_command_to_its_cluster(name: str, cluster: Cluster, contexts: str) -> None:
    there = cluster.run(*ASKING[name], "--context", "shopping", KUBECONFIG=contexts)
    unknown = cluster.run(*ASKING[name], "--context", "typo", KUBECONFIG=contexts)

    assert there.returncode in ((0, 1) if name == "doctor" else (0,)), there.stderr
    assert there.stdout
    assert unknown.returncode == 2 and "typo" in unknown.stderr


def test_the_namespace_of_a_context_is_that_of_objects(cluster: Cluster, contexts: str) -> None:
    def run(*arguments: str, given: str = "") -> str:
        done = cluster.run(*arguments, "--context", "shopping", given=given, KUBECONFIG=contexts)
        assert done.returncode == 0, done.stderr
        return done.stdout

    applied = run("apply", "-f", "-", given=SMALL.format(name="contextual"))
    names = run("get", "po", "-o", "name").split()
    everywhere = run("get", "po", "-A", "-o", "name").split()
    elsewhere = run("get", "po", "-n", "default", "-o", "name").split()
    deleted = run("delete", "po", "contextual")

    assert applied == "pod/contextual created\n" and "contextual" in deleted
    assert {"pod/contextual", "pod/cart"} <= set(names) and "pod/big" not in names
    assert {"pod/contextual", "pod/big"} <= set(everywhere)
    assert "pod/contextual" not in elsewhere and "pod/big" in elsewhere


def test_short_names_slashes_and_comma_lists_are_taken_by_every_command(cluster: Cluster) -> None:
    both = SMALL.format(name="one") + "---\n" + SMALL.format(name="two")
    assert cluster.run("apply", "-f", "-", given=both).returncode == 0
    listed = cluster.run("get", "po/one", "po/two", "-o", "name").stdout.split()
    explained = cluster.run("explain", "po", "one,two", "--brief", "-o", "json").stdout
    drained = cluster.run("whatif", "--drain", "node-1,no/node-2", "--without-pending", "-o", "json").stdout
    apart = cluster.run("whatif", "--drain", "node-1", "--drain", "node-2", "--without-pending", "-o", "json").stdout
    deleted = cluster.run("delete", "po", "one,two", "-o", "name").stdout.split()

    assert listed == deleted == ["pod/one", "pod/two"]
    assert [each["pod"] for each in json.loads(explained)] == ["default/one", "default/two"]
    assert json.loads(drained) == json.loads(apart)


@pytest.mark.parametrize(
    ("given", "status", "problem"),
    [
        ("", 2, "error: standard input: holds no Kubernetes object"),
        ("only words\n", 2, "error: standard input: holds no Kubernetes object"),
        ("apiVersion: 5\nkind: [a]\nmetadata: {name: a}\n", 2, "error: the cluster has no kind `['a']` in `5`"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: [a]\n",
            2,
            "error: Pod: `metadata` is ['a'], expected fields and values",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: ../nodes}\n", 2, "error: Pod: '../nodes' can be no name of an"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", 2, "error: Pod: 5 can be no name of an object"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 'a?b'}\n", 1, "error: "),
        ("apiVersion: v1\nkind: Pod\nmetadata: null\n", 1, "error: "),
    ],
)
def test_manifests_of_no_object_are_error_lines(cluster: Cluster, given: str, status: int, problem: str) -> None:
    done = cluster.run("apply", "-f", "-", given=given)

    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(problem)


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, forms in FORMS.items() for form in forms])
def test_every_form_of_an_answer_can_be_read(name: str, form: str, cluster: Cluster) -> None:
    extra = ["-n", "shop"] if name == "explain" else []
    command = ["top"] if name == "top" else ASKING[name]
    done = cluster.run(*command, *extra, "-o", form)

    assert done.returncode in ((0, 1) if name == "doctor" else (0,)), done.stderr
    if form == "json":
        assert json.loads(done.stdout)
    elif form == "yaml":
        assert yaml.safe_load(done.stdout)
    elif form == "name":
        assert all(line.startswith("pod/") for line in done.stdout.split())
    else:
        assert done.stdout.strip() and not done.stdout.lstrip().startswith("{")


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "node", "node-1"],
        ["explain", "po/big", "-o", "json"],
        ["pending", "-o", "name"],
        ["whatif", "--drain", "node-1", "-o", "yaml"],
        ["top", "-o", "json"],
        ["doctor", "-o", "json"],
        ["apply", "-f", "POD"],
        ["delete", "-f", "POD"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_a_command_quietly(cluster: Cluster, command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(SMALL.format(name="piped"))
    if command[0] == "delete":
        assert cluster.run("apply", "-f", str(file)).returncode == 0
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*BAYPLAN, *(str(file) if word == "POD" else word for word in command)],
        stdout=writing,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=cluster.environment,
        timeout=120,
        check=False,
    )
    os.close(writing)

    assert done.returncode == 141, done.stderr
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("width", ["60", "120"])
@pytest.mark.parametrize("name", DRAWN)
def test_answers_keep_words_whole_and_within_the_width(name: str, width: str, cluster: Cluster) -> None:
    """Commands to be copied stay on one line, and doctor names what to run as it is."""
    done = cluster.run(*DRAWN[name], COLUMNS=width, NO_COLOR="1")
    lines = done.stdout.splitlines()

    assert "\x1b" not in done.stdout
    assert [line for line in lines if len(line) > int(width) and not re.match(" +(kubectl|bayplan) ", line)] == []
    for word in ("unschedulable", "NodeResourcesFit"):
        broken = [line for line in lines if line.rstrip().endswith((word[:-2], word[:-4], word[:-6]))]
        assert broken == []


def test_doctor_lists_pods_that_no_scheduler_serves(cluster: Cluster) -> None:
    """A warning at first, an error when they have waited for long: which of the two depends on their age."""
    said = "1 pod waits for the scheduler `nobody`, and no scheduler of that name has looked at it: default/orphan"
    cluster.until("doctor", said=said, COLUMNS="200")
    found = json.loads(cluster.run("doctor", "-o", "json").stdout)

    [orphan] = [each for each in found if "`nobody`" in each["what"]]
    assert orphan["level"] in ("warning", "error") and said in orphan["what"]


def test_the_dashboard_of_this_machine_wants_the_token_of_the_printed_address(cluster: Cluster) -> None:
    """The command asks with its own user's credentials, so other users of the machine must not reach it."""
    with subprocess.Popen(
        [*BAYPLAN, "dashboard"], stderr=subprocess.PIPE, text=True, env=cluster.environment
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        server, _, token = line.split()[1].partition("/dashboard/?token=")
        pages = ("/", "/dashboard/", "/bayplan/v1/overview")
        refused = [status_of(server + path) for path in pages]
        guessed = status_of(f"{server}/bayplan/v1/overview", "0" * len(token))
        opened = status_of(f"{server}/bayplan/v1/overview", token)
        process.send_signal(signal.SIGINT)
        process.stderr.read()

    assert refused == [401] * len(pages)
    assert (guessed, opened) == (401, 200)
