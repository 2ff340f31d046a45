"""The client room against a real kube-apiserver: lists, watches, lost connections, writes, events, the lease."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.client.errors import Conflict, ConnectionFailed, Forbidden, NotFound, Unauthorized
from bayplan.client.events import EventRecorder, EventSubject
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.reflector import Reflector, ReflectorSettings
from bayplan.client.retry import RetryingSender
from bayplan.client.transport import ByteStream, Response, always
from bayplan.client.writer import Writer
from bayplan.leader.election import ElectionSettings, LeaderElector
from bayplan.observe.clock import SystemClock
from tests.e2e.clusters import Cluster
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("programs")]

CLOCK = SystemClock()
PODS = "/api/v1/namespaces/default/pods"


def transport_for(kubeconfig: Path) -> HttpTransport:
    access = find_access(clock=CLOCK, environment=os.environ, kubeconfig=kubeconfig)
    return HttpTransport(access, draw=random.random)


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[HttpTransport]:
    transport = transport_for(kubeconfig)
    try:
        yield transport
    finally:
        await transport.close()


def pod(name: str, **labels: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example.test/main:1", "resources": {"requests": {"cpu": "500m"}}}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def create_pods(cluster: Cluster, *names: str) -> None:
    for name in names:
        assert cluster.admin.request("POST", PODS, pod(name)).status == 201


def delete_pods(cluster: Cluster, *names: str) -> None:
    for name in names:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        assert cluster.admin.request("DELETE", f"{PODS}/{name}", options).status == 200


def read_pod(cluster: Cluster, name: str) -> dict[str, Any]:
    body: dict[str, Any] = cluster.admin.request("GET", f"{PODS}/{name}").body
    return body


class Mirror:
    """A reflector of pods with a check that what it tells adds up to what it holds."""

    def __init__(self, transport: HttpTransport, settings: ReflectorSettings | None = None, path: str = PODS) -> None:
        self.told: dict[str, Pod] = {}
        self.reflector = Reflector(transport, path, Pod, self._take, clock=CLOCK, draw=random.random, settings=settings)

    def _take(self, old: Pod | None, new: Pod | None) -> None:
        known = new if new is not None else old
        assert known is not None
        assert self.told.get(known.name) is old
        if new is None:
            del self.told[known.name]
        else:
            self.told[known.name] = new

    @property
    def names(self) -> set[str]:
        assert self.reflector.replica.callback_errors == 0
        return set(self.told)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reflector.run())
        try:
            async with asyncio.timeout(30):
                await self.reflector.synced.wait()
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


class CuttableProxy:
    """A TCP forwarder on loopback that can be cut and mended. TLS passes through untouched."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.is_cut = False
        self.port = 0

    async def __aenter__(self) -> CuttableProxy:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.sleep(0.05)

    def cut(self) -> None:
        self.is_cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
        self._writers.discard(writer)


@contextlib.asynccontextmanager
async def through_proxy(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[HttpTransport, CuttableProxy]]:
    """A transport whose connections can be cut without touching the API server."""
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    server = document["clusters"][0]["cluster"]["server"]
    async with CuttableProxy(int(server.rpartition(":")[2])) as proxy:
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        async with connected(path) as transport:
            yield transport, proxy


@pytest.mark.parametrize("is_streaming", [False, True])
async def test_pods_are_listed_and_followed(cluster: Cluster, is_streaming: bool) -> None:
    names = {f"pod-{number}" for number in range(25)}
    create_pods(cluster, *names)
    async with connected(cluster.kubeconfig) as transport:
        mirror = Mirror(transport, ReflectorSettings(page_size=7, is_streaming=is_streaming))
        async with mirror.running():
            assert mirror.names == names
            assert mirror.told["pod-3"].spec.containers[0].name == "main"

            delete_pods(cluster, "pod-3")
            create_pods(cluster, "late")
            await until(lambda: mirror.names == names - {"pod-3"} | {"late"})

    assert mirror.reflector.stats.lists == 1
    assert mirror.reflector.stats.last_error == ""
    # A streamed list needs no other stream; a paged one is followed by exactly one watch.
    assert mirror.reflector.stats.watches == 1


