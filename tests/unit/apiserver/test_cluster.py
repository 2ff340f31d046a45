"""The embedded cluster as a whole: addresses, kubeconfig, TLS, data directories."""

from __future__ import annotations

import asyncio
import base64
import shutil
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.apiserver.cluster import EmbeddedCluster, UnsafeAddress, is_loopback
from bayplan.apiserver.storage.change_log import Record, StorageLog
from bayplan.apiserver.storage.persistence import UnusableDataDir
from bayplan.observe.clock import VirtualClock

MAPS = "/api/v1/namespaces/default/configmaps"


def modes_of_secrets(folder: Path) -> list[int]:
    secret = [path for path in folder.iterdir() if path.suffix in (".token", ".key")]
    return [path.stat().st_mode & 0o777 for path in secret]


def quiet(**options: Any) -> EmbeddedCluster:
    return EmbeddedCluster(simulate=False, listen=False, clock=VirtualClock(), **options)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
def test_another_address_than_loopback_needs_tls(host: str) -> None:
    with pytest.raises(UnsafeAddress, match=r"refusing to listen on .* without TLS"):
        EmbeddedCluster(host=host, tls=False)


def test_loopback_has_several_names() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.9.10", "::1", "localhost"))
    assert not is_loopback("10.0.0.1")


