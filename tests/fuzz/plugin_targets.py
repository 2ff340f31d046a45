"""Targets for what users of a cluster write into objects that plugins read: custom resources, annotations, queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from bayplan.api.kinds import KINDS
from bayplan.client.decoding import ObjectDecoder, Rejected
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.capacity_scheduling.quotas import QuotaReader
from bayplan.plugins.community.coscheduling.pod_group import PodGroup
from bayplan.plugins.community.gpu_share import GpuShareBestFit
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from bayplan.plugins.community.node_resource_topology_match.topology import NumaTopology
from bayplan.testing import Harness, node, pod
from tests.fuzz.api_targets import Server
from tests.fuzz.file_targets import Failed
from tests.fuzz.mutation import mutated_bytes, mutated_document, mutated_text

_MILLI, _INDEX = "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-index"


class CustomResources:
    """Objects of watched kinds as a watch brings them: taken and read, or rejected."""

    _AMOUNTS: Mapping[str, Any] = {"cpu": "4", "memory": "1Gi", "example.com/x": 3}
    _SEEDS: tuple[tuple[Any, Mapping[str, Any]], ...] = (
        (PodGroup, {"spec": {"minMember": 3, "minResources": _AMOUNTS, "scheduleTimeoutSeconds": 5}}),
        (ElasticQuota, {"spec": {"min": _AMOUNTS, "max": _AMOUNTS}, "status": {"used": _AMOUNTS}}),
        (
            NodeResourceTopology,
            {
                "topologyPolicies": ["SingleNUMANodePodLevel"],
                "attributes": [{"name": "topologyManagerScope", "value": "pod"}],
                "zones": [
                    {
                        "name": "node-0",
                        "type": "Node",
                        "costs": [{"name": "node-0", "value": 10}],
                        "resources": [{"name": "cpu", "capacity": "4", "allocatable": "4", "available": "2"}],
                    }
                ],
            },
        ),
    )

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        kind, seed = random.choice(self._SEEDS)
        metadata = {"name": "o", "namespace": "n", "uid": "1", "annotations": {"a": "b"}}
        given = json.dumps(mutated_document({"metadata": metadata, **seed}, random)).encode()
        if random.random() < 0.2:
            given = mutated_bytes(given, random)
        try:
            found = ObjectDecoder(kind).item(msgspec.Raw(given))
            if isinstance(found, ElasticQuota):
                QuotaReader().read([found])
            elif isinstance(found, NodeResourceTopology):
                NumaTopology.of(found)
            elif not isinstance(found, Rejected):
                found.spec.min_member + 1
        except BaseException as error:
            raise Failed((kind.__name__, given)) from error
        return given


class Annotations:
    """What pods and nodes say of their devices: other pods of the node are scheduled."""

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        index, count = (mutated_text(random.choice(["0-1", "1", "12"]), random) for _ in range(2))
        labels = {"alibabacloud.com/gpu-count": count}
        nodes = [node("n1", cpu=8, allocatable={_MILLI: 2000}), node("n2", cpu=8, annotations=labels)]
        there = pod("odd", requests={_MILLI: 300}, node="n1", annotations={_INDEX: index})
        try:
            outcome = Harness(nodes=nodes, pods=[there], plugins=[GpuShareBestFit]).schedule(
                pod("plain", requests={_MILLI: 1000})
            )
        except BaseException as error:
            raise Failed((index, count)) from error
        if outcome.node_name != "n1":
            raise Failed((index, count, outcome))
        return index


class Queries:
    """Parameters of requests to the embedded API server: never an answer of 500."""

    _NAMES = (
        "limit",
        "continue",
        "labelSelector",
        "fieldSelector",
        "resourceVersion",
        "resourceVersionMatch",
        "dryRun",
    )
    _NAMES += ("timeoutSeconds", "gracePeriodSeconds", "propagationPolicy", "fieldManager", "fieldValidation", "force")
    _NAMES += ("pretty", "allowWatchBookmarks", "sendInitialEvents", "tailLines", "sinceSeconds", "follow", "command")
    _VALUES = ("3", "-1", "true", "a=b,c!=d", "metadata.name=x", "NotOlderThan", "All", "Background", "Strict", "0")

    def __init__(self) -> None:
        self._server = Server()
        self._paths = [kind.path for kind in KINDS if kind.path] + ["/api/v1/namespaces/default/pods/p/log", "/version"]

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        names = random.sample(self._NAMES, random.choice([1, 1, 2, 4]))
        texts = [mutated_text(random.choice(self._VALUES), random) for _ in names]
        # Half letters do not come out of an address.
        query = {name: text.encode("utf-8", "replace").decode() for name, text in zip(names, texts, strict=True)}
        method = random.choice(["GET", "GET", "DELETE"])
        path = random.choice(self._paths) + random.choice(["", "", "/p"])
        status = self._server.call(method, path, query=query)
        # 504: a resource version that is not there yet.
        if status >= 500 and status != 504:
            raise Failed((status, method, path, query))
        return query
