"""How plugins reach a cluster: what is carried, within which limits, and that the rendered form runs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import os
import signal
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.waiting import answer

from bayplan.app.settings import SettingsError
from bayplan.deploy.bundle import load_bundle
from bayplan.deploy.chart import chart_files
from bayplan.deploy.manifests import ManifestOptions, manifests
from bayplan.deploy.plugin_files import CONFIG_MAP_BYTES, collect_plugins
from bayplan.deploy.static_pod import static_pod_files
from bayplan.sim.local import LocalCluster, LocalOptions
from bayplan.testing import node, pod
from bayplan.testing.local_cluster import TestCluster, document_of

INIT = "from .plugin import FastDisk\n"
PLUGIN = """\
from bayplan.framework import Plugin

from .words import FAST


class FastDisk(Plugin):
    def score(self, state, pod, node):
        return 100 if node.labels.get("disk") == FAST else 0
"""
PROJECT = '[project]\nname = "fast-disk-carried"\nversion = "1"\ndependencies = ["bayplan", "requests>=2"]\n'
OWN = "apiVersion: bayplan.dev/v1alpha1\nkind: BayplanConfiguration\nplugins: [fast-disk]\ndecisions: {memory: 9Mi}\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "fast-disk"
    package = folder / "src" / "fast_disk_carried"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    (package / "plugin.py").write_text(PLUGIN)
    (package / "words.py").write_text('FAST = "nvme"\n')
    (folder / "pyproject.toml").write_text(PROJECT)
    yield folder
    for name in [name for name in sys.modules if name.startswith("fast_disk_carried")]:
        del sys.modules[name]


def by_kind(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return {document["kind"]: document for document in documents}


def arguments(documents: dict[str, Any]) -> list[str]:
    return list(documents["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"])


def test_a_package_is_zipped_and_the_same_files_give_the_same_bytes(project: Path) -> None:
    first, again = collect_plugins([str(project)]), collect_plugins([str(project / "src/fast_disk_carried")])

    assert first.archives == again.archives
    with zipfile.ZipFile(io.BytesIO(first.archives["fast_disk_carried.zip"])) as archive:
        assert [name.split("/")[1] for name in archive.namelist()] == ["__init__.py", "plugin.py", "words.py"]


def test_what_a_zip_does_not_hold_is_known(project: Path) -> None:
    assert collect_plugins([str(project)]).missing_dependencies == ("requests>=2",)


def test_a_zipped_package_goes_into_the_config_map(project: Path) -> None:
    documents = by_kind(manifests(load_bundle(None, [str(project)], name="fast"), ManifestOptions()))

    assert list(documents["ConfigMap"]["binaryData"]) == ["fast_disk_carried.zip"]
    assert "--plugin=/etc/bayplan/fast_disk_carried.zip" in arguments(documents)


def test_a_zip_or_wheel_may_be_on_a_volume(project: Path) -> None:
    bundle = load_bundle(None, [str(project)], name="fast")

    documents = by_kind(manifests(bundle, ManifestOptions(plugin_volume="my-plugins")))
    spec = documents["Deployment"]["spec"]["template"]["spec"]

    assert "binaryData" not in documents["ConfigMap"]
    assert "--plugin=/etc/bayplan-plugins/fast_disk_carried.zip" in arguments(documents)
    claim = {"claimName": "my-plugins", "readOnly": True}
    assert {"name": "plugins", "persistentVolumeClaim": claim} in spec["volumes"]
    assert {"name": "plugins", "mountPath": "/etc/bayplan-plugins", "readOnly": True} in spec["containers"][0][
        "volumeMounts"
    ]


def test_more_than_a_config_map_holds_is_refused_with_the_ways_out(project: Path) -> None:
    (project / "src/fast_disk_carried/weights.bin").write_bytes(os.urandom(CONFIG_MAP_BYTES))
    bundle = load_bundle(None, [str(project)], name="fast")

    with pytest.raises(SettingsError, match=r"a ConfigMap holds 1,048,576; .*--plugin-volume CLAIM.*render image"):
        manifests(bundle, ManifestOptions())

    assert manifests(bundle, ManifestOptions(plugin_volume="my-plugins"))


def test_own_settings_travel_without_their_plugins_which_are_carried(project: Path) -> None:
    own = project.parent / "bayplan.yaml"
    own.write_text(OWN.replace("[fast-disk]", "[./fast-disk]"))
    bundle = load_bundle(None, [], name="fast", own_config=own)

    documents = by_kind(manifests(bundle, ManifestOptions()))
    chart, static = chart_files(bundle), static_pod_files(bundle, image="bayplan:test")

    expected = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "BayplanConfiguration", "decisions": {"memory": "9Mi"}}
    assert yaml.safe_load(documents["ConfigMap"]["data"]["bayplan.yaml"]) == expected
    assert "--bayplan-config=/etc/bayplan/bayplan.yaml" in arguments(documents)
    assert yaml.safe_load(chart["values.yaml"])["bayplanConfig"] == expected
    assert yaml.safe_load(static["bayplan/bayplan.yaml"]) == expected
    assert isinstance(chart["files/fast_disk_carried.zip"], bytes)
    assert isinstance(static["bayplan/fast_disk_carried.zip"], bytes)


async def test_the_scheduler_runs_from_the_rendered_form(project: Path, tmp_path: Path) -> None:
    """The arguments of the Deployment, on the files of its ConfigMap, as a process against an API server."""
    own = project.parent / "bayplan.yaml"
    own.write_text(OWN.replace("[fast-disk]", "[./fast-disk]"))
    documents = by_kind(manifests(load_bundle(None, [], name="fast", own_config=own), ManifestOptions()))

    await run_from(documents, tmp_path, {})


async def test_the_scheduler_runs_from_a_wheel_on_a_volume(project: Path, tmp_path: Path) -> None:
    wheel = project.parent / "fast_disk_carried-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in (project / "src/fast_disk_carried").iterdir():
            archive.write(file, f"fast_disk_carried/{file.name}")
        points = "[bayplan.plugins]\nFastDisk = fast_disk_carried:FastDisk\n"
        archive.writestr("fast_disk_carried-1.dist-info/entry_points.txt", points)
    bundle = load_bundle(None, [str(wheel)], name="fast")
    documents = by_kind(manifests(bundle, ManifestOptions(plugin_volume="my-plugins")))
    volume = tmp_path / "volume"
    volume.mkdir()
    wheel.rename(volume / wheel.name)

    await run_from(documents, tmp_path, {"/etc/bayplan-plugins": volume})


async def run_from(documents: dict[str, Any], tmp_path: Path, volumes: dict[str, Path]) -> None:
    """Start what the Deployment starts, with its ConfigMap and volumes as folders, and have it place a pod."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name, text in documents["ConfigMap"]["data"].items():
        (mounted / name).write_text(text)
    for name, encoded in documents["ConfigMap"].get("binaryData", {}).items():
        (mounted / name).write_bytes(base64.b64decode(encoded))
    given = arguments(documents)
    for place, folder in ({**volumes, "/etc/bayplan": mounted}).items():
        given = [argument.replace(f"{place}/", f"{folder}/") for argument in given]
    given = [argument for argument in given if not argument.startswith(("--bind-address", "--secure-port"))]
    nodes = [document_of(node("slow")), document_of(node("fast", labels={"disk": "nvme"}))]

    async with local_api(nodes, tmp_path) as (local, kubeconfig):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bayplan.cli", "run", *given),
            *("--kubeconfig", str(kubeconfig), "--secure-port=0"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd="/",
        )
        try:
            await local.create(pod("web", scheduler="fast"))
            placed = await answer(lambda: _node_of(local), what="a node for the pod")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            said = (await process.communicate())[0].decode()

    assert placed == "fast", said
    assert process.returncode == 0, said


async def _node_of(local: TestCluster) -> str:
    return str((await local.pod("web"))["spec"].get("nodeName") or "")


@contextlib.asynccontextmanager
async def local_api(nodes: list[dict[str, Any]], folder: Path) -> Any:
    """An embedded cluster that listens, and its kubeconfig; its own scheduler serves other pods."""
    from bayplan.app.settings import load_settings

    async with LocalCluster(load_settings(None, ()), LocalOptions(nodes=nodes)) as started:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(started.cluster.kubeconfig()))
        yield TestCluster(started), kubeconfig
