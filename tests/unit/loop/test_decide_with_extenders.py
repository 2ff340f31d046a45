"""Extenders, asked over loopback: what each verb does to a decision, and what bad answers do not do to a scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from tests.unit.loop.extender_server import ExtenderServer, serving
from tests.unit.loop.kit import Loop, node, pod, running
from tests.waiting import PATIENCE_SECONDS

from bayplan.queue import Place

NODES = [node(f"n{i}", cpu="4") for i in range(4)]


def config(server: ExtenderServer, **fields: Any) -> str:
    return several(extender(server, **fields))


def extender(server: ExtenderServer, **fields: Any) -> dict[str, Any]:
    return {"urlPrefix": server.url, "httpTimeout": "60s", "weight": 1, **fields}


def several(*extenders: dict[str, Any]) -> str:
    import json

    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": list(extenders),
    }
    return json.dumps(document)


def keep(*names: str, **more: Any) -> Any:
    """Answers with node names to a node-cache-capable extender."""
    return lambda question: {"NodeNames": [n for n in question["NodeNames"] if n in names], **more}


async def outcome(loop: Loop, name: str = "p") -> str:
    """The node that was bound, or the reason why not."""
    await settled(loop, lambda: name in loop.transport.bindings or loop.transport.patches(name))
    if name in loop.transport.bindings:
        return loop.transport.bindings[name]
    message: str = loop.transport.patches(name)[-1]["conditions"][0]["message"]
    return message


async def settled(loop: Loop, holds: Callable[[], object]) -> None:
    """Advance the clock in steps until `holds`: HTTP takes real time."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await loop.settle(0.01)
            await asyncio.sleep(0.005)


async def test_a_pod_goes_only_to_a_node_that_the_extender_keeps() -> None:
    server = ExtenderServer(filter=keep("n2"))
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p", cpu="1"))
            assert await outcome(loop) == "n2"

    question = server.questions("filter")[0]
    assert sorted(question["NodeNames"]) == ["n0", "n1", "n2", "n3"]
    assert question["Nodes"] is None
    assert question["Pod"]["metadata"]["name"] == "p"
    assert question["Pod"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


async def test_an_extender_without_a_node_cache_gets_and_gives_whole_nodes() -> None:
    def only_n1(question: Any) -> Any:
        return {"nodes": {"items": [n for n in question["Nodes"]["items"] if n["metadata"]["name"] == "n1"]}}

    server = ExtenderServer(filter=only_n1)
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter"))
        async with running(loop):
            loop.put(pod("p"))
            assert await outcome(loop) == "n1"

    question = server.questions("filter")[0]
    assert question["NodeNames"] is None
    assert question["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "4"


async def test_reasons_of_an_extender_are_told_and_its_pods_wake_at_any_event() -> None:
    failed = {"n0": "too warm", "n1": "too warm", "n2": "no licence"}
    answer = {"NodeNames": [], "FailedNodes": failed, "FailedAndUnresolvableNodes": {"n2": "never", "n3": "never"}}
    server = ExtenderServer(filter=lambda question: answer)
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p"))
            message = await outcome(loop)
            queued = loop.queue.get("default/p")

            assert message.startswith("0/4 nodes are available: 2 never, 2 too warm.")
            assert queued.unschedulable_plugins == {"Extender"}
            assert loop.queue.place_of("default/p") is Place.UNSCHEDULABLE
            server.replies["filter"] = keep("n0", "n9")
            loop.put(node("n9"))
            await loop.settle(2)
            assert await _bound(loop) in ("n0", "n9")


async def _bound(loop: Loop) -> str:
    await settled(loop, lambda: "p" in loop.transport.bindings)
    return loop.transport.bindings["p"]


async def test_filters_are_asked_in_turn_each_about_what_is_left() -> None:
    first, second = ExtenderServer(filter=keep("n0", "n1")), ExtenderServer(filter=keep("n1", "n2"))
    async with serving(first), serving(second):
        asks = {"filterVerb": "filter", "nodeCacheCapable": True}
        loop = Loop(NODES, config=several(extender(second, ignorable=True, **asks), extender(first, **asks)))
        async with running(loop):
            loop.put(pod("p"))
            assert await outcome(loop) == "n1"

    assert len(first.questions("filter")[0]["NodeNames"]) == 4
    assert sorted(second.questions("filter")[0]["NodeNames"]) == ["n0", "n1"]


async def test_scores_are_weighted_and_added_up() -> None:
    """A full node loses at most 100 points of the plugins; ten points of weight ten outweigh them."""
    server = ExtenderServer(prioritize=lambda q: [{"Host": n, "Score": 10 if n == "n3" else 0} for n in q["NodeNames"]])
    async with serving(server):
        loop = Loop(NODES, config=config(server, prioritizeVerb="prioritize", weight=10, nodeCacheCapable=True))
        loop.put(pod("big", cpu="3", node="n3"))
        async with running(loop):
            loop.put(pod("p", cpu="500m"))
            assert await outcome(loop) == "n3"


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(status=500),
        [{"Host": "n0", "Score": "ten"}],
        [{"Host": "n0", "Score": 10**30}],
        [{"Host": 7, "Score": 1}],
        {"not": "a list"},
        web.Response(body=b"<html>"),
        web.Response(body=b"[" * 100_000),
    ],
)
async def test_a_bad_score_counts_for_nothing(answer: Any) -> None:
    server = ExtenderServer(prioritize=lambda question: answer)
    async with serving(server):
        loop = Loop(NODES, config=config(server, prioritizeVerb="prioritize", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p"))
            assert (await outcome(loop)).startswith("n")


BAD_FILTERS = [
    (lambda q: web.Response(status=503), "failed filter with extender at URL {url}/filter, code 503"),
    (lambda q: {"Error": "the licence server is away"}, "the licence server is away"),
    (
        lambda q: {"NodeNames": ["mars"]},
        'extender "{url}" claims a filtered node "mars" which is not found in the input node list',
    ),
    (lambda q: web.Response(body=b"<html>"), "the answer of the extender at {url}/filter is not JSON"),
    (lambda q: [1, 2], "an object was expected, not list"),
    (lambda q: {"NodeNames": "n0"}, "a list was expected, not str"),
]


@pytest.mark.parametrize(("reply", "text"), BAD_FILTERS)
async def test_a_filter_that_fails_is_an_error_that_says_why(reply: Any, text: str) -> None:
    server = ExtenderServer(filter=reply)
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p"))
            assert (await outcome(loop)).startswith(text.format(url=server.url))
            assert loop.transport.patches("p")[0]["conditions"][0]["reason"] == "SchedulerError"
            assert loop.queue.place_of("default/p") is Place.BACKOFF


@pytest.mark.parametrize(("reply", "text"), BAD_FILTERS)
async def test_an_ignorable_filter_that_fails_is_done_without(reply: Any, text: str) -> None:
    server = ExtenderServer(filter=reply)
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True, ignorable=True))
        async with running(loop):
            loop.put(pod("p"))
            assert (await outcome(loop)).startswith("n")