async def test_a_selector_lets_objects_come_and_go(cluster: Cluster) -> None:
    create_pods(cluster, "a", "b")
    async with connected(cluster.kubeconfig) as transport:
        seen: dict[str, Pod] = {}

        def take(old: Pod | None, new: Pod | None) -> None:
            if new is not None:
                seen[new.name] = new
            elif old is not None:
                del seen[old.name]

        reflector = Reflector(
            transport, "/api/v1/pods", Pod, take, clock=CLOCK, draw=random.random, label_selector="tier=web"
        )
        task = asyncio.create_task(reflector.run())
        await until(reflector.synced.is_set)
        cluster.admin.request("PATCH", f"{PODS}/a", {"metadata": {"labels": {"tier": "web"}}})
        await until(lambda: set(seen) == {"a"})
        cluster.admin.request("PATCH", f"{PODS}/a", {"metadata": {"labels": {"tier": "db"}}})
        await until(lambda: not seen)
        task.cancel()
        await asyncio.wait([task])


async def test_after_a_cut_the_watch_resumes_and_nothing_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    create_pods(cluster, "stays", "goes")
    async with through_proxy(cluster, tmp_path) as (transport, proxy):
        mirror = Mirror(transport)
        async with mirror.running():
            for number in range(3):
                proxy.cut()
                create_pods(cluster, f"new-{number}")
                await asyncio.sleep(0.1)
                proxy.is_cut = False
                await until(lambda number=number: f"new-{number}" in mirror.names)  # type: ignore[misc]
            delete_pods(cluster, "goes")
            await until(lambda: mirror.names == {"stays", "new-0", "new-1", "new-2"})

    assert mirror.reflector.stats.relists == 0
    assert mirror.reflector.stats.watches >= 3


async def test_after_a_410_deletions_are_found_by_listing(cluster: Cluster, tmp_path: Path) -> None:
    """A restarted API server has forgotten the history that we would resume from."""
    create_pods(cluster, "stays", "goes", "comes-back")
    async with through_proxy(cluster, tmp_path) as (transport, proxy):
        mirror = Mirror(transport)
        async with mirror.running():
            first_uid = mirror.told["comes-back"].uid
            proxy.cut()
            delete_pods(cluster, "goes", "comes-back")
            create_pods(cluster, "comes-back", "new")
            await asyncio.to_thread(cluster.restart_apiserver)
            proxy.is_cut = False
            await until(lambda: mirror.names == {"stays", "comes-back", "new"})
            assert mirror.told["comes-back"].uid != first_uid

    assert mirror.reflector.stats.relists >= 1


async def test_a_killed_api_server_is_waited_for(cluster: Cluster) -> None:
    create_pods(cluster, "a")
    async with connected(cluster.kubeconfig) as transport:
        mirror = Mirror(transport)
        async with mirror.running():
            await asyncio.to_thread(cluster.kill_apiserver)
            await until(lambda: not mirror.reflector.stats.is_connected)
            await asyncio.to_thread(cluster.start_apiserver)
            create_pods(cluster, "b")
            await until(lambda: mirror.names == {"a", "b"})


async def test_a_pod_is_bound_once_and_only_once(cluster: Cluster) -> None:
    create_pods(cluster, "web", "other")
    uid = read_pod(cluster, "web")["metadata"]["uid"]
    async with connected(cluster.kubeconfig) as transport:
        writer = Writer(transport, clock=CLOCK, draw=random.random)

        with pytest.raises(Conflict):
            await writer.bind("default", "web", uid="another-uid", node="n1")
        await writer.bind("default", "web", uid=uid, node="n1")
        with pytest.raises(Conflict, match="already assigned to node"):
            await writer.bind("default", "web", uid=uid, node="n2")
        with pytest.raises(NotFound):
            await writer.bind("default", "missing", uid=uid, node="n1")

    assert read_pod(cluster, "web")["spec"]["nodeName"] == "n1"
    assert "nodeName" not in read_pod(cluster, "other")["spec"]


class LosesAnswers:
    """Lets the first `losses` writes through and loses their answers."""

    def __init__(self, transport: HttpTransport, losses: int) -> None:
        self._transport = transport
        self._losses = losses

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> Response:
        response = await self._transport.request(
            method, path, query=query, body=body, content_type=content_type, may_send=may_send
        )
        if method != "GET" and self._losses:
            self._losses -= 1
            raise ConnectionFailed("the answer was lost", may_have_been_processed=True)
        return response

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        return self._transport.stream(path, query=query)

    async def close(self) -> None:
        await self._transport.close()


