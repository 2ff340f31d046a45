"""Workload and cluster files: what they stand for, and what is refused with its line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bayplan.api.decode import InputError
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.settings import load_settings
from bayplan.sim.compare import PolicyVariant, RunPlan, run_variants
from bayplan.sim.engine.simulation import SimulationError, SimulationOptions
from bayplan.sim.experiment import Experiment, RunOutcome
from bayplan.sim.workloads.loading import read_cluster, read_workload
from bayplan.sim.workloads.running import FileWorkload
from bayplan.testing import node

HEAD = "apiVersion: bayplan.dev/v1alpha1\nkind: Workload\n"
POD = "template: {spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}"


def run(folder: Path, text: str, *, until: float | None = None, nodes: int = 3) -> RunOutcome:
    path = folder / "workload.yaml"
    path.write_text(HEAD + text)
    options = SimulationOptions(until_seconds=until)
    objects = [node(f"n{number}", cpu=4) for number in range(nodes)]
    return Experiment(objects, FileWorkload(read_workload(path), source=path), options).run(load_settings(None, ()))


def times(outcome: RunOutcome) -> list[float]:
    return [round(line.time, 1) for line in outcome.decisions if line.node]


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("{at: 10s, count: 2}", [10.0, 10.0]),
        ("{rate: 6/m, count: 3}", [0.0, 10.0, 20.0]),
        ("{rate: 1/s, start: 5s, until: 7s}", [5.0, 6.0, 7.0]),
        ("{cron: '*/5 * * * *', until: 10m}", [0.0, 300.0, 600.0]),
    ],
)
def test_pods_arrive_as_stated(tmp_path: Path, arrivals: str, expected: list[float]) -> None:
    outcome = run(tmp_path, f"items:\n- {{name: a, duration: 1s, arrivals: {arrivals}, {POD}}}\n")

    assert times(outcome) == expected


def test_random_arrivals_have_their_rate(tmp_path: Path) -> None:
    outcome = run(tmp_path, f"items:\n- {{name: a, duration: 1s, arrivals: {{poisson: 60/m, until: 10m}}, {POD}}}\n")

    assert 500 < len(times(outcome)) < 700


def test_arrivals_and_durations_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("time,duration\n7,100\n3,\n")
    outcome = run(tmp_path, f"items:\n- {{name: a, duration: 1s, arrivals: {{times: times.csv}}, {POD}}}\n")

    assert times(outcome) == [3.0, 7.0]
    assert outcome.seconds == pytest.approx(107.0)


def test_a_deployment_replaces_pods_and_is_rolled_out_without_falling_short(tmp_path: Path) -> None:
    """Nine pods in all: three, and three more at each of two rollouts; never fewer than three run after the start."""
    outcome = run(
        tmp_path,
        f"items:\n- {{name: web, kind: Deployment, replicas: 3, rollout: {{every: 1h}}, {POD}}}\n",
        until=9000.0,
    )

    assert len(times(outcome)) == 9
    assert min(sample.running for sample in outcome.samples[1:]) >= 3
    assert outcome.samples[-1].running == 3


def test_a_job_runs_until_enough_pods_have_finished(tmp_path: Path) -> None:
    job = f"{{name: j, kind: Job, completions: 5, parallelism: 2, duration: 10s, {POD}}}"

    assert times(run(tmp_path, f"items:\n- {job}\n")) == [0.0, 0.0, 10.0, 10.0, 20.0]


def test_pods_of_a_failed_node_are_replaced_elsewhere(tmp_path: Path) -> None:
    items = f"items:\n- {{name: web, kind: Deployment, replicas: 6, {POD}}}\n"

    outcome = run(tmp_path, items + "nodes:\n- fail: {every: 6h, for: 1h}\n", until=86_400.0)

    assert outcome.measures["pods.bound"] > 6
    assert outcome.samples[-1].running + outcome.samples[-1].pending == 6


def test_nodes_are_drained_added_and_removed(tmp_path: Path) -> None:
    text = f"items:\n- {{name: web, kind: Deployment, replicas: 4, {POD}}}\n"
    text += "nodes:\n- drain: {node: n0, at: 1h, for: 1h}\n"
    text += "- add: {at: 2h, count: 2, name: extra, template: {status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}}}\n"
    text += "- remove: {node: n1, at: 3h}\n"

    outcome = run(tmp_path, text, until=20_000.0, nodes=2)

    drained = [line.node for line in outcome.decisions if line.node and line.time > 3599]
    assert Counter(name[:5] for name in drained if name == "n1")["n1"] == 2
    assert {name for name in drained if name.startswith("extra")}
    assert outcome.samples[-1].nodes == 3
    assert outcome.samples[-1].running == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("items: 3\n", ":3: items: Expected `array`, got `int`"),
        ("items:\n- {name: a, colour: red, " + POD + "}\n", ":4: items[0]: Object contains unknown field `colour`"),
        (
            "items:\n- name: a\n  duration: 5 parsecs\n  " + POD + "\n",
            ":5: `5 parsecs` is no time; write 90s, 15m, 2h30m or 7d",
        ),
        (
            "items:\n- name: a\n  arrivals: {rate: fast}\n  " + POD + "\n",
            ":5: `fast` is no rate; write 5/s, 30/m, 12/h or 100/d",
        ),
        (
            "items:\n- name: a\n  arrivals: {cron: '* *'}\n  " + POD + "\n",
            ":5: cron: expected exactly 5 fields, found 2: [* *]",
        ),
        (
            "items:\n- name: a\n  arrivals: {cron: 'CRON_TZ=Europe/Berlin 0 9 * * *'}\n  " + POD + "\n",
            ":5: cron: a schedule is in UTC; leave `TZ=` out",
        ),
        (
            "items:\n- name: a\n  arrivals: {cron: '0 0 31 2 *'}\n  " + POD + "\n",
            ":5: cron: `0 0 31 2 *` never comes: there is no such day",
        ),
        (
            "items:\n- name: a\n  arrivals: {count: 3}\n  " + POD + "\n",
            ":5: state one of at, rate, poisson, cron and times",
        ),
        ("items:\n- name: a\n  replicas: 0\n  " + POD + "\n", ":5: replicas is 0, expected 1 or more"),
        ("items:\n- name: a\n  replicas: 99999999999\n  " + POD + "\n", "99999999999, expected 10000000 or less"),
        ("items:\n- name: a\n  completions: 99999999\n  " + POD + "\n", ":5: completions is 99999999, expected 10"),
        ("items:\n- name: a\n  rollout: {every: 1h, surge: 0}\n  " + POD + "\n", ":5: surge is 0, expected 1 or more"),
        ("items:\n- name: a\n  arrivals: {at: 0s, count: 99999999999}\n  " + POD + "\n", "expected 0 to 10000000"),
        ("items:\n- name: a\n  duration: {uniform: [8m, 2m]}\n  " + POD + "\n", ":5: the shortest time comes first"),
        ("items:\n- name: a\n  duration: {lognormal: {median: 1m, sigma: 1e9}}\n  " + POD + "\n", ":5: sigma is a"),
        ("items:\n- name: a\n  duration: {lognormal: {median: 1m, sigma: -1}}\n  " + POD + "\n", ":5: sigma is a"),
        (
            "items:\n- {name: a, " + POD + "}\n- {name: a, " + POD + "}\n",
            ":5: there are two items of the name `a`",
        ),
        ("nodes:\n- add: {at: 1h, count: -1, name: n, template: {}}\n", ":4: count is -1, expected 0 to 100000"),
        ("items:\n- name: a\n  rollout: {every: 0s}\n  " + POD + "\n", ":5: `0s` is no time between two events"),
        ("nodes:\n- fail: {every: 0s, for: 0s}\n", ":4: `0s` is no time between two events"),
        (
            "items:\n- name: a\n  arrivals: {rate: " + "9" * 400 + "/s}\n  " + POD + "\n",
            "9` is no rate between one in 30 years and a million a second",
        ),
        ("nodes:\n- {}\n", ":4: state one of fail, drain, add and remove"),
        (
            "items:\n- name: a\n  template:\n    spec:\n      contianers: []\n",
            ":7: template: unknown field `spec.contianers`; did you mean `containers`?",
        ),
        ("items:\n- name: a\n  template: {sepc: {}}\n", ":5: template: unknown field `sepc`; did you mean `spec`?"),
        ("items:\n- name: a\n  template: {spec: []}\n", ":5: `spec` of the template is [], expected fields"),
        (
            "nodes:\n- add:\n    at: 1h\n    name: n\n    template: {status: {capcity: {}}}\n",
            ":7: template: unknown field `status.capcity`; did you mean `capacity`?",
        ),
        (
            "nodes:\n- add:\n    at: 1h\n    name: n\n    template: {status: {capacity: {cpu: four}}}\n",
            ":7: status.allocatable[cpu]: `four` is not a quantity",
        ),
        (
            "items:\n- name: a\n  replicas: 5\n  " + POD + "\n",
            ":5: `replicas` is a field of a Deployment, and the item is",
        ),
        (
            "items:\n- name: a\n  kind: Job\n  rollout: {every: 1h}\n  " + POD + "\n",
            ":6: `rollout` is a field of a Dep",
        ),
        ("items:\n- name: a\n  kind: Job\n  backoffLimit: -1\n  " + POD + "\n", ":6: backoffLimit is -1, expected 0"),
        (
            "items:\n- name: a\n  arrivals: {at: 2h, until: 1h}\n  " + POD + "\n",
            ":5: `until` is without effect: at says",
        ),
        ("until: soon\n", ":3: `soon` is no time; write 90s, 15m, 2h30m or 7d"),
        ("items: [\n", "expected"),
    ],
)
def test_a_broken_workload_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(HEAD + text)

    with pytest.raises(InputError) as caught:
        read_workload(path)

    assert str(caught.value).startswith(str(path))
    assert problem in str(caught.value)


def test_times_of_a_file_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("time\n3\n-1\n")

    with pytest.raises(InputError, match=r"times.csv:3: time is `-1`, expected seconds of 0 or more"):
        run(tmp_path, f"items:\n- {{name: a, arrivals: {{times: times.csv}}, {POD}}}\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("time,colour\n1,red\n", r"times.csv:1: column `colour` is unknown"),
        ("duration\n1\n", r"times.csv:1: column `time` is missing"),
        ("time\n1\n2,3\n", r"times.csv:3: expected 1 values"),
        ("time,duration\n1,2\n3\n", r"times.csv:3: expected 2 values"),
        ("time\nnan\n", r"times.csv:2: time is `nan`"),
        ("time,time\n1,2\n", r"times.csv:1: column `time` is there twice"),
        (f"{'a' * 200_000}\n", r"times.csv:1: no CSV: field larger than field limit"),
        (f"time\n{'9' * 9000}\n", r"times.csv:2: time is `9{40}`, expected"),
    ],
)
def test_a_broken_file_of_times_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "times.csv").write_text(text)

    with pytest.raises(InputError, match=problem):
        run(tmp_path, f"items:\n- {{name: a, arrivals: {{times: times.csv}}, {POD}}}\n")


def test_times_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    """Which writes a mark of the byte order and other ends of lines."""
    (tmp_path / "times.csv").write_bytes(b"\xef\xbb\xbftime,duration\r\n7,100\r\n3,\r\n")

    assert times(run(tmp_path, f"items:\n- {{name: a, arrivals: {{times: times.csv}}, {POD}}}\n")) == [3.0, 7.0]


def test_times_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_bytes(b"time\n\xff\n")

    with pytest.raises(InputError, match=r"times.csv: not UTF-8 text \(byte 5\)"):
        run(tmp_path, f"items:\n- {{name: a, arrivals: {{times: times.csv}}, {POD}}}\n")


@pytest.mark.parametrize(
    "text",
    [
        f"items:\n- {{name: a, arrivals: {{rate: 1/s}}, {POD}}}\n",
        f"items:\n- {{name: a, kind: Deployment, duration: 1m, {POD}}}\n",
        f"items:\n- {{name: a, kind: Deployment, rollout: {{every: 1h}}, {POD}}}\n",
        f"items:\n- {{name: a, {POD}}}\nnodes:\n- fail: {{every: 1h}}\n",
    ],
)
def test_a_workload_that_never_ends_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"workload\.yaml: .*never ends.*\nhint: state .*--until"):
        run(tmp_path, text)


def test_more_pods_than_a_machine_has_memory_for_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"workload.yaml: item `a`: `900000/s` until then are 3,240,000,000 pods, expected 10,000,000 or less",
    ):
        run(tmp_path, f"items:\n- {{name: a, arrivals: {{rate: 900000/s}}, {POD}}}\n", until=3600.0)


def test_a_pod_that_is_in_the_cluster_already_is_refused(tmp_path: Path) -> None:
    """The API server would refuse it too; the other pod must not vanish."""
    (tmp_path / "dump.yaml").write_text(DUMP)
    (tmp_path / "workload.yaml").write_text(HEAD + f"items:\n- {{name: db, namespace: a, {POD}}}\n")
    plan = RunPlan(workload=tmp_path / "workload.yaml", cluster=(tmp_path / "dump.yaml",))

    with pytest.raises(SimulationError, match=r"pod `a/db-0` of the workload is there already\nhint: "):
        plan.experiment().run(load_settings(None, ()))


def test_items_of_one_name_in_two_namespaces_draw_each_for_themselves(tmp_path: Path) -> None:
    items = [f"- {{name: a, namespace: {space}, arrivals: {{poisson: 1/m}}, {POD}}}\n" for space in ("x", "y")]

    outcome = run(tmp_path, "items:\n" + "".join(items), until=600.0)

    assert len(set(times(outcome))) > len(times(outcome)) // 2


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ("drain: {node: n11, at: 1h}", r"workload.yaml: nodes\[1\]: there is no node `n11`; did you mean `n1`\?"),
        ("remove: {node: elsewhere, at: 1h}", r"nodes\[1\]: there is no node `elsewhere`$"),
        (
            "add: {at: 1h, name: more, template: {}}",
            r"nodes\[1\]: there is a node `more-0` already; give the new nodes another name",
        ),
        ("fail: {every: 1h, nodes: gpu-}", r"nodes\[1\]: there is no node whose name begins with `gpu-`"),
    ],
)
def test_an_event_of_a_node_that_never_is_there_is_refused(tmp_path: Path, event: str, problem: str) -> None:
    """A drain that drains nothing would pass for one that costs nothing."""
    added = "add: {at: 0s, name: more, template: {status: {capacity: {cpu: 4}}}}"
    (tmp_path / "dump.yaml").write_text(DUMP)
    (tmp_path / "workload.yaml").write_text(HEAD + f"until: 2h\nnodes:\n- {added}\n- {event}\n")
    plan = RunPlan(workload=tmp_path / "workload.yaml", cluster=(tmp_path / "dump.yaml",))

    with pytest.raises(InputError, match=problem):
        plan.check()


def test_events_of_nodes_that_are_there_or_come_later_are_taken(tmp_path: Path) -> None:
    added = "add: {at: 0s, name: more, template: {status: {capacity: {cpu: 4}}}}"
    others = "- drain: {node: more-0, at: 1h}\n- remove: {node: n1, at: 1h}\n- fail: {every: 1h, nodes: more}\n"
    others += "- remove: {node: more-0, at: 30m}\n- add: {at: 90m, name: more, template: {}}\n"
    (tmp_path / "dump.yaml").write_text(DUMP)
    (tmp_path / "workload.yaml").write_text(HEAD + f"until: 2h\nnodes:\n- {added}\n{others}")

    RunPlan(workload=tmp_path / "workload.yaml", cluster=(tmp_path / "dump.yaml",)).check()


def test_a_workload_that_never_fits_ends_with_its_reasons(tmp_path: Path) -> None:
    outcome = run(tmp_path, "items:\n- {name: a, " + POD.replace("cpu: 1", "cpu: 100") + "}\n")

    assert outcome.measures["pods.pending"] == 1
    assert next(iter(outcome.reasons)).startswith("0/3 nodes are available: 3 Insufficient cpu")


def test_a_cluster_is_made_of_pools_dumps_and_lists(tmp_path: Path) -> None:
    pool = "apiVersion: bayplan.dev/v1alpha1\nkind: NodePool\nname: p\ncount: 2\n"
    pool += "template: {status: {capacity: {cpu: 4}}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: single}\n"
    (tmp_path / "cluster.yaml").write_text(pool)
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n")

    found = read_cluster([tmp_path / "cluster.yaml", tmp_path / "nodes.csv"])

    assert [item.name for item in found] == ["p-0", "p-1", "single", "openb-node-0000"]


POOL = """\
apiVersion: bayplan.dev/v1alpha1
kind: NodePool
name: p
count: 1
template: {status: {capacity: {cpu: 4}}}
"""
DUMP = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 20}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 20}}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-1
    namespace: a
    ownerReferences: [&rs {apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: w, controller: true}]
  spec: {nodeName: n1, containers: [{name: main, resources: {requests: {cpu: 1}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: db-0, namespace: a, ownerReferences: [{<<: *rs, kind: StatefulSet}]}
  spec: {nodeName: n1, containers: [{name: main, resources: {requests: {cpu: 1}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: single, namespace: a}
  spec: {nodeName: n1, containers: [{name: main, resources: {requests: {cpu: 1}}}]}
"""


