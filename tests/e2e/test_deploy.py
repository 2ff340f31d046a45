"""What `bayplan render` writes, on a real API server: accepted, sufficient, and no rule in it is one too many."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cli.main import main
from bayplan.deploy.bundle import Bundle, load_bundle
from bayplan.deploy.chart import chart_files
from bayplan.deploy.crds import crd_document
from bayplan.deploy.doctor import Examination, Finding, Level, examine
from bayplan.deploy.manifests import ManifestOptions, manifests, role_name
from bayplan.deploy.static_pod import static_pod_files
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from tests.controlplane import ControlPlane
from tests.controlplane.ports import free_loopback_port
from tests.e2e.api_session import CLOCK, ApiSession, api_session, transport_to
from tests.e2e.objects import node
from tests.e2e.running import RunSettings, scheduling, settled
from tests.waiting import answer

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
    said = empty_control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text).stdout

    assert "pod/kube-scheduler" in said


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


def test_what_monitors_the_scheduler_is_rendered_where_it_is_wanted(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    _write(tmp_path, chart_files(_bundle("block-all")))
    wanted = [f"--set=monitoring.{part}.enabled=true" for part in ("serviceMonitor", "alerts", "dashboard")]

    plain = empty_control_plane.helm("template", "release", str(tmp_path)).stdout
    rendered = empty_control_plane.helm("template", "release", str(tmp_path), *wanted).stdout

    kinds = ("Service", "ServiceMonitor", "PrometheusRule")
    assert not any(document["kind"] in kinds for document in yaml.safe_load_all(plain) if document)
    found = {document["kind"]: document for document in yaml.safe_load_all(rendered) if document}
    assert found["Service"]["spec"]["selector"] == found["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert found["PrometheusRule"]["spec"]["groups"][0]["rules"]
    maps = [document for document in yaml.safe_load_all(rendered) if document and document["kind"] == "ConfigMap"]
    [board] = [document for document in maps if "bayplan.json" in document["data"]]
    assert json.loads(board["data"]["bayplan.json"])["panels"]
    _apply(empty_control_plane, [found["Service"], board])


def test_a_package_and_settings_of_ours_go_through_chart_and_manifests(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The zip that helm and kubectl store is the zip that was rendered."""
    main(["new", "ChartedFit", "--output", str(tmp_path / "fit")])
    own = tmp_path / "bayplan.yaml"
    own.write_text("apiVersion: bayplan.dev/v1alpha1\nkind: BayplanConfiguration\ndecisions: {memory: 9Mi}\n")
    bundle = load_bundle(tmp_path / "fit/scheduler.yaml", [str(tmp_path / "fit")], own_config=own)
    _write(tmp_path / "chart", chart_files(bundle))

    linted = empty_control_plane.helm("lint", "--strict", str(tmp_path / "chart")).stdout
    rendered = empty_control_plane.helm("template", "release", str(tmp_path / "chart"), "-n", "kube-system").stdout
    charted = [document for document in yaml.safe_load_all(rendered) if document]
    _apply(empty_control_plane, charted)
    of_chart = _config_map(empty_control_plane, bundle.name, "kube-system")
    _apply(empty_control_plane, manifests(bundle, ManifestOptions(namespace="packaged")))
    of_manifests = _config_map(empty_control_plane, bundle.name, "packaged")

    assert "0 chart(s) failed" in linted
    expected = base64.b64encode(bundle.carried.archives["charted_fit.zip"]).decode()
    assert of_chart["binaryData"]["charted_fit.zip"] == of_manifests["binaryData"]["charted_fit.zip"] == expected
    assert yaml.safe_load(of_chart["data"]["bayplan.yaml"])["decisions"] == {"memory": "9Mi"}
    assert {"NetworkPolicy", "Deployment"} <= {document["kind"] for document in charted}


def _config_map(control_plane: ControlPlane, name: str, namespace: str) -> Any:
    return yaml.safe_load(control_plane.kubectl("get", "configmap", name, "-n", namespace, "-o", "yaml").stdout)


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
    account = await asyncio.to_thread(_service_account, empty_control_plane, bundle)
    settings = RunSettings(config=(EXAMPLES / "timestamp/scheduler.yaml").read_text())

    async with api_session(empty_control_plane.kubeconfig) as api, scheduling(account, settings) as live:
        await api.create(node("n1"), node("n2"))
        await settled(live, api)
        await asyncio.to_thread(
            empty_control_plane.kubectl, "run", "web", "--image=busybox", "--restart=Never", stdin=None
        )
        await _node_of(api, "web")
        pod = await api.pod("web")
        events = await _events(api)

    assert pod["spec"].get("nodeName") in ("n1", "n2")
    assert "scheduler-timestamp" in pod["metadata"]["annotations"]
    assert events


