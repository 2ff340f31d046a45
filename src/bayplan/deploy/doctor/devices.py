"""Checks devices: whether claims can be served, which classes and drivers are missing, which pools are incomplete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bayplan.api.devices import ResourceSlice
from bayplan.api.pod import Pod
from bayplan.deploy.doctor.cluster_reader import ClusterReader
from bayplan.deploy.doctor.finding import Finding, Level

__all__ = ["check_classes", "check_devices", "check_pools"]

_ROOT = "/apis/resource.k8s.io/v1"
_SHOWN = 5


async def check_devices(reading: ClusterReader, pods: Sequence[Pod]) -> list[Finding]:
    """Nothing, where no pod has resource claims and no driver publishes devices."""
    asking = [pod for pod in pods if pod.spec.resource_claims and not pod.is_finished]
    if await reading.json_if_any(_ROOT) is None:
        return [_unserved(asking)] if asking else []
    slices, _ = await reading.objects(f"{_ROOT}/resourceslices", ResourceSlice)
    if not asking and not slices:
        return []
    classes = {item["metadata"]["name"] for item in await _items(reading, "deviceclasses")}
    specs = [item["spec"] for item in await _items(reading, "resourceclaims")]
    specs += [item["spec"]["spec"] for item in await _items(reading, "resourceclaimtemplates")]
    found = [*check_classes(specs, classes), *check_pools(slices)]
    if asking and not slices:
        what = f"{_who(asking)} resource claims, and no driver publishes devices: {_named(asking)}"
        why = "without a ResourceSlice there is nothing to allocate, and the pods stay pending"
        found.append(Finding(Level.ERROR, "devices", what, why, "kubectl get daemonsets -A  # install the driver"))
    drivers = sorted({each.spec.driver for each in slices})
    return found or [Finding(Level.OK, "devices", f"devices of {', '.join(drivers)} in {_slices(len(slices))}")]


def _who(asking: Sequence[Pod]) -> str:
    return "1 pod has" if len(asking) == 1 else f"{len(asking):,} pods have"


def _slices(count: int) -> str:
    return "1 slice" if count == 1 else f"{count:,} slices"


async def _items(reading: ClusterReader, plural: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await reading.json(f"{_ROOT}/{plural}")).get("items") or []
    return items


def _unserved(asking: Sequence[Pod]) -> Finding:
    what = f"{_who(asking)} resource claims, and the API server does not serve resource.k8s.io/v1"
    why = "it is there since Kubernetes 1.34; until then such pods are held back"
    return Finding(
        Level.ERROR, "devices", f"{what}: {_named(asking)}", why, "kubectl api-versions | grep resource.k8s.io"
    )


def _named(pods: Sequence[Pod]) -> str:
    return ", ".join(pod.key for pod in pods[:_SHOWN]) + (" …" if len(pods) > _SHOWN else "")


def check_classes(specs: Iterable[dict[str, Any]], classes: set[str]) -> list[Finding]:
    """Classes that claims or templates name and that do not exist."""
    missing = sorted({name for spec in specs for name in _class_names(spec) if name not in classes})
    return [
        Finding(
            Level.ERROR,
            "devices",
            f"claims ask for devices of class `{name}`, which does not exist",
            "pods with such a claim stay pending",
            "kubectl get deviceclasses",
        )
        for name in missing
    ]


def _class_names(spec: dict[str, Any]) -> Iterator[str]:
    for request in spec.get("devices", {}).get("requests") or ():
        for asked in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if asked and asked.get("deviceClassName"):
                yield asked["deviceClassName"]


def check_pools(slices: Iterable[ResourceSlice]) -> list[Finding]:
    """Pools of which slices are missing: their devices are not allocated."""
    newest: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        known = newest[each.spec.driver, each.spec.pool.name]
        if known and each.spec.pool.generation > known[0].spec.pool.generation:
            known.clear()
        if not known or each.spec.pool.generation == known[0].spec.pool.generation:
            known.append(each)
    return [
        Finding(
            Level.WARNING,
            "devices",
            f"pool {driver}/{pool} has {len(known)} of {known[0].spec.pool.resource_slice_count} slices",
            "devices of an incomplete pool are not allocated",
            f"look at the log of the driver {driver}",
        )
        for (driver, pool), known in sorted(newest.items())
        if len(known) != known[0].spec.pool.resource_slice_count
    ]