def test_pods_of_a_dump_are_replaced_as_their_controllers_do(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(DUMP)
    (tmp_path / "workload.yaml").write_text(HEAD + "until: 1h\nnodes:\n- drain: {node: n1, at: 10m}\n")
    plan = RunPlan(workload=tmp_path / "workload.yaml", cluster=(tmp_path / "dump.yaml",))

    outcome = plan.experiment().run(load_settings(None, ()))

    assert [(line.pod, line.node) for line in outcome.decisions] == [("a/web-1-again-1", "n2"), ("a/db-0", "n2")]


GANG = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train, namespace: default}
spec: {minMember: 3, scheduleTimeoutSeconds: 120}
---
apiVersion: bayplan.dev/v1alpha1
kind: NodePool
name: n
count: 1
template: {status: {capacity: {cpu: 2, memory: 8Gi, pods: 20}}}
"""


GANG_CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
    multiPoint: {enabled: [{name: Coscheduling}]}
"""


def test_a_gang_waits_until_all_of_it_fits(tmp_path: Path) -> None:
    """Three pods and room for two: none is bound before a second node comes, and then all are."""
    (tmp_path / "cluster.yaml").write_text(GANG)
    pods = POD.replace("{spec:", "{metadata: {labels: {scheduling.x-k8s.io/pod-group: train}}, spec:")
    added = "add: {at: 30m, name: more, template: {status: {capacity: {cpu: 2, memory: 8Gi, pods: 20}}}}"
    text = f"until: 1h\nitems:\n- {{name: train, arrivals: {{at: 0s, count: 3}}, {pods}}}\nnodes:\n- {added}\n"
    (tmp_path / "workload.yaml").write_text(HEAD + text)
    plan = RunPlan(workload=tmp_path / "workload.yaml", cluster=(tmp_path / "cluster.yaml",))

    (tmp_path / "gangs.yaml").write_text(GANG_CONFIG)

    (outcome,) = run_variants(plan, [PolicyVariant(name="gangs", config=tmp_path / "gangs.yaml")])

    running = {sample.time: sample.running for sample in outcome.samples}
    assert {count for time, count in running.items() if 0.0 < time < 1800.0} == {0}
    assert outcome.samples[-1].running == 3
    assert outcome.measures["wait.max"] >= 1800.0


