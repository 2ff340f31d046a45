"""`bayplan evaluate` on manifests, from the command line to what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.unit.cli.conftest import Run


def test_people_get_a_verdict_a_funnel_scores_and_reasons(folder: Path, run: Run) -> None:
    ran = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml")

    assert ran.status == 0
    assert ran.err == ""
    assert ran.out.splitlines()[0] == "default/web goes to large, the only one of 2 nodes that fits."
    assert "2 nodes → 1 after NodeResourcesFit" in ran.out
    assert "NodeResourcesBalancedAllocation" in ran.out
    assert "Insufficient cpu" in ran.out


def test_programs_get_the_shape_of_a_case(folder: Path, run: Run) -> None:
    shown = json.loads(run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml", "-o", "json").out)

    assert shown["pod"] == "default/web"
    assert shown["verdict"].startswith("default/web goes to large")
    assert shown["outcome"] == "scheduled"
    assert (shown["chosen"], shown["best"], shown["feasible"]) == ("large", ["large"], 1)
    assert shown["total"] == shown["scores"]["large"]["total"]
    assert shown["nodes"]["small"] == {
        "code": "Unschedulable",
        "plugin": "NodeResourcesFit",
        "reasons": ["Insufficient cpu"],
    }


def test_yaml_says_the_same_as_json(folder: Path, run: Run) -> None:
    arguments = ("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml", "-o")

    assert yaml.safe_load(run(*arguments, "yaml").out) == json.loads(run(*arguments, "json").out)


def test_each_pod_counts_when_the_next_is_placed(folder: Path, run: Run) -> None:
    pod = Path("pod.yaml").read_text().replace("1500m", "3")
    Path("three.yaml").write_text("---\n".join(pod.replace("web", f"web-{number}") for number in range(3)))
    shown = json.loads(run("evaluate", "-f", "cluster.yaml", "--pod", "three.yaml", "-o", "json").out)

    assert [step["pod"] for step in shown] == ["default/web-0", "default/web-1", "default/web-2"]
    assert [step.get("chosen") for step in shown] == ["large", "large", None]
    assert "2 Insufficient cpu" in shown[2]["message"]


def test_several_pods_are_summed_up(folder: Path, run: Run) -> None:
    out = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml", "--pod", "waiting").out
    summary = out[out.index("why not") :].splitlines()

    assert [line.split()[:2] for line in summary[2:4]] == [["default/web", "large"], ["default/waiting", "large"]]


def test_without_names_pods_come_in_the_order_of_the_queue(folder: Path, run: Run) -> None:
    Path("urgent.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: urgent}\nspec: {priority: 5, containers: [{name: a}]}\n"
    )
    shown = json.loads(run("evaluate", "-f", "cluster.yaml", "-f", "urgent.yaml", "-o", "json").out)

    assert [step["pod"] for step in shown] == ["default/urgent", "default/waiting"]


def test_victims_are_shown(folder: Path, run: Run) -> None:
    Path("pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: urgent}\n"
        "spec: {priority: 5, nodeName: '', containers: [{name: a, resources: {requests: {cpu: '2'}}}],\n"
        "  nodeSelector: {only: small}}\n"
    )
    Path("cluster.yaml").write_text(
        Path("cluster.yaml").read_text().replace("{name: small}", "{name: small, labels: {only: small}}")
    )
    table = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml")
    shown = json.loads(run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml", "-o", "json").out)

    assert table.out.splitlines()[0] == ("default/urgent fits nowhere now, and would preempt default/running on small.")
    assert "would leave small" in table.out
    assert shown["outcome"] == "preempts"
    assert shown["preemption"]["victims"] == {"small": ["default/running"]}


def test_a_gated_pod_is_not_decided_about(folder: Path, run: Run) -> None:
    Path("pod.yaml").write_text(
        Path("pod.yaml").read_text().replace("spec: {", "spec: {schedulingGates: [{name: g}], ")
    )
    ran = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml", "--require-schedulable")

    assert ran.status == 1
    assert ran.out == ("default/web is held back before scheduling by gate `g`.\n\n")


def test_an_unschedulable_pod_is_an_answer_unless_told_otherwise(folder: Path, run: Run) -> None:
    Path("pod.yaml").write_text(Path("pod.yaml").read_text().replace("1500m", "99"))
    arguments = ("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml")

    assert run(*arguments).status == 0
    assert run(*arguments, "--require-schedulable").status == 1
    assert run(*arguments).out.startswith("default/web is pending: it asks 99 CPU; the largest node has ")


def test_limits_count_as_requests_as_the_api_server_has_it(folder: Path, run: Run) -> None:
    Path("pod.yaml").write_text(Path("pod.yaml").read_text().replace("requests", "limits").replace("1500m", "99"))

    assert "2 Insufficient cpu" in run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml").out


def test_a_plugin_of_ones_own_takes_part(folder: Path, run: Run) -> None:
    Path("only.py").write_text(
        "from bayplan.framework import Plugin, Unresolvable\n\n"
        "class OnlySmall(Plugin):\n"
        "    def filter(self, state, pod, node):\n"
        "        return None if node.name == 'small' else Unresolvable('node(s) are too big')\n"
    )
    ran = run("evaluate", "-f", "cluster.yaml", "--pod", "default/waiting", "--plugin", "only.py")

    assert "default/waiting goes to small" in ran.out
    assert "node(s) are too big" in ran.out


def test_a_plugin_that_raises_is_named_once_with_its_line(folder: Path, run: Run) -> None:
    Path("broken.py").write_text(
        "from bayplan.framework import Plugin\n\n"
        "class Broken(Plugin):\n    def filter(self, state, pod, node):\n        raise RuntimeError('boom')\n"
    )
    ran = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml", "--plugin", "broken.py", "-o", "json")

    assert json.loads(ran.out)["outcome"] == "failed"
    assert ran.errors == ["error: plugin failed (plugin Broken, point filter): RuntimeError: boom, at broken.py:5"]


def test_a_cluster_without_nodes_is_an_answer(folder: Path, run: Run) -> None:
    Path("empty.yaml").write_text("")
    ran = run("evaluate", "-f", "empty.yaml", "--pod", "pod.yaml")

    assert ran.out.startswith("default/web is pending: no nodes available to schedule pods.")


def test_every_problem_of_a_configuration_is_a_line(folder: Path, run: Run) -> None:
    Path("c.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "parallelism: many\nprofiles:\n- foo: 1\n"
    )
    ran = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml", "--config", "c.yaml")

    assert ran.status == 2
    assert [error.split(": ")[:4] for error in ran.errors] == [
        ["error", "c.yaml", "line 3", "parallelism"],
        ["error", "c.yaml", "line 5", "profiles[0].foo"],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pod", "pod.yaml"), "no cluster"),
        (("-f", "nowhere.yaml", "--pod", "pod.yaml"), "nowhere.yaml: cannot be read"),
        (("-f", "cluster.yaml", "--pod", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("-f", "cluster.yaml", "--pod", "nobody"), "no such pod"),
        (("-f", "cluster.yaml", "--pod", "pod.yaml", "--config", "no"), "no: cannot be read"),
        (("-f", "cluster.yaml", "--pod", "pod.yaml", "--plugin", "no.py"), "no.py: cannot be read"),
        (("-f", "cluster.yaml", "--pod", "pod.yaml", "--plugin", "no:No"), "there is no module `no`"),
        (("-f", "cluster.yaml", "--pod", "pod.yaml", "--top", "0"), "--top: expected a number of 1 or more"),
        (("-f", "cluster.yaml", "--pod", "pod.yaml", "-o", "xml"), "xml"),
        (("-f", "cluster.yaml", "--pods", "pod.yaml"), "did you mean `--pod`?"),
    ],
)
def test_bad_input_is_one_error_and_status_2(folder: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    ran = run("evaluate", *arguments)

    assert ran.status == 2
    assert ran.out == ""
    assert len(ran.errors) == 1 and message in ran.errors[0]
    assert "Traceback" not in ran.err


def test_a_scheduler_that_no_profile_answers_to_is_an_error(folder: Path, run: Run) -> None:
    Path("pod.yaml").write_text(Path("pod.yaml").read_text().replace("spec: {", "spec: {schedulerName: default, "))
    ran = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml")

    assert ran.status == 2
    assert "did you mean `default-scheduler`?" in ran.errors[0]


def test_names_cannot_steer_the_terminal(folder: Path, run: Run) -> None:
    Path("cluster.yaml").write_text(
        'apiVersion: v1\nkind: Node\nmetadata: {name: "a\\e[31m[red]b"}\nstatus: {capacity: {cpu: "4", pods: "9"}}\n'
    )
    out = run("evaluate", "-f", "cluster.yaml", "--pod", "pod.yaml").out

    assert "\x1b" not in out
    assert "a\\x1b[31m[red]b" in out