async def test_a_slow_extender_is_given_up_in_its_time() -> None:
    server = ExtenderServer(filter=keep("n0"))
    server.hold = asyncio.Event()
    async with serving(server):
        limits = {"httpTimeout": "0.15s"}
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True, **limits))
        async with running(loop):
            loop.put(pod("p"))
            assert await outcome(loop) == f"no answer from the extender at {server.url}/filter within 0.15 s"


async def test_an_extender_that_is_away_is_an_error() -> None:
    server = ExtenderServer()
    server.port = 1
    loop = Loop(NODES, config=config(server, filterVerb="filter"))
    async with running(loop):
        loop.put(pod("p"))
        assert (await outcome(loop)).startswith(f"cannot reach the extender at {server.url}/filter: ")


async def test_only_pods_that_ask_for_a_managed_resource_are_its_business() -> None:
    server = ExtenderServer(filter=keep("n1"))
    managed = [{"name": "example.test/card", "ignoredByScheduler": True}]
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True, managedResources=managed))
        async with running(loop):
            loop.put(pod("plain"))
            await outcome(loop, "plain")
            assert server.asked == []
            loop.put(pod("p", requests={"example.test/card": 1}, limits={"example.test/card": 1}))
            assert await outcome(loop) == "n1"


async def test_an_extender_binds_instead_of_the_scheduler() -> None:
    server = ExtenderServer(bind=lambda question: {})
    async with serving(server):
        loop = Loop(NODES[:1], config=config(server, bindVerb="bind"))
        async with running(loop):
            loop.put(pod("p", uid="u-1"))
            await settled(loop, lambda: loop.transport.events("Scheduled"))

    assert server.questions("bind") == [{"PodName": "p", "PodNamespace": "default", "PodUID": "u-1", "Node": "n0"}]
    assert loop.transport.bindings == {}
    assert loop.live.cache.is_assumed("u-1")


async def test_an_extender_that_cannot_bind_sends_the_pod_back_unless_it_is_ignorable() -> None:
    server = ExtenderServer(bind=lambda question: {"Error": "no"})
    async with serving(server):
        loop = Loop(NODES[:1], config=config(server, bindVerb="bind"))
        async with running(loop):
            loop.put(pod("p"))
            assert await outcome(loop) == "ExtenderError: no"
            assert loop.live.cache.assumed_count == 0
        loop = Loop(NODES[:1], config=config(server, bindVerb="bind", ignorable=True))
        async with running(loop):
            loop.put(pod("p"))
            assert await outcome(loop) == "n0"


