"""What is wrong is said in a line that says what to do, and everything that can be scheduled still is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.framework import CycleState, Plugin, PodInfo, Status
from tests.controlplane.process import Guard
from tests.e2e.api_session import ApiSession, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import Ledger, keeping_ledger
from tests.e2e.objects import JsonObject, node, pod
from tests.e2e.running import RunSettings, account_for, all_bound, scheduling
from tests.e2e.scheduler_process import SchedulerProcess, run_to_end, said, write_config
from tests.waiting import answer, until

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def guard() -> Iterator[Guard]:
    made = Guard()
    yield made
    made.close()


@asynccontextmanager
async def small_cluster(cluster: Cluster) -> AsyncIterator[tuple[ApiSession, Ledger]]:
    async with api_session(cluster.kubeconfig) as api, keeping_ledger(cluster.kubeconfig) as ledger:
        await api.create(node("node-a"), node("node-b"))
        yield api, ledger


# Before anything runs


def test_a_kubeconfig_that_cannot_be_read_ends_with_a_hint(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    broken = tmp_path / "broken"
    broken.write_text("clusters: [\n")

    for path in (tmp_path / "absent", broken):
        status, output = run_to_end(f"--config={config}", f"--kubeconfig={path}")
        assert status != 0
        assert str(path) in output
        assert "hint: " in output
        assert "Traceback" not in output


def test_a_malformed_configuration_names_every_problem_with_its_place(tmp_path: Path) -> None:
    config = write_config(tmp_path, paralelism=3, percentageOfNodesToScore=400, profiles=[{"plugins": {"filtr": {}}}])

    status, output = run_to_end(f"--config={config}", f"--kubeconfig={tmp_path / 'none'}")

    assert status != 0
    assert said(output, "paralelism", "parallelism")
    assert said(output, "percentageOfNodesToScore", "400")
    assert said(output, "filtr", "filter")
    assert "Traceback" not in output


@pytest.mark.slow
def test_an_unknown_token_ends_with_what_to_renew(cluster: Cluster, tmp_path: Path) -> None:
    config, kubeconfig = write_config(tmp_path), cluster.token_kubeconfig("expired-long-ago")

    status, output = run_to_end(f"--config={config}", f"--kubeconfig={kubeconfig}")

    assert status != 0
    assert said(output, "the API server does not know this user", "401")
    assert said(output, "hint", "renew the token")
    assert "expired-long-ago" not in output
    assert "Traceback" not in output


def test_a_plugin_file_that_cannot_be_loaded_says_where_it_fails(tmp_path: Path) -> None:
    plugin = tmp_path / "broken_plugin.py"
    plugin.write_text("from bayplan.framework import Plugin\n\nclass Broken(Plugin):\n    def filter(self, pod): ...\n")

    status, output = run_to_end(f"--config={write_config(tmp_path)}", f"--plugin={plugin}")

    assert status != 0
    assert said(output, "Broken", "filter")
    assert "Traceback" not in output


# Rights


@pytest.mark.slow
async def test_nothing_is_scheduled_while_a_kind_that_decisions_read_is_forbidden(
    cluster: Cluster, tmp_path: Path, guard: Guard
) -> None:
    """All rights of kube-scheduler but one: disruption budgets. Granting it is enough, without a restart."""
    kubeconfig = cluster.kubeconfig_for("half-trusted")
    async with small_cluster(cluster) as (api, ledger):
        await _grant(api, "half-trusted", without="poddisruptionbudgets")
        await api.create(pod("plain"))
        arguments = (f"--config={write_config(tmp_path)}", f"--kubeconfig={kubeconfig}")
        process = SchedulerProcess(tmp_path, guard, *arguments)
        try:
            complaint = "nothing is scheduled: this user may not read objects that decisions need"
            await until(lambda: complaint in process.log, what="a line", instead=lambda: process.log)
            bound_before = ledger.bound
            await _grant(api, "half-trusted", without=())
            await until(lambda: ledger.bound == 1, what="the pod bound", instead=lambda: process.log)
            log = process.log
        finally:
            await asyncio.to_thread(process.stop)

    assert bound_before == 0
    assert said(log, "cannot follow /apis/policy/v1/poddisruptionbudgets", "forbidden", "grant list and watch")
    assert said(log, complaint, "poddisruptionbudgets", "bayplan doctor")


async def test_a_binding_that_is_forbidden_is_told_on_the_pod_and_others_are_bound(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The user may bind pods in one namespace only."""
    kubeconfig = cluster.kubeconfig_for("narrow")
    async with small_cluster(cluster) as (api, ledger):
        await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "closed"}})
        await _grant(api, "narrow", without="pods/binding")
        rule = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}
        await api.call("POST", f"{RBAC}/namespaces/default/roles", {"metadata": {"name": "binder"}, "rules": [rule]})
        await api.call("POST", f"{RBAC}/namespaces/default/rolebindings", _binding("binder", "Role", "narrow"))
        async with scheduling(kubeconfig) as live:
            await api.create(pod("refused"), namespace="closed")
            await api.create(*(pod(f"open-{i}") for i in range(10)))
            await all_bound(live, ledger, 10)
            message = await _condition(api, "/api/v1/namespaces/closed/pods/refused")
            await account_for(live, api)

    assert 'User "narrow" cannot create resource "pods/binding"' in message
    assert 'in the namespace "closed"' in message