def test_a_node_or_a_pod_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(DUMP)

    with pytest.raises(InputError, match=r"dump.yaml: Node `n1` is there twice"):
        read_cluster([tmp_path / "dump.yaml", tmp_path / "dump.yaml"])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("nodeName: n1,", "nodeNam: n1,", ":12: unknown field `spec.nodeNam`; did you mean `nodeName`?"),
        ("status: {allocatable", "status: {alocatable", ":4: unknown field `status.alocatable`; did you mean"),
        (
            "DUMP",
            POOL.replace("status: {", "statsu: {"),
            ":5: template: unknown field `statsu`; did you mean `status`?",
        ),
    ],
)
def test_a_misspelt_field_of_a_cluster_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    """Without it, a node would offer nothing, and a pod ask for nothing."""
    (tmp_path / "dump.yaml").write_text(new if old == "DUMP" else DUMP.replace(old, new, 1))

    with pytest.raises(InputError, match="unknown field") as caught:
        read_cluster([tmp_path / "dump.yaml"])

    assert f"dump.yaml{problem}" in str(caught.value)


def test_what_an_api_server_wrote_may_have_fields_that_are_newer(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(DUMP.replace("{name: n1}", "{name: n1, resourceVersion: '7'}, newer: 1"))

    assert read_cluster([tmp_path / "dump.yaml"])


BY_HAND = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {priorityClassName: high, containers: [{name: c, resources: {limits: {cpu: 3}}}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""


def test_what_was_written_by_hand_gets_the_defaults_of_an_api_server(tmp_path: Path) -> None:
    """A node offers its capacity, a limit is a request, and a class is a priority: `evaluate` says the same."""
    (tmp_path / "cluster.yaml").write_text(BY_HAND)

    one, web, _ = read_cluster([tmp_path / "cluster.yaml"])

    assert isinstance(one, Node) and one.status.allocatable == {"cpu": 4, "memory": "8Gi", "pods": 10}
    assert isinstance(web, Pod) and web.priority == 1000
    assert web.spec.containers[0].resources.requests == {"cpu": 3}


def test_a_class_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(BY_HAND.replace("name: high}", "name: low}"))

    with pytest.raises(InputError, match="high"):
        read_cluster([tmp_path / "cluster.yaml"])


def test_a_cluster_without_nodes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")

    with pytest.raises(InputError, match="no node in it"):
        read_cluster([tmp_path / "cluster.yaml"])


def test_a_demand_is_for_openb_lists(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(HEAD)

    with pytest.raises(InputError, match="openb"):
        run_variants(RunPlan(workload=tmp_path / "w.yaml", demand_percent=130), [PolicyVariant(name="a")])