async def test_bayplan_run_works_as_the_rendered_service_account(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The process itself, with leader election and its endpoints, as it would run in the Deployment's pod."""
    bundle = _bundle("name-score")
    documents = manifests(bundle, ManifestOptions())
    await asyncio.to_thread(_apply, empty_control_plane, documents)
    config = tmp_path / "config.yaml"
    config.write_text(next(d["data"]["config.yaml"] for d in documents if d["kind"] == "ConfigMap"))
    account = await asyncio.to_thread(_service_account, empty_control_plane, bundle)
    port = free_loopback_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan.cli", "run", "--config", str(config), "--kubeconfig", str(account)),
        f"--secure-port={port}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with api_session(empty_control_plane.kubeconfig) as api:
            await api.create(*(node(name) for name in ("k8s-master01", "k8s-node01", "k8s-node02")))
            pod = (EXAMPLES / "name-score/pod.yaml").read_text()
            await asyncio.to_thread(empty_control_plane.kubectl, "apply", "-f", "-", stdin=pod)
            placed = await _node_of(api, "busybox-test-scheduler")
            lease = await api.call(
                "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/namescore-scheduler"
            )
            healthy = await _examined(empty_control_plane, bundle)
    finally:
        process.terminate()
        said = (await process.communicate())[0].decode()

    assert placed == "k8s-node02", said
    assert lease["spec"]["holderIdentity"]
    assert not [finding for finding in healthy if finding.level is Level.ERROR]
    assert "forbidden" not in said.lower(), said


async def _node_of(api: ApiSession, name: str) -> str:
    async def node_name() -> str:
        return str((await api.pod(name))["spec"].get("nodeName") or "")

    return await answer(node_name, what=f"a node for {name}")


async def test_the_doctor_names_a_missing_lease_rule(empty_control_plane: ControlPlane) -> None:
    bundle = _bundle("name-score")
    given = manifests(bundle, ManifestOptions(namespace="no-lease"))
    await asyncio.to_thread(empty_control_plane.kubectl, "create", "namespace", "no-lease")
    documents = [document for document in given if document["kind"] not in ("Role", "RoleBinding")]
    await asyncio.to_thread(_apply, empty_control_plane, documents)

    missing = await _missing(empty_control_plane, bundle, count=3, namespace="no-lease")

    assert [what.split(" may not ")[1] for what in missing] == [
        "create leases.coordination.k8s.io in namespace no-lease",
        "get leases.coordination.k8s.io `namescore-scheduler` in namespace no-lease",
        "update leases.coordination.k8s.io `namescore-scheduler` in namespace no-lease",
    ]


def test_every_shipped_definition_is_accepted(empty_control_plane: ControlPlane) -> None:
    rendered = subprocess.run(
        [sys.executable, "-m", "bayplan.cli", "render", "crds", "--all"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout

    said = empty_control_plane.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=rendered).stdout
    names = [line.split("/")[1].split(" ")[0] for line in said.splitlines()]
    for name in names:
        empty_control_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=90s")

    assert "networkmetrics.network.example.com" in names


def test_helm_installs_and_uninstalls_the_chart(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    _write(tmp_path, chart_files(_bundle("node-crd")))

    inside = ("--namespace", "by-helm")
    empty_control_plane.helm("install", "second", str(tmp_path), *inside, "--create-namespace")
    role = empty_control_plane.kubectl("get", "clusterrole", "bayplan:by-helm:secondary-scheduler", "-o", "yaml")
    empty_control_plane.helm("uninstall", "second", *inside)
    kept = empty_control_plane.kubectl("get", "crd", "-o", "name").stdout

    assert "clusterscopedresources" in role.stdout
    assert "clusterscopedresources.scheduling.sigs.k8s.io" in kept


def test_helm_leaves_definitions_that_exist_as_they_are(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    """Of another team: wider than ours. The release is installed beside it, and can do without any definition."""
    name = "clusterscopedresources.scheduling.sigs.k8s.io"
    theirs = crd_document(ClusterScopedResource)
    spec = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["owner"] = {"type": "string"}
    empty_control_plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump(theirs))
    _write(tmp_path, chart_files(_bundle("node-crd")))
    inside = ("--namespace", "beside", "--create-namespace")

    empty_control_plane.helm("install", "second", str(tmp_path), *inside)
    empty_control_plane.helm("upgrade", "second", str(tmp_path), *inside, "--set", "crds.install=false")
    kept = yaml.safe_load(empty_control_plane.kubectl("get", "crd", name, "-o", "yaml").stdout)
    empty_control_plane.helm("uninstall", "second", "--namespace", "beside")

    shown = kept["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert "owner" in shown


def test_the_write_ups_values_as_the_whole_values_file_are_enough(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    _write(tmp_path, chart_files(load_bundle(None, ())))
    printed = [EXAMPLES / "block-all" / name for name in ("values-images.yaml", "values-plugins.yaml")]
    (tmp_path / "values.yaml").write_text("\n".join(each.read_text() for each in printed))
    rendered = empty_control_plane.helm("template", "scheduler-plugins", str(tmp_path)).stdout

    deployments = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] == "Deployment"]
    containers = [each["spec"]["template"]["spec"]["containers"][0] for each in deployments]
    assert sorted(each["command"] for each in containers) == [["bayplan", "controllers"], ["bayplan", "run"]]


async def _events(api: Any) -> list[Any]:
    async def events() -> list[Any]:
        found: list[Any] = await api.events(reason="Scheduled", name="web")
        return found

    return await answer(events, what="an event")


async def _examined(control_plane: ControlPlane, bundle: Bundle, namespace: str = "kube-system") -> list[Finding]:
    user = f"system:serviceaccount:{namespace}:{bundle.name}"
    transport = transport_to(control_plane.kubeconfig)
    try:
        given = Examination(bundle=bundle, namespace=namespace, user=user, now=CLOCK.now())
        return await examine(transport, given)
    finally:
        await transport.close()


async def test_the_doctor_names_any_rule_that_is_taken_away(empty_control_plane: ControlPlane) -> None:
    bundle, options = _bundle("node-crd"), ManifestOptions(replicas=2)
    documents = manifests(bundle, options)
    await asyncio.to_thread(_apply, empty_control_plane, documents)
    healthy = await _examined(empty_control_plane, bundle)
    assert not [finding for finding in healthy if finding.level is Level.ERROR]
    role = next(d for d in documents if d["metadata"]["name"] == role_name(bundle, options) and "rules" in d)

    for place, rule in enumerate(role["rules"]):
        less = {**role, "rules": [other for number, other in enumerate(role["rules"]) if number != place]}
        await asyncio.to_thread(empty_control_plane.kubectl, "replace", "-f", "-", stdin=yaml.safe_dump(less))
        missing = await _missing(empty_control_plane, bundle, count=len(rule["resources"]) * len(rule["verbs"]))

        assert all(any(resource in what for what in missing) for resource in rule["resources"]), rule
        assert all(any(f" {verb} " in what for what in missing) for verb in rule["verbs"]), rule


async def _missing(
    control_plane: ControlPlane, bundle: Bundle, *, count: int, namespace: str = "kube-system"
) -> list[str]:
    """The API server takes a moment to see a changed role."""

    async def exactly() -> list[Finding] | None:
        findings = await _examined(control_plane, bundle, namespace)
        found = [finding for finding in findings if finding.level is not Level.OK and finding.check == "rbac"]
        return found if len(found) == count else None

    found = await answer(exactly, what=f"{count} missing permissions") or []
    assert all(finding.why and "bayplan render manifests" in finding.fix for finding in found)
    return [finding.what for finding in found]


async def test_the_doctor_finds_what_the_write_ups_stumbled_over(empty_control_plane: ControlPlane) -> None:
    bundle = _bundle("node-crd")
    async with api_session(empty_control_plane.kubeconfig) as api:
        await api.create(node("only"))
    findings = await _examined(empty_control_plane, bundle, "nowhere-installed")

    by_check = {finding.check: finding for finding in findings if finding.level is not Level.OK}
    assert by_check["crd"].what == "definition `clusterscopedresources.scheduling.sigs.k8s.io` is not installed"
    assert "scores never matter" in by_check["nodes"].what
    assert by_check["profiles"].what == "no pod names the scheduler `secondary-scheduler`"
    assert by_check["rbac"].level is Level.ERROR


def _write(folder: Path, contents: dict[str, str | bytes]) -> None:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
