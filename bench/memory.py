"""What a large cluster takes in memory, and whether its size slows decisions down.

    python -m bench.memory [--nodes 5000] [--pods 150000]

Pods are decoded from the JSON of a watch, one by one, with everything a Deployment's pod carries on the wire (managed
fields, probes, volumes, conditions), and put into the cache. Reported are the resident size of the process, what a pod
adds to it, and the cost of a decision with ten pods a node against the cost with all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from bayplan.api.pod import Pod
from bench.clusters import make_node
from bench.measuring import Bench, offline_scheduler
from bench.workloads import find_workloads

LIMIT_MIB = 1024
_DEPLOYMENTS = 3_000
_GROWTH_LIMIT = 1.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    options = parser.parse_args()
    start = resident_mib()
    scheduler = offline_scheduler(make_node(number) for number in range(options.nodes))
    with_nodes = resident_mib()
    decoder = msgspec.json.Decoder(Pod)
    few = min(10 * options.nodes, options.pods)
    costs = {}
    bench = Bench(options.nodes, rounds=5, share=0.5, tell=lambda text: None)
    bench.use(scheduler)
    for number, body in enumerate(wire_pods(options.pods, options.nodes)):
        if number == few:
            costs["few"] = _decision_us(bench)
        scheduler.cache.add_pod(decoder.decode(body))
    gc.collect()
    size = resident_mib()
    each = (size - with_nodes) * 1024 / options.pods
    print(f"{'interpreter and libraries':<28}{start:7.0f} MiB")
    print(f"{f'{options.nodes} nodes':<28}{with_nodes - start:7.0f} MiB")
    print(f"{f'{options.pods} pods':<28}{size - with_nodes:7.0f} MiB, {each:.2f} KiB a pod")
    print(f"{'in all':<28}{size:7.0f} MiB of {LIMIT_MIB}")
    costs["all"] = _decision_us(bench)
    before = costs.get("few", costs["all"])
    slower = costs["all"] / before
    print(f"a decision takes {before:.1f} µs with {few} pods, {costs['all']:.1f} µs with all: {slower:.2f} times")
    return 0 if size <= LIMIT_MIB and slower <= _GROWTH_LIMIT else 1


def _decision_us(bench: Bench) -> float:
    """At the reference speed, so that a busy minute does not pass for growth."""
    return 1e6 / bench.measure(find_workloads(["template"])[0]).reference_per_second


def resident_mib() -> float:
    with open("/proc/self/status") as lines:
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return kib / 1024


def wire_pods(count: int, nodes: int) -> Iterator[bytes]:
    for number in range(count):
        yield json.dumps(_wire_pod(number, nodes)).encode()


def _wire_pod(number: int, nodes: int) -> dict[str, Any]:
    """A running pod of a Deployment as an API server sends it."""
    deployment = number % _DEPLOYMENTS
    app, replica_set = f"service-{deployment}", f"service-{deployment}-7d9f8c6b5"
    name = f"{replica_set}-{number:06x}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": f"{app}-prod",
        "app.kubernetes.io/part-of": f"suite-{deployment % 40}",
        "pod-template-hash": "7d9f8c6b5",
    }
    started = f"2026-11-{1 + number % 14:02d}T{number % 24:02d}:00:00Z"
    return {
        "metadata": {
            "name": name,
            "generateName": f"{replica_set}-",
            "namespace": f"team-{deployment % 60}",
            "uid": f"{number:08x}-4d6b-4a57-9d3c-0123456789ab",
            "resourceVersion": str(10_000_000 + number),
            "creationTimestamp": started,
            "labels": labels,
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": f"{deployment:064x}"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": replica_set,
                    "uid": f"rs-{deployment}",
                    "controller": True,
                }
            ],
            "managedFields": [
                {"manager": "kube-controller-manager", "fieldsV1": {f"f:field{i}": {} for i in range(20)}}
            ],
        },
        "spec": _wire_spec(deployment, f"node-{number % nodes:05d}"),
        "status": _wire_status(number, started),
    }


def _wire_spec(deployment: int, node_name: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    container = {
        "name": "app",
        "image": f"registry.example.com/service-{deployment}:1.{deployment % 17}.0",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}, {"containerPort": 9090, "protocol": "TCP"}],
        "env": [{"name": f"VARIABLE_{i}", "value": "x" * 20} for i in range(10)],
        "resources": {
            "requests": {"cpu": f"{50 + 10 * (deployment % 9)}m", "memory": f"{64 + 16 * (deployment % 11)}Mi"}
        },
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"},
            {"name": "kube-api-access", "mountPath": "/var/run"},
        ],
    }
    sidecar = {
        **container,
        "name": "proxy",
        "image": "registry.example.com/proxy:2.1",
        "resources": {"requests": {"cpu": "20m", "memory": "40Mi"}},
    }
    taints = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return {
        "nodeName": node_name,
        "schedulerName": "default-scheduler",
        "serviceAccountName": f"service-{deployment}",
        "priority": 0,
        "containers": [container, sidecar],
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in taints
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": f"config-{deployment}"}},
            {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 2,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": f"service-{deployment}"}},
            }
        ],
    }


def _wire_status(number: int, started: str) -> dict[str, Any]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": started} for kind in kinds
    ]
    statuses = [
        {
            "name": name,
            "ready": True,
            "restartCount": 0,
            "image": f"registry.example.com/{name}:1",
            "imageID": f"registry.example.com/{name}@sha256:{number:064x}",
            "containerID": f"containerd://{number:064x}",
            "state": {"running": {"startedAt": started}},
        }
        for name in ("app", "proxy")
    ]
    return {
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": statuses,
        "hostIP": "10.0.0.1",
        "podIP": f"10.{number // 65536}.{number // 256 % 256}.{number % 256}",
        "qosClass": "Burstable",
        "startTime": started,
    }


if __name__ == "__main__":
    sys.exit(main())
