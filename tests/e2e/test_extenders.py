"""An extender on loopback and pods on a real API server: it filters, scores, and binds in our place."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.api_session import PODS, api_session
from tests.e2e.clusters import Cluster
from tests.e2e.ledger import keeping_ledger
from tests.e2e.objects import node, pod
from tests.e2e.running import RunSettings, all_bound, scheduling, settled
from tests.unit.loop.extender_server import ExtenderServer, serving

CARD = "example.test/card"


def config(server: ExtenderServer) -> str:
    extender = {
        "urlPrefix": server.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "bindVerb": "bind",
        "weight": 20,
        "nodeCacheCapable": True,
        "managedResources": [{"name": CARD, "ignoredByScheduler": True}],
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }
    return json.dumps(document)


def wanting_a_card(name: str) -> dict[str, Any]:
    made = pod(name)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"][CARD] = "1"
    resources["limits"] = {CARD: "1"}
    return made


async def test_pods_that_an_extender_manages_go_where_it_says_and_are_bound_by_it(
    cluster: Cluster,
) -> None:
    """Nodes 0 to 3 have cards, of which nobody but the extender knows; node 2 is its favourite."""

    def bind(question: Any) -> Any:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": question["PodName"], "uid": question["PodUID"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": question["Node"]},
        }
        answer = cluster.admin.request("POST", f"{PODS}/{question['PodName']}/binding", binding)
        return {} if answer.status == 201 else {"Error": str(answer.body)}

    server = ExtenderServer(
        filter=lambda q: {"NodeNames": [n for n in q["NodeNames"] if n < "node-4"], "FailedNodes": {}},
        prioritize=lambda q: [{"Host": n, "Score": 10 * (n == "node-2")} for n in q["NodeNames"]],
        bind=bind,
    )
    kubeconfig = cluster.kubeconfig
    async with serving(server), api_session(kubeconfig) as api, keeping_ledger(kubeconfig) as ledger:
        await api.create(*(node(f"node-{i}") for i in range(8)))
        async with scheduling(kubeconfig, RunSettings(config=config(server))) as live:
            await api.create(*(wanting_a_card(f"card-{i}") for i in range(10)), *(pod(f"plain-{i}") for i in range(30)))
            await all_bound(live, ledger, 40)
            await settled(live, api)
            pods = await api.pods()

    where = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods}
    assert {where[f"card-{i}"] for i in range(10)} == {"node-2"}
    assert len({where[f"plain-{i}"] for i in range(30)}) >= 7
    assert {question["PodName"] for question in server.questions("bind")} == {f"card-{i}" for i in range(10)}
    assert ledger.moved() == {}
