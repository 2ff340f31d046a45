"""Golden cases as clusters: read once, turned into copies and offline schedulers."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from bayplan.api.decode import decode_object
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.config import load_config, resolve_profiles
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.framework.registry import Registry
from bayplan.observe.time_slices import at_once
from bayplan.plugins.intree import default_registry

GOLDEN = Path(__file__).parents[2] / "parity" / "golden"
Case = dict[str, Any]


@lru_cache(1)
def registry() -> Registry:
    return default_registry()


def single_pod_cases() -> Iterator[Case]:
    """Round and round through the categories, so that any number of them has some of each."""
    files = [path for path in sorted(GOLDEN.glob("*.jsonl.gz")) if not path.name.startswith("sequence")]
    streams = [iter(gzip.decompress(path.read_bytes()).splitlines()) for path in files]
    while streams:
        for stream in list(streams):
            line = next(stream, None)
            if line is None:
                streams.remove(stream)
            else:
                yield msgspec.json.decode(line)


def read_pod(case: Case) -> Pod:
    pod = decode_object(case["pod"], inherited={"apiVersion": "v1", "kind": "Pod"})
    assert isinstance(pod, Pod)
    return pod


def objects_in(case: Case) -> list[KubeObject]:
    return [item for item in map(decode_object, case["objects"]) if item is not None]


def scheduler_for(case: Case) -> OfflineScheduler:
    profiles = resolve_profiles(load_config(msgspec.json.encode(case["config"]).decode()), registry())
    return OfflineScheduler(profiles, registry(), objects_in(case))


def copy_of(case: Case) -> ClusterCopy:
    objects = objects_in(case)
    pods = [item for item in objects if isinstance(item, Pod)]
    cluster = ClusterObjects(
        nodes=[item for item in objects if isinstance(item, Node)],
        placed=[(pod, pod.spec.node_name) for pod in pods if pod.spec.node_name and not pod.is_finished],
        others=[item for item in objects if not isinstance(item, Node | Pod)],
        waiting=[*(pod for pod in pods if not pod.spec.node_name), read_pod(case)],
    )
    profiles = resolve_profiles(load_config(msgspec.json.encode(case["config"]).decode()), registry())
    return at_once(ClusterCopy.build(cluster, profiles, registry()))