@pytest.mark.parametrize("losses", [1, 5])
async def test_a_binding_whose_answer_is_lost_is_still_known(cluster: Cluster, losses: int) -> None:
    create_pods(cluster, "web")
    uid = read_pod(cluster, "web")["metadata"]["uid"]
    async with connected(cluster.kubeconfig) as transport:
        await Writer(LosesAnswers(transport, losses), clock=CLOCK, draw=random.random).bind(
            "default", "web", uid=uid, node="n1"
        )
        with pytest.raises(Conflict):
            await Writer(LosesAnswers(transport, losses), clock=CLOCK, draw=random.random).bind(
                "default", "web", uid=uid, node="n2"
            )

    assert read_pod(cluster, "web")["spec"]["nodeName"] == "n1"


async def test_many_bindings_at_once(cluster: Cluster) -> None:
    names = [f"pod-{number}" for number in range(200)]
    create_pods(cluster, *names)
    async with connected(cluster.kubeconfig) as transport:
        mirror = Mirror(transport)
        async with mirror.running():
            writer = Writer(transport, clock=CLOCK, draw=random.random, max_in_flight=32)
            await asyncio.gather(
                *(
                    writer.bind("default", item.name, uid=item.uid, node=f"node-{number % 10}")
                    for number, item in enumerate(list(mirror.told.values()))
                )
            )
            await until(lambda: all(item.spec.node_name for item in mirror.told.values()))
            assert transport.open_connections <= 32

    assert mirror.names == set(names)


async def test_conditions_are_merged_by_type_and_nominations_come_and_go(cluster: Cluster) -> None:
    create_pods(cluster, "web")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m"}
    async with connected(cluster.kubeconfig) as transport:
        writer = Writer(transport, clock=CLOCK, draw=random.random)
        await writer.patch_pod_status("default", "web", {"conditions": [condition], "nominatedNodeName": "n1"})
        await writer.patch_pod_status("default", "web", {"conditions": [target]})
        status = read_pod(cluster, "web")["status"]
        await writer.patch_pod_status("default", "web", {"nominatedNodeName": None})

        uid = read_pod(cluster, "web")["metadata"]["uid"]
        with pytest.raises(Conflict):
            await writer.delete_pod("default", "web", uid="another-uid")
        with pytest.raises(Conflict):
            await writer.patch_pod_status("default", "web", {"conditions": [target]}, uid="another-uid")
        with pytest.raises(Conflict):
            await writer.patch_pod_status("default", "web", {"conditions": [target]}, uid=uid, version="1")
        after = read_pod(cluster, "web")["status"]
        await writer.delete_pod("default", "web", uid=uid)
        await writer.delete_pod("default", "web", uid=uid)

    assert {item["type"]: item["status"] for item in status["conditions"]} == {
        "PodScheduled": "False",
        "DisruptionTarget": "True",
    }
    assert status["nominatedNodeName"] == "n1"
    assert "nominatedNodeName" not in after
    assert cluster.admin.request("GET", f"{PODS}/web").status == 404


async def test_events_are_shown_by_kubectl_and_counted_as_a_series(cluster: Cluster) -> None:
    create_pods(cluster, "web")
    uid = read_pod(cluster, "web")["metadata"]["uid"]
    async with connected(cluster.kubeconfig) as transport:
        recorder = EventRecorder(
            RetryingSender(transport, clock=CLOCK, draw=random.random),
            clock=CLOCK,
            instance="default-scheduler-e2e",
            is_busy=lambda: False,
        )
        task = asyncio.create_task(recorder.run())
        regarding = EventSubject("Pod", "web", "default", uid)
        for sent in (1, 2):
            recorder.record(
                regarding,
                controller="default-scheduler",
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note="0/0 nodes are available: " + "x" * 2000,
            )
            await until(lambda sent=sent: recorder.stats.sent == sent)  # type: ignore[misc]
        task.cancel()
        await asyncio.wait([task])

    assert recorder.stats.failed == recorder.stats.dropped == 0
    described = await asyncio.to_thread(cluster.kubectl, "describe", "pod", "web")
    assert "FailedScheduling" in described.stdout
    assert "0/0 nodes are available" in described.stdout
    found = cluster.admin.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events").body["items"]
    ours = [item for item in found if item["regarding"]["uid"] == uid]
    assert [item["series"]["count"] for item in ours] == [2]
    assert len(ours[0]["note"]) == 1024