def full_nodes(loop: Loop) -> None:
    loop.put(*(pod(f"low-{i}", cpu="4", node=f"n{i}", priority=1, uid=f"low-{i}") for i in range(4)))


async def test_victims_pass_through_the_extender() -> None:
    def spare_all_but_n2(question: Any) -> Any:
        victims = question["NodeNameToMetaVictims"]
        return {"NodeNameToMetaVictims": {"n2": victims["n2"]}}

    server = ExtenderServer(preempt=spare_all_but_n2)
    async with serving(server):
        loop = Loop(NODES, config=config(server, preemptVerb="preempt", nodeCacheCapable=True))
        full_nodes(loop)
        async with running(loop):
            loop.put(pod("p", cpu="4", priority=100))
            await outcome(loop)
            deleted = [call.path for call in loop.transport.calls if call.method == "DELETE"]

    asked = server.questions("preempt")[0]["NodeNameToMetaVictims"]
    assert {name: victims["Pods"] for name, victims in asked.items()} == {
        f"n{i}": [{"UID": f"low-{i}"}] for i in range(4)
    }
    assert deleted == ["/api/v1/namespaces/default/pods/low-2"]
    assert loop.transport.patches("p")[-1]["nominatedNodeName"] == "n2"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"n1": {"Pods": [], "NumPDBViolations": 0}}, 'expected at least one victim pod on node "n1"'),
        (
            {"n1": {"Pods": [{"UID": "stranger"}]}},
            "claims to preempt pod (UID: stranger) on node: n1, but the pod is not found on that node",
        ),
        ({"mars": {"Pods": [{"UID": "low-1"}]}}, 'on node "mars", which is not there'),
    ],
)
async def test_victims_that_make_no_sense_are_refused(answer: Any, text: str) -> None:
    server = ExtenderServer(preempt=lambda question: {"NodeNameToMetaVictims": answer})
    async with serving(server):
        loop = Loop(NODES, config=config(server, preemptVerb="preempt", nodeCacheCapable=True))
        full_nodes(loop)
        async with running(loop):
            loop.put(pod("p", cpu="4", priority=100))
            assert text in await outcome(loop)

    assert not [call for call in loop.transport.calls if call.method == "DELETE"]


async def test_a_pod_that_is_deleted_while_an_extender_thinks_is_not_placed() -> None:
    server = ExtenderServer(filter=keep("n0"))
    server.hold = asyncio.Event()
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            gone = pod("p")
            loop.put(gone)
            await settled(loop, lambda: server.asked)
            loop.drop(gone)
            server.hold.set()
            await settled(loop, lambda: loop.queue.sizes.in_flight == 0)
            assert loop.transport.bindings == {}


async def test_the_room_is_looked_at_again_after_an_extender_answered() -> None:
    """Another scheduler fills the node while the extender thinks: the answer must not overrule the filters."""
    server = ExtenderServer(filter=keep("n0"))
    server.hold = asyncio.Event()
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p", cpu="3"))
            await settled(loop, lambda: server.asked)
            loop.put(pod("other", cpu="3", node="n0", scheduler="other"))
            server.hold.set()
            message = await outcome(loop)

    assert message.startswith("0/4 nodes are available: 1 Insufficient cpu")


# The nominated node


def failing_alone(question: Any) -> Any:
    """Does not answer about a single node, keeps every one of several."""
    names = question["NodeNames"]
    if len(names) == 1:
        raise web.HTTPInternalServerError
    return {"NodeNames": names}


async def test_an_extender_that_fails_on_the_nominated_node_is_asked_about_all_of_them() -> None:
    server = ExtenderServer(filter=failing_alone)
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p", nominated="n2"))
            assert await outcome(loop) in {"n0", "n1", "n2", "n3"}

    assert [len(question["NodeNames"]) for question in server.questions("filter")] == [1, 4]


async def test_the_only_node_is_asked_about_again_after_a_failure_on_it_as_nominated() -> None:
    answers = iter([web.HTTPInternalServerError, None])

    def failing_once(question: Any) -> Any:
        failure = next(answers)
        if failure is not None:
            raise failure
        return {"NodeNames": question["NodeNames"]}

    server = ExtenderServer(filter=failing_once)
    async with serving(server):
        loop = Loop(NODES[:1], config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p", nominated="n0"))
            assert await outcome(loop) == "n0"


async def test_an_extender_that_fails_on_all_nodes_fails_the_attempt() -> None:
    def failing(question: Any) -> Any:
        raise web.HTTPInternalServerError

    server = ExtenderServer(filter=failing)
    async with serving(server):
        loop = Loop(NODES, config=config(server, filterVerb="filter", nodeCacheCapable=True))
        async with running(loop):
            loop.put(pod("p", nominated="n2"))
            assert "code 500" in await outcome(loop)

    assert [len(question["NodeNames"]) for question in server.questions("filter")] == [1, 4]
