"""Executors: for each type of claim, what must be done and looked at to say that it is true.

An executor answers with what is wrong, or with nothing. Experiments are kept by their change, so that a claim that was
falsified on purpose is held against the same observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from bayplan.api.quantity import milli_value, value
from bayplan.explain import claims as c
from bayplan.explain.cases import evaluate_case
from tests.truth.device_executors import DEVICE_EXECUTORS
from tests.truth.documents import SUBJECT, Case, JsonObject
from tests.truth.experiments import Change, key_of
from tests.truth.world import World, all_hold

__all__ = ["EXECUTORS", "execute"]


async def execute(world: World, claim: c.Claim) -> str:
    """What is wrong with the claim; empty if nothing is."""
    return await EXECUTORS[type(claim)](world, claim)


# Then


async def _chosen(world: World, claim: c.Chosen) -> str:
    record, node = world.base.record, world.base.nodes.get(claim.pod, "")
    if record is None:
        return "there is no record"
    running = {key_of(pod) for pod in world.case.pods if pod["spec"].get("nodeName")}
    gone = tuple(sorted(key for key in running if key not in world.base.nodes))
    runner_up = record.runner_up.node if record.runner_up is not None else ""
    totals = [record.total, *([record.runner_up.total] if record.runner_up is not None else [])]
    sums = [sum(p.weighted for p in record.points.values())]
    return all_hold(
        (node == claim.node, f"it is on {node!r}"),
        (len(world.case.nodes) == claim.nodes, "another number of nodes"),
        (claim.by == record.chosen_by, f"it was chosen by {record.chosen_by}"),
        (claim.by != "points" or sums[0] == claim.total, f"points add up to {sums[0]}"),
        (claim.runner_up == runner_up, f"the runner-up is {runner_up!r}"),
        (not claim.runner_up or claim.ahead == totals[0] - totals[1], "another lead"),
        ((claim.ties > 1) == (claim.by == "points" and len(totals) > 1 and totals[0] == totals[1]), "ties"),
        (tuple(sorted(claim.victims)) == gone, f"{gone} left"),
    )


async def _preempted(world: World, claim: c.Preempted) -> str:
    victim = next((pod for pod in world.case.pods if key_of(pod) == claim.pod), None)
    return all_hold(
        (victim is not None and victim["spec"].get("nodeName") == claim.node, "it ran elsewhere"),
        (claim.pod not in world.base.nodes, "it is still there"),
        (world.base.nodes.get(claim.by) == claim.node, "the preemptor is elsewhere"),
    )


async def _unplaced(world: World, claim: c.Unplaced) -> str:
    return all_hold((claim.pod not in world.base.nodes, "it is there"))


async def _refused_later(world: World, claim: c.RefusedLater) -> str:
    record = world.base.record
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (record is not None and (record.stopped_at, record.stopped_by) == (claim.point, claim.plugin), "elsewhere"),
        (record is not None and record.node == claim.node, "another node"),
    )


# Now


async def _goes_to(world: World, claim: c.GoesTo) -> str:
    return all_hold((world.base.nodes.get(claim.pod, "") in ("", claim.node), "it went elsewhere"))


async def _fits_nowhere(world: World, claim: c.FitsNowhere) -> str:
    refused = _refused_offline(world.case)
    counted = None if refused is None else refused.get((claim.plugin, claim.reason))
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (claim.nodes == len(world.case.nodes), "another number of nodes"),
        (refused is None or not claim.plugin or counted == claim.refused, f"refused: {refused}"),
        (not claim.resource or _largest(world, claim.resource) == claim.largest, "another largest node"),
        (not claim.resource or _asked(world, claim.resource) == claim.asked, "it asks another amount"),
    )


def _refused_offline(case: Case) -> Counter[tuple[str, str]] | None:
    """Nodes by who refuses them and why, evaluated from the documents; None where a community plugin takes part."""
    if case.plugin:
        return None
    others = [pod for pod in case.pods if key_of(pod) != SUBJECT and pod["spec"].get("nodeName")]
    subject = next(pod for pod in case.pods if key_of(pod) == SUBJECT)
    result = evaluate_case({"objects": [*case.nodes, *case.objects, *others], "pod": subject})
    assert isinstance(result, dict)  # a single pod
    if "prefilter" in result:
        entry = result["prefilter"]
        return Counter({(entry["plugin"], ", ".join(entry["reasons"])): len(case.nodes)})
    return Counter((entry["plugin"], ", ".join(entry["reasons"])) for entry in result["nodes"].values())


async def _would_preempt(world: World, claim: c.WouldPreempt) -> str:
    ran = {key_of(pod): pod["spec"].get("nodeName") for pod in world.case.pods}
    return all_hold(
        (all(ran.get(victim) == claim.node for victim in claim.victims), "victims that ran elsewhere"),
        (bool(claim.victims), "no victims"),
    )


async def _held_back(world: World, claim: c.HeldBack) -> str:
    gates = tuple(gate["name"] for gate in world.subject["spec"].get("schedulingGates", ()))
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"), (claim.gates == gates, f"its gates are {gates}")
    )


async def _held_at_permit(world: World, claim: c.HeldAtPermit) -> str:
    record = world.base.record
    held = record.permit if record is not None else None
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it is bound"),
        (held is not None and tuple(held.plugins) == claim.plugins, "others hold it"),
        (record is not None and record.node == claim.node, "another node"),
    )


async def _no_scheduler(world: World, claim: c.NoScheduler) -> str:
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (world.subject["spec"].get("schedulerName") == claim.scheduler, "it names another scheduler"),
    )


# If


async def _would_fit(world: World, claim: c.WouldFit) -> str:
    after = await world.after(Change(edits=claim.edits))
    node, record = after.nodes.get(claim.pod, ""), after.record
    if not node or record is None:
        return f"it stays pending: {record.message if record is not None else ''}"
    if not claim.node:
        return ""
    return all_hold(
        (record.feasible == claim.nodes, f"{record.feasible} nodes fit"), (node == claim.node, f"on {node}")
    )


async def _would_move(world: World, claim: c.WouldMove) -> str:
    if claim.home != world.base.nodes.get(claim.pod):
        return f"it is on {world.base.nodes.get(claim.pod)}"
    weights = ((claim.plugin, claim.weight),) if claim.plugin else ()
    after = await world.again(drain=claim.drain, weights=weights)
    node = after.nodes.get(claim.pod, "")
    if not claim.node:
        return all_hold((not node, f"it goes to {node}"))
    return all_hold(
        (bool(node), "it stays pending"),
        (node == claim.node, f"it goes to {node}"),
        (all(victim not in after.nodes for victim in claim.victims), "a victim is still there"),
    )


async def _without(world: World, claim: c.Without) -> str:
    after = await world.after(Change(without_plugin=claim.plugin))
    feasible = after.record.feasible if after.record is not None else -1
    return all_hold((feasible == claim.nodes, f"{feasible} nodes fit"))


async def _lacks(world: World, claim: c.Lacks) -> str:
    node = next((n for n in world.case.nodes if n["metadata"]["name"] == claim.node), None)
    if node is None:
        return "no such node"
    problems = []
    for resource, amount in claim.amounts.items():
        offered = _amount(node["status"]["allocatable"].get(resource, "0"), resource)
        used = sum(
            _requested(pod, resource) for pod in world.case.pods if world.base.nodes.get(key_of(pod)) == claim.node
        )
        short = _requested(world.subject, resource) - (offered - used)
        if short != _amount(amount, resource):
            problems.append(f"{resource}: {short}")
    return "; ".join(problems)


async def _too_large(world: World, claim: c.TooLarge) -> str:
    return all_hold(
        (_largest(world, claim.resource) == claim.largest, f"the largest has {_largest(world, claim.resource)!r}"),
        (_asked(world, claim.resource) == claim.asked, "it asks another amount"),
    )


async def _frees(world: World, claim: c.Frees) -> str:
    after = await world.after(Change(edits=claim.edits))
    waiting = [key for key, node in world.base.nodes.items() if not node]
    freed = sum(1 for key in waiting if after.nodes.get(key))
    return all_hold(
        (freed == claim.count if not claim.is_limited else freed >= claim.count, f"{freed} find a node"),
        (claim.of <= len(waiting), "more than wait"),
    )


async def _nothing_helps(world: World, claim: c.NothingHelps) -> str:
    return all_hold((not world.base.nodes.get(claim.pod), "it runs"), (bool(claim.reason), "no reason is given"))


def _amount(text: str, resource: str) -> int:
    return milli_value(text) if resource == "cpu" else value(text)


def _requested(pod: JsonObject, resource: str) -> int:
    resources = pod["spec"]["containers"][0].get("resources", {})
    found = resources.get("requests", {}).get(resource) or resources.get("limits", {}).get(resource) or "0"
    return _amount(str(found), resource)


def _words(amount: int, resource: str) -> str:
    if resource == "cpu":
        return f"{amount // 1000 if amount % 1000 == 0 else f'{amount}m'} CPU"
    return f"{amount} {resource}"


def _largest(world: World, resource: str) -> str:
    most = max(_amount(n["status"]["allocatable"].get(resource, "0"), resource) for n in world.case.nodes)
    return _words(most, resource) if most else ""


def _asked(world: World, resource: str) -> str:
    return _words(_requested(world.subject, resource), resource)


EXECUTORS: dict[type, Callable[[World, Any], Awaitable[str]]] = {
    c.Chosen: _chosen,
    c.Preempted: _preempted,
    c.Unplaced: _unplaced,
    c.RefusedLater: _refused_later,
    c.GoesTo: _goes_to,
    c.FitsNowhere: _fits_nowhere,
    c.WouldPreempt: _would_preempt,
    c.HeldBack: _held_back,
    c.HeldAtPermit: _held_at_permit,
    c.NoScheduler: _no_scheduler,
    c.WouldFit: _would_fit,
    c.WouldMove: _would_move,
    c.Without: _without,
    c.Lacks: _lacks,
    c.TooLarge: _too_large,
    c.Frees: _frees,
    c.NothingHelps: _nothing_helps,
    **DEVICE_EXECUTORS,
}