async def test_the_lease_passes_from_one_replica_to_the_next(cluster: Cluster) -> None:
    settings = ElectionSettings(lease_duration=5.0, renew_deadline=4.5, retry_period=0.25, name="e2e-election")
    async with connected(cluster.kubeconfig) as transport:

        def candidate(identity: str) -> LeaderElector:
            return LeaderElector(
                transport,
                identity=identity,
                clock=CLOCK,
                draw=random.random,
                on_started_leading=lambda: None,
                on_stopped_leading=lambda: None,
                settings=settings,
            )

        one, two = candidate("one"), candidate("two")
        first = asyncio.create_task(one.run())
        await until(lambda: one.is_leader)
        second = asyncio.create_task(two.run())
        await until(lambda: two.leader == "one")
        await asyncio.sleep(settings.lease_duration + 0.5)  # longer than a lease that is not renewed
        assert one.is_leader
        assert not two.is_leader
        first.cancel()
        await asyncio.wait([first])
        await until(lambda: two.is_leader)

        await asyncio.to_thread(cluster.kill_apiserver)
        await until(lambda: not two.is_leader)
        await until(second.done)
        await asyncio.to_thread(cluster.start_apiserver)

    lease = json.loads(cluster.kubectl("get", "lease", "-n", "kube-system", "e2e-election", "-o", "json").stdout)
    assert lease["spec"]["holderIdentity"] == "two"
    assert lease["spec"]["leaseTransitions"] == 1
    cluster.kubectl("delete", "lease", "-n", "kube-system", "e2e-election")


async def test_who_is_not_known_or_not_allowed_is_told_so(cluster: Cluster) -> None:
    async with connected(cluster.token_kubeconfig(cluster.token_for("admin"))) as transport:
        assert (await transport.request("GET", "/api/v1/nodes")).status == 200
    async with connected(cluster.token_kubeconfig("expired")) as transport:
        with pytest.raises(Unauthorized):
            async with transport.stream("/api/v1/nodes"):
                pass
    async with connected(cluster.kubeconfig_for("nobody")) as transport:
        writer = Writer(transport, clock=CLOCK, draw=random.random)
        with pytest.raises(Forbidden, match='cannot list resource "nodes"'):
            _ = [item async for item in writer.resource("", "v1", "nodes", namespaced=False).list()]


async def test_any_resource_can_be_written(cluster: Cluster) -> None:
    async with connected(cluster.kubeconfig) as transport:
        maps = Writer(transport, clock=CLOCK, draw=random.random).resource("", "v1", "configmaps")
        body = {"metadata": {"name": "settings"}, "data": {"a": "1"}}
        created = await maps.create(body, namespace="default")
        assert await maps.ensure(body, namespace="default") is None
        patched = await maps.patch("settings", {"data": {"b": "2"}}, namespace="default")
        with pytest.raises(Conflict):
            await maps.update("settings", created, namespace="default")
        with pytest.raises(Conflict, match="field is immutable"):
            await maps.patch("settings", {"metadata": {"uid": "another-uid"}, "data": {"b": "3"}}, namespace="default")
        updated = await maps.update("settings", {**patched, "data": {"c": "3"}}, namespace="default")
        listed = [item["metadata"]["name"] async for item in maps.list(namespace="default", page_size=1)]
        await maps.delete("settings", namespace="default", uid=updated["metadata"]["uid"])

        assert updated["data"] == {"c": "3"}
        assert "settings" in listed
        with pytest.raises(NotFound):
            await maps.get("settings", namespace="default")


async def test_nodes_of_a_cluster_are_mirrored_too(cluster: Cluster) -> None:
    for number in range(3):
        assert cluster.admin.request("POST", "/api/v1/nodes", node(f"n{number}")).status == 201
    async with connected(cluster.kubeconfig) as transport:
        reflector = Reflector(transport, "/api/v1/nodes", Node, lambda old, new: None, clock=CLOCK, draw=random.random)
        task = asyncio.create_task(reflector.run())
        await until(reflector.synced.is_set)
        task.cancel()
        await asyncio.wait([task])

    assert set(reflector.objects) == {"n0", "n1", "n2"}
