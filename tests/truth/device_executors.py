"""Executors of claims about devices: a cluster with one device left shows what that device is to the subject, and the
documents of the case have the details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from bayplan.api.quantity import value
from bayplan.explain.claims import devices as d
from bayplan.explain.claims.base import Edit
from tests.truth.changes import Change, key_of
from tests.truth.documents import JsonObject
from tests.truth.world import World, all_hold

__all__ = ["DEVICE_EXECUTORS", "unknown_names"]


def _slices(world: World, node: str) -> list[JsonObject]:
    slices = [item for item in world.case.objects if item["kind"] == "ResourceSlice"]
    return [each for each in slices if each["spec"].get("nodeName") == node]


def _devices(world: World, node: str) -> dict[str, JsonObject]:
    """By `driver/pool/device`."""
    return {
        f"{each['spec']['driver']}/{each['spec']['pool']['name']}/{device['name']}": device
        for each in _slices(world, node)
        for device in each["spec"].get("devices", ())
    }


def _claims(world: World) -> dict[str, JsonObject]:
    return {key_of(item): item for item in world.case.objects if item["kind"] == "ResourceClaim"}


def _holders(world: World, device: str) -> list[JsonObject]:
    return [claim for claim in _claims(world).values() if device in _allocated(claim)]


def _allocated(claim: JsonObject) -> list[str]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [f"{each['driver']}/{each['pool']}/{each['device']}" for each in results]


def _request(world: World, name: str) -> JsonObject:
    claim, _, request = name.rpartition("/")
    requests = _claims(world).get(claim, {}).get("spec", {}).get("devices", {}).get("requests", ())
    found: JsonObject = next((each["exactly"] for each in requests if each["name"] == request), {})
    return found


def unknown_names(world: World, claim: Any) -> str:
    """Whether the claim is about a request or a resource claim that there is not."""
    request, owner = getattr(claim, "request", ""), getattr(claim, "owner", "")
    return all_hold(
        (not request or bool(_request(world, request)), "there is no such request"),
        (not owner or owner in _claims(world), "there is no such claim"),
    )


def _asking(world: World, name: str, count: int, *, constraints: bool = False) -> Edit:
    """The claim of a request with another count, and without constraints."""
    claim = name.rsplit("/", 1)[0]
    requests = [
        {**each, "exactly": {**each["exactly"], "count": count}}
        for each in _claims(world)[claim]["spec"]["devices"]["requests"]
    ]
    devices: JsonObject = {"requests": requests, **({} if constraints else {"constraints": None})}
    return Edit(kind="patchClaim", name=claim, patch={"spec": {"devices": devices}})


async def _is_usable(world: World, claim: Any) -> bool:
    """Whether the subject gets the node when the device is the only one that is left to be allocated."""
    kept = [device for each in _claims(world).values() for device in _allocated(each)]
    change = Change(edits=(_asking(world, claim.request, 1),), only_devices=(claim.device, *kept))
    after = await world.after(change)
    return after.nodes.get(claim.pod) == claim.node


async def _has_devices(world: World, claim: d.HasDevices) -> str:
    found = {request: sorted(devices) for request, devices in world.base.devices.get(claim.owner, {}).items()}
    node = world.base.nodes.get(claim.pod, "")
    every = [device for requests in world.base.devices.values() for held in requests.values() for device in held]
    return all_hold(
        (found == {request: sorted(devices) for request, devices in claim.devices.items()}, f"it has {found}"),
        (all(device in _devices(world, node) for held in claim.devices.values() for device in held), "elsewhere"),
        (max(Counter(every).values(), default=1) == 1, "a device that two claims have"),
    )


async def _lacks_devices(world: World, claim: d.LacksDevices) -> str:
    here = tuple(_devices(world, claim.node))
    asked = _request(world, claim.request)["count"]
    if claim.usable < 0:
        return "less than nothing"
    few = max(claim.usable, 1)
    enough = await world.after(Change(edits=(_asking(world, claim.request, few),), only_devices=here))
    many = await world.after(Change(edits=(_asking(world, claim.request, claim.usable + 1),), only_devices=here))
    refused = sum(g.count for g in world.first.refused if g.plugin == "DynamicResources") if world.first else 0
    constraints = _claims(world)[claim.request.rpartition("/")[0]]["spec"]["devices"].get("constraints", ())
    apart = tuple(each["matchAttribute"] for each in constraints) if claim.usable >= asked else ()
    return all_hold(
        (claim.refused == refused, f"{refused} nodes are refused"),
        (claim.looked_at == 0, "all nodes were looked at"),
        (claim.split == apart, f"it is split by {apart}"),
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (claim.nodes == len(world.case.nodes), "another number of nodes"),
        (claim.asked == asked, f"it asks for {asked}"),
        (claim.usable + sum(claim.states.values()) == len(here), f"{len(here)} devices"),
        (not claim.usable or enough.nodes.get(claim.pod) == claim.node, "not so many would do"),
        (not many.nodes.get(claim.pod), "more would do"),
    )


async def _free(world: World, claim: d.DeviceFree) -> str:
    return all_hold(
        (not _holders(world, claim.device), "a claim has it"), (await _is_usable(world, claim), "it would not do")
    )


async def _taken(world: World, claim: d.DeviceTaken) -> str:
    holders = _holders(world, claim.device)
    users = [f"default/{user['name']}" for each in holders for user in each["status"]["reservedFor"]]
    return all_hold(
        (claim.device in _devices(world, claim.node), "no such device there"),
        (claim.owners == tuple(map(key_of, holders)), f"{list(map(key_of, holders))} have it"),
        (list(claim.users) == users, f"{users} use it"),
    )


async def _tainted(world: World, claim: d.DeviceTainted) -> str:
    taints = _devices(world, claim.node).get(claim.device, {}).get("taints", [])
    texts = [f"{each['key']}={each['value']}:{each['effect']}" for each in taints]
    return all_hold(
        (claim.taint in texts, f"its taints are {texts}"), (not await _is_usable(world, claim), "it would do")
    )


def _class(world: World) -> JsonObject:
    spec: JsonObject = next(item["spec"] for item in world.case.objects if item["kind"] == "DeviceClass")
    return spec


async def _refused(world: World, claim: d.DeviceRefused) -> str:
    device = _devices(world, claim.node).get(claim.device, {})
    texts = [f'"{each["string"]}"' for each in device.get("attributes", {}).values()]
    texts += [each["value"] for each in device.get("capacity", {}).values()]
    wanted = _request(world, claim.request)
    by = {f"claim {claim.request.rpartition('/')[0]}": wanted, f"class {wanted['deviceClassName']}": _class(world)}
    selectors = [each["cel"]["expression"] for each in by.get(claim.by, {}).get("selectors", ())]
    free = _asking(world, claim.request, 1)
    for each in free.patch["spec"]["devices"]["requests"]:
        each["exactly"].pop("selectors", None)
    after = await world.after(Change(edits=(free,), only_devices=(claim.device,)))
    return all_hold(
        (bool(device), "no such device there"),
        (any(claim.term in each for each in selectors), "no selector says so"),
        (all(text in texts for text in claim.values.values()), f"it has {texts}"),
        (not await _is_usable(world, claim), "it would do"),
        (bool(device.get("taints")) or after.nodes.get(claim.pod) == claim.node, "without the selector neither"),
    )


async def _fails(world: World, claim: d.DeviceFails) -> str:
    record = world.base.record
    return all_hold((record is not None and claim.error in record.message, "there is no such error"))


def _is_amount(text: str, amount: int) -> bool:
    return text[:1].isdigit() and value(text) == amount


async def _short(world: World, claim: d.DeviceShort) -> str:
    device = _devices(world, claim.node).get(claim.device, {})
    held = [each for name, each in _devices(world, claim.node).items() if _holders(world, name)]
    if claim.of.startswith("counter"):
        needs = device.get("consumesCounters", [{}])[0].get("counters", {}).get("memory", {}).get("value", "0")
        sets = [each for item in _slices(world, claim.node) for each in item["spec"].get("sharedCounters", ())]
        whole = sum(value(each["counters"]["memory"]["value"]) for each in sets)
        left = whole - sum(value(each["consumesCounters"][0]["counters"]["memory"]["value"]) for each in held)
    else:
        needs = _request(world, claim.request).get("capacity", {}).get("requests", {}).get("memory", "")
        shares = [
            result["consumedCapacity"]["memory"]
            for each in _holders(world, claim.device)
            for result in each["status"]["allocation"]["devices"]["results"]
        ]
        left = value(device.get("capacity", {}).get("memory", {}).get("value", "0")) - sum(map(value, shares))
    return all_hold(
        (claim.of in ("capacity memory", "counter memory of gpu"), "of something else"),
        (claim.needs == needs, f"it needs {needs}"),
        (not claim.left or _is_amount(claim.left, left), f"{left} is left"),
        (not await _is_usable(world, claim), "it would do"),
    )


async def _elsewhere(world: World, claim: d.DeviceElsewhere) -> str:
    return all_hold((not await _is_usable(world, claim), "it would do"))


async def _no_devices(world: World, claim: d.NoDevices) -> str:
    names = [node["metadata"]["name"] for node in world.case.nodes]
    return all_hold((claim.node in names, "no such node"), (not _devices(world, claim.node), "it has devices"))


async def _split(world: World, claim: d.DevicesSplit) -> str:
    name = claim.attribute.rpartition("/")[2]
    free = [each for device, each in _devices(world, claim.node).items() if not _holders(world, device)]
    counts = Counter(each["attributes"].get(name, {}).get("string", "") for each in free)
    request = f"{claim.owner}/{_claims(world)[claim.owner]['spec']['devices']['requests'][0]['name']}"
    count = _request(world, request)["count"]
    here = tuple(_devices(world, claim.node))
    after = await world.after(Change(edits=(_asking(world, request, count),), only_devices=here))
    rule = "distinctAttribute" if claim.is_distinct else "matchAttribute"
    constraints = _claims(world)[claim.owner]["spec"]["devices"].get("constraints", ())
    return all_hold(
        (any(each.get(rule) == claim.attribute for each in constraints), "there is no such constraint"),
        (dict(counts) == claim.values, f"they are {dict(counts)}"),
        (after.nodes.get(claim.pod) == claim.node, "without the constraint neither"),
    )


async def _contested(world: World, claim: d.DevicesContested) -> str:
    return all_hold((not world.base.nodes.get(claim.pod), "it has a node"))


async def _pool_unused(world: World, claim: d.PoolUnused) -> str:
    slices = [each for each in _slices(world, claim.node) if claim.pool.endswith(f"/{each['spec']['pool']['name']}")]
    wanted = {each["spec"]["pool"]["resourceSliceCount"] for each in slices}
    return all_hold(
        (bool(slices) and wanted != {len(slices)}, "all slices are there"),
        (claim.problem == "some of its slices are missing", "another problem"),
    )


async def _unreachable(world: World, claim: d.ClaimUnreachable) -> str:
    pools = {device.split("/")[1] for device in _allocated(_claims(world)[claim.owner])}
    return all_hold((claim.node not in pools, "its devices are there"))


DEVICE_EXECUTORS: dict[type, Callable[[World, Any], Awaitable[str]]] = {
    d.HasDevices: _has_devices,
    d.LacksDevices: _lacks_devices,
    d.DeviceFree: _free,
    d.DeviceTaken: _taken,
    d.DeviceTainted: _tainted,
    d.DeviceRefused: _refused,
    d.DeviceFails: _fails,
    d.DeviceShort: _short,
    d.DeviceElsewhere: _elsewhere,
    d.NoDevices: _no_devices,
    d.DevicesSplit: _split,
    d.DevicesContested: _contested,
    d.PoolUnused: _pool_unused,
    d.ClaimUnreachable: _unreachable,
}