async def test_the_kubeconfig_reaches_the_cluster_over_tls() -> None:
    cluster = EmbeddedCluster(simulate=False)
    await cluster.start()
    try:
        kubeconfig = cluster.kubeconfig()
        server = kubeconfig["clusters"][0]["cluster"]
        authority = base64.b64decode(server["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        host, _, port = server["server"].removeprefix("https://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        token = kubeconfig["users"][0]["user"]["token"]
        writer.write(f"GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    finally:
        await cluster.stop()


async def test_the_address_of_the_server_is_published_and_follows_it(tmp_path: Path) -> None:
    for _ in range(2):  # another port each time
        cluster = EmbeddedCluster(simulate=False, data_dir=tmp_path)
        await cluster.start()
        try:
            endpoints = cluster.api.read("endpoints", "default", "kubernetes")
            slices = cluster.api.read("endpointslices.discovery.k8s.io", "default", "kubernetes")
        finally:
            await cluster.stop()
        assert endpoints is not None
        assert slices is not None
        subset = endpoints["subsets"][0]
        assert f"https://{subset['addresses'][0]['ip']}:{subset['ports'][0]['port']}" == cluster.url
        assert slices["endpoints"][0]["addresses"] == ["127.0.0.1"]
        assert slices["ports"] == subset["ports"]


async def test_nodes_are_made_in_three_zones() -> None:
    cluster = quiet(nodes=4)
    await cluster.start()
    nodes = [cluster.api.read("nodes", "", f"node-{n}") for n in range(1, 5)]
    await cluster.stop()

    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes if node]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]


async def test_objects_can_be_given() -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    cluster = quiet(objects=[document])
    await cluster.start()
    found = cluster.api.read("configmaps", "default", "a")
    await cluster.stop()

    assert found is not None


async def test_an_object_of_an_unknown_kind_is_a_clear_error() -> None:
    cluster = quiet(objects=[{"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "a"}}])
    with pytest.raises(ValueError, match="no kind Nonsense in v1"):
        await cluster.start()
    await cluster.stop()


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"metadata": 5}'])
async def test_an_object_that_cannot_be_read_is_named_and_the_files_are_let_go(tmp_path: Path, raw: bytes) -> None:
    log = StorageLog(tmp_path)
    log.append(Record(1, "configmaps", "default", "odd", raw))
    log.close()
    for _ in range(2):
        with pytest.raises(UnusableDataDir, match="cannot be read"):
            quiet(data_dir=tmp_path)


async def test_a_data_directory_keeps_objects_tokens_and_custom_resources(tmp_path: Path) -> None:
    first = quiet(data_dir=tmp_path)
    await first.start()
    transport = first.in_process_transport()
    await transport.request("POST", MAPS, body={"metadata": {"name": "kept", "labels": {"a": "b"}}})
    await transport.request("POST", MAPS, body={"metadata": {"name": "dropped"}})
    await transport.request("DELETE", f"{MAPS}/dropped")
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "e.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"}, "versions": [version]}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await transport.request("POST", crds, body={"metadata": {"name": "foos.e.com"}, "spec": spec})
    await transport.request("POST", "/apis/e.com/v1/foos", body={"metadata": {"name": "x"}})
    revision = first.store.revision
    await first.stop()

    second = quiet(data_dir=tmp_path)
    await second.start()
    transport = second.in_process_transport()
    kept = await transport.request("GET", MAPS, query={"labelSelector": "a=b"})
    foo = await transport.request("GET", "/apis/e.com/v1/foos/x")
    dropped = await transport.request("GET", f"{MAPS}/dropped")
    async with transport.stream(MAPS, query={"watch": "true", "resourceVersion": str(revision)}) as chunks:
        event = await anext(chunks)
    await second.stop()

    assert [one["metadata"]["name"] for one in kept.json()["items"]] == ["kept"]
    assert (foo.status, dropped.status) == (200, 404)
    assert second.token == first.token
    assert second.store.revision > revision
    assert b'"reason":"Expired"' in event


async def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    """The files of a process that was killed at this moment: whatever the database lacks, the log has."""
    first = quiet(data_dir=tmp_path / "first")
    await first.start()
    transport = first.in_process_transport()
    await transport.request("POST", MAPS, body={"metadata": {"name": "kept"}})
    await transport.request("POST", MAPS, body={"metadata": {"name": "dropped"}})
    await transport.request("DELETE", f"{MAPS}/dropped")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    revision = first.store.revision
    await first.stop()
    with (tmp_path / "second" / "changes-0.log").open("ab") as log:
        log.write(b"\x00\x00\xff\xffcut off")

    second = quiet(data_dir=tmp_path / "second")
    await second.start()
    listed = await second.in_process_transport().request("GET", MAPS)
    await second.stop()

    assert [one["metadata"]["name"] for one in listed.json()["items"]] == ["kept"]
    assert second.store.revision > revision
    assert [file.stat().st_size for file in (tmp_path / "second").glob("changes-*.log")] == [0, 0]


async def test_secrets_in_a_data_directory_are_for_their_owner_only(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(simulate=False, data_dir=tmp_path, clock=VirtualClock())
    await cluster.start()
    await cluster.stop()

    assert modes_of_secrets(tmp_path) == [0o600] * 3


async def test_a_data_directory_is_closed_to_others_whatever_stood_there(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    for name in ("objects.sqlite3", "changes-0.log", "admin.token"):
        (folder / name).touch(mode=0o644)
    (folder / "admin.token").write_text("token")
    cluster = quiet(data_dir=folder)
    await cluster.start()
    modes = {path.name: path.stat().st_mode & 0o777 for path in [folder, *folder.iterdir()]}
    await cluster.stop()

    assert modes.pop("data") == 0o700
    assert set(modes.values()) == {0o600}
    assert "objects.sqlite3-wal" in modes


async def test_a_data_directory_in_use_is_refused(tmp_path: Path) -> None:
    first = quiet(data_dir=tmp_path)
    await first.start()
    try:
        with pytest.raises(UnusableDataDir, match="hint: another process may be using it"):
            quiet(data_dir=tmp_path)
    finally:
        await first.stop()


async def test_a_broken_data_file_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "objects.sqlite3").write_bytes(b"this is no database, whatever its name says" * 50)
    with pytest.raises(UnusableDataDir, match="move the file away"):
        quiet(data_dir=tmp_path)


@pytest.mark.parametrize("metadata", ['{"name": null}', '{"name": "other"}', '{"name": "n", "namespace": "default"}'])
def test_an_object_that_is_not_the_one_it_is_kept_as_is_refused(metadata: str, tmp_path: Path) -> None:
    raw = f'{{"apiVersion": "v1", "kind": "Node", "metadata": {metadata}}}'.encode()
    content = msgspec.msgpack.encode(Record(1, "nodes", "", "n", raw))
    (tmp_path / "changes-0.log").write_bytes(len(content).to_bytes(4, "big") + content)

    with pytest.raises(UnusableDataDir, match="`/n` has another name in its metadata"):
        quiet(data_dir=tmp_path)


async def test_the_same_seed_gives_the_same_names() -> None:
    async def names() -> list[str]:
        cluster = quiet(seed=3)
        await cluster.start()
        transport = cluster.in_process_transport()
        made = [await transport.request("POST", MAPS, body={"metadata": {"generateName": "x-"}}) for _ in range(3)]
        await cluster.stop()
        return [one.json()["metadata"]["name"] for one in made]

    assert await names() == await names()
