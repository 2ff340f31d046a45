"""What `bayplan render` writes, on a real API server: accepted, sufficient, and no rule in it is one too many."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.deploy.bundle import Bundle, load_bundle
from bayplan.deploy.chart import chart_files
from bayplan.deploy.doctor import Examination, Finding, Level, examine
from bayplan.deploy.manifests import ManifestOptions, manifests, role_name
from bayplan.deploy.static_pod import static_pod_files
from tests.controlplane import ControlPlane
from tests.e2e.api_session import CLOCK, api_session, transport_to
from tests.e2e.objects import node
from tests.e2e.running import RunSettings, scheduling

EXAMPLES = Path(__file__).parents[2] / "examples" / "references"
REFERENCES = ("block-all", "name-score", "score-by-label", "timestamp", "node-crd")


def _bundle(reference: str) -> Bundle:
    return load_bundle(EXAMPLES / reference / "scheduler.yaml", ())


def _apply(control_plane: ControlPlane, documents: list[Any]) -> str:
    text = yaml.safe_dump_all(documents)
    return control_plane.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text).stdout


def _service_account(control_plane: ControlPlane, bundle: Bundle) -> Path:
    user = f"system:serviceaccount:kube-system:{bundle.name}"
    return control_plane.kubeconfig_for(user, ["system:serviceaccounts", "system:serviceaccounts:kube-system"])


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_manifests_of_every_reference_are_accepted(empty_control_plane: ControlPlane, reference: str) -> None:
    said = _apply(empty_control_plane, manifests(_bundle(reference), ManifestOptions(replicas=2)))

    assert "deployment.apps/" in said
    assert "poddisruptionbudget.policy/" in said


def test_the_files_of_a_static_pod_are_accepted(empty_control_plane: ControlPlane) -> None:
    files = static_pod_files(_bundle("timestamp"), image="bayplan:test")

    _apply(empty_control_plane, list(yaml.safe_load_all(files["cluster.yaml"])))
    pod = yaml.safe_load(files["kube-scheduler.yaml"])
    text = yaml.safe_dump({**pod, "spec": {**pod["spec"], "priorityClassName": "system-node-critical"}})
    empty_control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_chart_is_linted_rendered_and_accepted(
    empty_control_plane: ControlPlane, tmp_path: Path, reference: str
) -> None:
    _write(tmp_path, chart_files(_bundle(reference)))

    linted = empty_control_plane.helm("lint", "--strict", str(tmp_path)).stdout
    rendered = empty_control_plane.helm(
        "template", "release", str(tmp_path), "--namespace", "kube-system", "--set", "scheduler.replicaCount=2"
    ).stdout

    assert "0 chart(s) failed" in linted
    _apply(empty_control_plane, [document for document in yaml.safe_load_all(rendered) if document])


def test_the_values_of_the_write_up_go_through_the_chart(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    _write(tmp_path, chart_files(_bundle("block-all")))
    values = [f"--values={EXAMPLES / 'block-all' / name}" for name in ("values-images.yaml", "values-plugins.yaml")]

    rendered = empty_control_plane.helm("template", "release", str(tmp_path), *values).stdout

    documents = {document["kind"]: document for document in yaml.safe_load_all(rendered) if document}
    assert documents["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"] == "jinnkenny99/scheduler"
    config = yaml.safe_load(documents["ConfigMap"]["data"]["config.yaml"])
    [profile] = config["profiles"]
    assert profile["schedulerName"] == "scheduler-plugins-scheduler"
    assert {"name": "BlockAllScheduler"} in profile["plugins"]["multiPoint"]["enabled"]


async def test_the_rendered_service_account_can_run_the_scheduler(empty_control_plane: ControlPlane) -> None:
    bundle = _bundle("timestamp")
    await asyncio.to_thread(_apply, empty_control_plane, manifests(bundle, ManifestOptions()))
    account = _service_account(empty_control_plane, bundle)
    settings = RunSettings(config=(EXAMPLES / "timestamp/scheduler.yaml").read_text())

    async with api_session(empty_control_plane.kubeconfig) as api, scheduling(account, settings):
        await api.create(node("n1"), node("n2"))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(
            empty_control_plane.kubectl, "run", "web", "--image=busybox", "--restart=Never", stdin=None
        )
        for _ in range(100):
            pod = await api.pod("web")
            if pod["spec"].get("nodeName"):
                break
            await asyncio.sleep(0.1)
        events = await _events(api)

    assert pod["spec"].get("nodeName") in ("n1", "n2")
    assert "scheduler-timestamp" in pod["metadata"]["annotations"]
    assert events


async def _events(api: Any) -> list[Any]:
    found: list[Any] = []
    for _ in range(50):
        found = await api.events(reason="Scheduled", name="web")
        if found:
            break
        await asyncio.sleep(0.1)
    return found


async def _examined(control_plane: ControlPlane, bundle: Bundle) -> list[Finding]:
    user = f"system:serviceaccount:kube-system:{bundle.name}"
    transport = transport_to(control_plane.kubeconfig)
    try:
        return await examine(transport, Examination(bundle=bundle, user=user, now=CLOCK.now()))
    finally:
        await transport.close()


async def test_the_doctor_names_any_rule_that_is_taken_away(empty_control_plane: ControlPlane) -> None:
    bundle, options = _bundle("node-crd"), ManifestOptions(replicas=2)
    documents = manifests(bundle, options)
    await asyncio.to_thread(_apply, empty_control_plane, documents)
    healthy = await _examined(empty_control_plane, bundle)
    assert not [finding for finding in healthy if finding.level is Level.ERROR]
    role = next(document for document in documents if document["kind"] == "ClusterRole")

    for place, rule in enumerate(role["rules"]):
        less = {**role, "rules": [other for number, other in enumerate(role["rules"]) if number != place]}
        await asyncio.to_thread(empty_control_plane.kubectl, "replace", "-f", "-", stdin=yaml.safe_dump(less))
        missing = await _missing(empty_control_plane, bundle, count=len(rule["resources"]) * len(rule["verbs"]))

        assert all(any(resource in what for what in missing) for resource in rule["resources"]), rule
        assert all(any(f" {verb} " in what for what in missing) for verb in rule["verbs"]), rule
    assert role["metadata"]["name"] == role_name(bundle, options)


async def _missing(control_plane: ControlPlane, bundle: Bundle, *, count: int) -> list[str]:
    """The API server takes a moment to see a changed role."""
    found: list[Finding] = []
    for _ in range(50):
        findings = await _examined(control_plane, bundle)
        found = [finding for finding in findings if finding.level is Level.ERROR and finding.check == "rbac"]
        if len(found) == count:
            break
        await asyncio.sleep(0.1)
    assert all(finding.why and "bayplan render manifests" in finding.fix for finding in found)
    return [finding.what for finding in found]


async def test_the_doctor_finds_what_the_write_ups_stumbled_over(empty_control_plane: ControlPlane) -> None:
    bundle = _bundle("node-crd")
    async with api_session(empty_control_plane.kubeconfig) as api:
        await api.create(node("only"))
    findings = await _examined(empty_control_plane, bundle)

    by_check = {finding.check: finding for finding in findings if finding.level is not Level.OK}
    assert by_check["crd"].what == "definition `clusterscopedresources.scheduling.sigs.k8s.io` is not installed"
    assert "scores never matter" in by_check["nodes"].what
    assert by_check["profiles"].what == "no pod names the scheduler `secondary-scheduler`"
    assert by_check["rbac"].level is Level.ERROR


def _write(folder: Path, contents: dict[str, str]) -> None:
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