async def _condition(api: ApiSession, path: str) -> str:
    async def message() -> str:
        found = await api.call("GET", path)
        return next((str(condition["message"]) for condition in found["status"].get("conditions") or ()), "")

    return await answer(message, what="a condition")


async def test_without_the_right_to_write_events_or_status_pods_are_bound(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    kubeconfig = cluster.kubeconfig_for("quiet")
    async with small_cluster(cluster) as (api, ledger):
        await _grant(api, "quiet", without=("events", "pods/status"))
        async with scheduling(kubeconfig) as live:
            await api.create(pod("huge", cpu="64"), *(pod(f"pod-{i}") for i in range(20)))
            await all_bound(live, ledger, 20)
            await until(lambda: "events cannot be written" in caplog.text, what="a line about events")
            await until(lambda: "could not write the status" in caplog.text, what="a line about the status")
            await account_for(live, api)

    status = next(r for r in caplog.records if r.getMessage() == "could not write the status of a pod")
    assert status.__dict__["hint"] == "grant patch on pods/status to this user"
    assert 'cannot patch resource "pods/status"' in status.__dict__["error"]
    assert len([r for r in caplog.records if r.getMessage().startswith("events cannot be written")]) == 1


async def _grant(api: ApiSession, user: str, *, without: str | tuple[str, ...]) -> None:
    """The rules of kube-scheduler's own roles, less some resources, for this user."""
    left_out = (without,) if isinstance(without, str) else without
    rules = []
    for name in ("system:kube-scheduler", "system:volume-scheduler"):
        role = await api.call("GET", f"{RBAC}/clusterroles/{name}")
        rules += [{**rule, "resources": _less(rule["resources"], left_out)} for rule in role["rules"]]
    rules.append({"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]})
    rules = [rule for rule in rules if rule["resources"]]
    role = {"metadata": {"name": f"test-{user}"}, "rules": rules}
    await api.call("DELETE", f"{RBAC}/clusterroles/test-{user}", allow=[404])
    await api.call("DELETE", f"{RBAC}/clusterrolebindings/test-{user}", allow=[404])
    await api.call("POST", f"{RBAC}/clusterroles", role)
    await api.call("POST", f"{RBAC}/clusterrolebindings", _binding(f"test-{user}", "ClusterRole", user))


def _less(resources: list[str], left_out: tuple[str, ...]) -> list[str]:
    return [resource for resource in resources if resource not in left_out]


def _binding(role: str, kind: str, user: str) -> JsonObject:
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": role}, "subjects": [subject], "roleRef": reference}


# Plugins


class Raises(Plugin):
    """Breaks on one pod."""

    def filter(self, state: CycleState, pod: PodInfo, node: object) -> Status | None:
        if pod.name == "poison":
            raise RuntimeError("division by cucumber")
        return None


class Dawdles(Plugin):
    """Thinks about one pod for a second."""

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: object) -> Status | None:
        if pod.name == "slow":
            time.sleep(1)
        return None


def enabling(name: str) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{{name: {name}}}]
"""


async def test_a_plugin_that_raises_is_named_and_only_its_pod_waits(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    settings = RunSettings(config=enabling("Raises"), plugins=[Raises])
    config = cluster.kubeconfig
    async with small_cluster(cluster) as (api, ledger), scheduling(config, settings) as live:
        await api.create(pod("poison"), *(pod(f"pod-{i}") for i in range(30)))
        await all_bound(live, ledger, 30)
        message = await _condition(api, "/api/v1/namespaces/default/pods/poison")
        await account_for(live, api)

    assert 'running "Raises" filter plugin' in message
    assert "division by cucumber" in message
    failures = [record for record in caplog.records if record.getMessage() == "plugin failed"]
    assert failures[0].levelno == logging.ERROR
    assert failures[0].__dict__["plugin"] == "Raises"


async def test_a_plugin_that_loops_for_a_second_delays_and_loses_nothing(cluster: Cluster) -> None:
    settings = RunSettings(config=enabling("Dawdles"), plugins=[Dawdles])
    config = cluster.kubeconfig
    async with small_cluster(cluster) as (api, ledger), scheduling(config, settings) as live:
        await api.create(pod("slow"), *(pod(f"pod-{i}") for i in range(30)))
        await all_bound(live, ledger, 31)
        await account_for(live, api)

    assert ledger.moved() == {}


async def test_a_pod_that_makes_no_sense_waits_and_others_do_not(cluster: Cluster) -> None:
    """The API server lets through what a scheduler cannot use: a selector on a field that no node has, huge numbers."""
    config = cluster.kubeconfig
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["no-such-node"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    odd = [
        pod("nowhere", affinity={"nodeAffinity": required}),
        pod("huge", cpu="9223372036854775807", memory="9223372036854775807"),
        pod("unheard-of", runtimeClassName=None, nodeSelector={"a/b": "c"}),
    ]
    async with small_cluster(cluster) as (api, ledger), scheduling(config) as live:
        await api.create(*odd, *(pod(f"pod-{i}") for i in range(30)))
        await all_bound(live, ledger, 30)
        await account_for(live, api)
        messages = [await _condition(api, f"/api/v1/namespaces/default/pods/{p['metadata']['name']}") for p in odd]

    assert all(message.startswith("0/2 nodes are available: ") for message in messages)
