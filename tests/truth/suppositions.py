"""Executors of claims about what would happen if: the change is made to the documents, and the scheduler decides."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from bayplan.explain.claims import pods as c
from bayplan.explain.claims.base import Edit
from tests.truth.amounts import amount_of, asked_in_words, largest_in_words, requested
from tests.truth.changes import key_of
from tests.truth.documents import SUBJECT, JsonObject
from tests.truth.experiments import Outcome
from tests.truth.owned_cases import is_lasting
from tests.truth.world import World, all_hold, evaluated

__all__ = ["SUPPOSITIONS"]

_NODE, _POD = re.compile(r"\bnode-\d+\b"), re.compile(r"\bdefault/[\w-]+")
_OTHER_NAME = re.compile(r"if the pod named the scheduler `([\w-]+)`: (.*?)\.?$")
_HELD = re.compile(r"would be held on ([\w-]+) at Permit by (\w+)")


async def _would_fit(world: World, claim: c.WouldFit) -> str:
    others = await _others_come_first(world, claim) if claim.before else ""
    if others:
        return others
    if claim.before:
        after = await world.again(edits=claim.edits, line=_in_front(world))
    else:
        after = await world.again(edits=claim.edits)
    node, record = after.nodes.get(claim.pod, ""), after.record
    if not node or record is None:
        return f"it stays pending: {record.message if record is not None else ''}"
    told = (
        _told(world, claim.what, claim.edits)
        or _fates(world, claim, after)
        or all_hold((sorted(claim.victims) == sorted(_left(world, claim.edits, after)), "other victims"))
    )
    if not claim.node:
        # A group finds places in an order of its own: it runs, and no node or number is claimed.
        return told or all_hold((claim.nodes == 0, "a number of nodes"))
    return told or all_hold(
        (record.feasible == claim.nodes, f"{record.feasible} nodes fit"), (node == claim.node, f"on {node}")
    )


async def _others_come_first(world: World, claim: c.WouldFit) -> str:
    """Whether so many pods have their turns first, and leave nothing to the subject."""
    ahead, in_turn = world.ahead_of(claim.pod), await world.again(edits=claim.edits)
    return all_hold(
        (claim.before == len(ahead), f"{ahead} come first"),
        (not in_turn.nodes.get(claim.pod), "it fits in its turn"),
    )


def _in_front(world: World) -> tuple[str, ...]:
    return SUBJECT, *(key for key in world.base.line if key != SUBJECT)


def _fates(world: World, claim: c.WouldFit | c.Frees, after: Outcome) -> str:
    """Whether the pods that are deleted come to what is said."""
    deleted = [edit.name for edit in claim.edits if edit.kind == "deletePod"]
    lost = [key for key in deleted if key not in after.nodes]
    waiting = [key for key in deleted if after.nodes.get(key) == ""]
    lasting = [key_of(pod) for pod in world.case.pods if key_of(pod) in deleted and is_lasting(pod)]
    against = _budgets_against(world, deleted)
    return all_hold(
        (list(claim.against) == against, f"{against} allow fewer to leave"),
        (sorted(claim.lost) == sorted(lost), f"{lost} are lost"),
        (sorted(claim.displaced) == sorted(waiting), f"{waiting} are made again and wait"),
        (not lasting, f"{lasting} come back to their nodes"),
    )


def _budgets_against(world: World, deleted: Sequence[str]) -> list[str]:
    """Budgets that would have fewer pods left than they are to have."""
    labels = {key_of(pod): pod["metadata"]["labels"].items() for pod in world.case.pods}
    running = [key for key, node in world.base.nodes.items() if node]
    found = []
    for budget in (item for item in world.case.objects if item["kind"] == "PodDisruptionBudget"):
        wanted = budget["spec"]["selector"]["matchLabels"].items()
        covered = [key for key in running if wanted <= labels[key]]
        kept = [key for key in covered if key not in deleted]
        if len(kept) < len(covered) and len(kept) < budget["spec"]["minAvailable"]:
            found.append(key_of(budget))
    return sorted(found)


def _left(world: World, edits: Sequence[Edit], after: Outcome) -> list[str]:
    """Pods that ran and are gone, without those that the edits delete."""
    deleted = {edit.name for edit in edits if edit.kind == "deletePod"}
    ran = [key for key, node in world.base.nodes.items() if node]
    return [key for key in ran if key not in after.nodes and key not in deleted]


def _told(world: World, what: str, edits: Sequence[Edit]) -> str:
    """Whether the words are about what the edits change: its names, its values, and no other node."""
    names = {edit.name.rpartition("/")[2] for edit in edits if edit.kind in ("patchNode", "deletePod", "create")}
    places = {key_of(pod): pod["spec"].get("nodeName", "") for pod in world.case.pods}
    # Objects may have the name of the node that they are about.
    nodes = {edit.name for edit in edits if edit.kind in ("patchNode", "patch", "create")}
    nodes |= {places.get(edit.name, "") for edit in edits if edit.kind == "deletePod"}
    for edit in edits:
        if edit.kind == "addNode":
            # A twin is named after its model.
            nodes |= set(_NODE.findall(what)) & {n["metadata"]["name"] for n in world.case.nodes}
    nodes |= set(_NODE.findall(str([edit.patch for edit in edits])))
    missing = [name for name in names if name not in what]
    # More members of a group are named after the one that they are like.
    pods = {edit.name for edit in edits} | {e.name.rpartition("-more-")[0] for e in edits if e.kind == "addPod"}
    return all_hold(
        (bool(what) and what != "another", "it does not say what"),
        (not missing, f"it does not name {missing}"),
        (set(_NODE.findall(what)) <= nodes, f"it names {set(_NODE.findall(what)) - nodes}"),
        (set(_POD.findall(what)) <= pods, f"it names {_POD.findall(what)}"),
    )


async def _would_move(world: World, claim: c.WouldMove) -> str:
    if claim.home != world.base.nodes.get(claim.pod):
        return f"it is on {world.base.nodes.get(claim.pod)}"
    if (claim.drain or claim.plugin) not in claim.what or not (claim.drain or claim.plugin):
        return "it says something else than it supposes"
    weights = ((claim.plugin, claim.weight),) if claim.plugin else ()
    after = await world.again(drain=claim.drain, weights=weights)
    node = after.nodes.get(claim.pod, "")
    if not claim.node:
        return all_hold((not node, f"it goes to {node}"), (not claim.victims, "victims for nothing"))
    preemption = after.record.preemption if after.record is not None else None
    left = sorted(key for key, home in world.base.nodes.items() if home and key not in after.nodes)
    return all_hold(
        (bool(node), "it stays pending"),
        (node != claim.home, "it stays"),
        (any(n["metadata"]["name"] == claim.node for n in world.case.nodes), "no such node"),
        (claim.ties == (preemption.ties if preemption is not None else 1), "another number of nodes that cost so much"),
        (claim.ties > 1 or node == claim.node, f"it goes to {node}"),
        (len(left) == len(claim.victims), f"{left} leave"),
        (all(world.base.nodes.get(victim) == claim.node for victim in claim.victims), "victims that run elsewhere"),
        (claim.ties > 1 or left == sorted(claim.victims), f"{left} leave"),
    )


async def _without(world: World, claim: c.Without) -> str:
    # The nodes are counted for this pod alone; plugins of groups want to see the others.
    after = await world.again(without_plugin=claim.plugin, nominated=(), alone=not world.case.plugin)
    feasible = after.record.feasible if after.record is not None else -1
    return all_hold(
        (feasible == claim.nodes, f"{feasible} nodes fit"),
        (claim.plugin in world.base.plugins, "there is no such plugin"),
    )


async def _lacks(world: World, claim: c.Lacks) -> str:
    node = next((n for n in world.case.nodes if n["metadata"]["name"] == claim.node), None)
    if node is None:
        return "no such node"
    problems = []
    for resource, amount in claim.amounts.items():
        offered = amount_of(node["status"]["allocatable"].get(resource, "0"), resource)
        there = [pod for pod in world.case.pods if world.base.nodes.get(key_of(pod)) == claim.node]
        there += [pod for pod in world.case.pods if pod.get("status", {}).get("nominatedNodeName") == claim.node]
        used = sum(requested(pod, resource) for pod in there)
        short = requested(world.subject, resource) - (offered - used)
        if short != amount_of(amount, resource):
            problems.append(f"{resource}: {short}")
    return "; ".join(problems) or await _others_object(world, claim)


async def _others_object(world: World, claim: c.Lacks) -> str:
    """Who refuses the node to a pod that asks next to nothing; its places for pods are not looked at."""
    if "pods" in claim.amounts:
        return all_hold((set(claim.also) <= set(world.base.plugins), "there is no such plugin"))
    result = evaluated(world.case, little=True, nodes=world.base.nodes)
    if result is not None:
        refused = (result.get("prefilter") or result["nodes"].get(claim.node, {})).get("plugin", "")
    else:
        record = (await world.again(edits=[_asking_little(world)])).first
        refused = next((g.plugin for g in record.refused if claim.node in g.sample), "") if record is not None else ""
    if refused == "NodeResourcesFit" and any(
        pod.get("status", {}).get("nominatedNodeName") == claim.node for pod in world.case.pods
    ):
        refused = ""  # it lacks room for those that are there or nominated, whatever the subject asks
    return all_hold(
        (bool(refused) == bool(claim.also) or not refused, f"{refused} objects"),
        (not claim.also or refused in claim.also, f"{refused or 'nobody'} objects"),
        (set(claim.also) <= set(world.base.plugins), "there is no such plugin"),
    )


def _asking_little(world: World) -> Edit:
    """The subject with next to nothing asked for."""
    resources = world.subject["spec"]["containers"][0].get("resources", {})
    nothing = {part: dict.fromkeys(resources.get(part, {})) for part in ("requests", "limits")}
    little = {"name": "main", "resources": {**nothing, "requests": {**nothing["requests"], "cpu": "1m"}}}
    gone = [{"$patch": "delete", "name": each["name"]} for each in world.subject["spec"].get("initContainers", ())]
    more = {"initContainers": gone} if gone else {}
    return Edit(kind="patchPod", name=SUBJECT, patch={"spec": {"containers": [little], **more}})


async def _too_large(world: World, claim: c.TooLarge) -> str:
    largest, asked = largest_in_words(world, claim.resource), asked_in_words(world, claim.resource)
    return all_hold((largest == claim.largest, f"the largest has {largest!r}"), (asked == claim.asked, f"asks {asked}"))


async def _frees(world: World, claim: c.Frees) -> str:
    after = await world.again(edits=claim.edits)
    waiting = [key for key, node in world.base.nodes.items() if not node]
    freed = sum(1 for key in waiting if after.nodes.get(key))
    told = _told(world, claim.what, claim.edits) or _fates(world, claim, after)
    return told or all_hold(
        (freed == claim.count if not claim.is_limited else freed >= claim.count, f"{freed} find a node"),
        (claim.of == len(waiting), f"{len(waiting)} wait"),
    )


async def _nothing_helps(world: World, claim: c.NothingHelps) -> str:
    """Each thing that an operator would try first, by itself: the pod still waits."""
    if world.base.nodes.get(claim.pod):
        return "it runs"
    for what, edit in _simple_changes(world):
        after = await world.again(edits=[edit])
        if after.nodes.get(claim.pod):
            return f"it runs {what}"
    held = _HELD.search(claim.reason)
    if held is not None:
        without = await world.again(without_plugin=held[2])
        return all_hold((without.nodes.get(claim.pod) == held[1], f"without {held[2]}: {without.nodes}"))
    other = _OTHER_NAME.search(claim.reason)
    if other is not None:
        edit = Edit(kind="patchPod", name=claim.pod, patch={"spec": {"schedulerName": other[1]}})
        under = await world.again(edits=[edit])
        told = under.messages.get(claim.pod, "")
        return all_hold((not under.nodes.get(claim.pod), "it runs"), (other[2] in told, f"it was told {told}"))
    said = [world.base.messages.get(claim.pod, "")]
    said += [record.message for record in (world.base.record, world.first) if record is not None]
    reasons = [part for part in re.split(r": |; ", claim.reason) if len(part) > 3]
    return all_hold(
        (bool(reasons), "no reason is given"),
        (any(part.rstrip(".") in text for part in reasons[-1:] for text in said), f"it was told {said}"),
    )


def _simple_changes(world: World) -> Iterator[tuple[str, Edit]]:
    spec = world.subject["spec"]
    wants = "nodeSelector", "affinity", "topologySpreadConstraints", "schedulingGates", "volumes"
    for name in (name for name in wants if spec.get(name)):
        patch: JsonObject = {name: None}
        if name == "volumes":
            patch = {name: [{"$patch": "delete", "name": volume["name"]} for volume in spec[name]]}
        yield f"without {name}", Edit(kind="patchPod", name=SUBJECT, patch={"spec": patch})
    everything = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    yield "if it tolerates everything", Edit(kind="patchPod", name=SUBJECT, patch=everything)
    yield "if it asks little", _asking_little(world)
    ports = {"name": "main", "ports": [{"$patch": "replace"}]}
    yield "without ports", Edit(kind="patchPod", name=SUBJECT, patch={"spec": {"containers": [ports]}})
    for node in world.case.nodes:
        patch = {"spec": {"taints": None, "unschedulable": None}}
        yield f"on {node['metadata']['name']}", Edit(kind="patchNode", name=node["metadata"]["name"], patch=patch)
    # Named as a twin is, since DaemonSets and kubelets would start their pods on it too.
    name = f"{world.case.nodes[0]['metadata']['name']}-more-new"
    large = {**world.case.nodes[0], "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
    yield "on a new node", Edit(kind="addNode", name=name, object=large)


SUPPOSITIONS: dict[type, Callable[[World, Any], Awaitable[str]]] = {
    c.WouldFit: _would_fit,
    c.WouldMove: _would_move,
    c.Without: _without,
    c.Lacks: _lacks,
    c.TooLarge: _too_large,
    c.Frees: _frees,
    c.NothingHelps: _nothing_helps,
}
