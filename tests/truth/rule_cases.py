"""Generated clusters with rules drawn at random: taints, affinity, spread, ports, amounts; one of them, or several.

The subject may fit or not: what is said about it must be true in both cases.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.truth.documents import Case, JsonObject, pod

__all__ = ["RULE_CAUSES"]

_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_REQUIRED, _PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
_APPS = ("web", "db", "cache")
Rule = Callable[[random.Random, Case, JsonObject], None]


def _taints(chance: random.Random, case: Case, subject: JsonObject) -> None:
    """Of all effects, with values and without, some of them tolerated in one of the ways that there are."""
    for node in case.nodes:
        for key in chance.sample(("team", "gpu", "spot"), chance.choice((0, 1, 1, 2))):
            taint = {"key": key, "effect": chance.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"))}
            if chance.random() < 0.7:
                taint["value"] = chance.choice(("a", "b"))
            there = node["spec"].setdefault("taints", [])
            if all((each["key"], each["effect"]) != (taint["key"], taint["effect"]) for each in there):
                there.append(taint)
    tolerations: list[JsonObject] = [
        {"key": "gpu", "operator": "Exists"},
        {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Equal", "value": "b"},
        {"operator": "Exists", "effect": "NoExecute"},
    ]
    subject["spec"]["tolerations"] = chance.sample(tolerations, chance.randint(0, 2))


def _node_labels(chance: random.Random, case: Case) -> None:
    for place, node in enumerate(case.nodes):
        labels = node["metadata"]["labels"]
        labels["cores"] = str(2 ** (place % 4))
        if chance.random() < 0.5:
            labels["disk"] = chance.choice(("ssd", "hdd"))


def _expression(chance: random.Random) -> JsonObject:
    expressions: list[JsonObject] = [
        {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]},
        {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
        {"key": "disk", "operator": "Exists"},
        {"key": "disk", "operator": "DoesNotExist"},
        {"key": "cores", "operator": "Gt", "values": [str(chance.choice((1, 4, 64)))]},
        {"key": "cores", "operator": "Lt", "values": [str(chance.choice((1, 4)))]},
        {"key": _ZONE, "operator": "In", "values": [chance.choice(("zone-a", "zone-b", "zone-x"))]},
    ]
    return chance.choice(expressions)


def _node_affinity(chance: random.Random, case: Case, subject: JsonObject) -> None:
    _node_labels(chance, case)
    terms = [
        {"matchExpressions": [_expression(chance) for _ in range(chance.randint(1, 2))]}
        for _ in range(chance.choice((1, 1, 2)))
    ]
    if chance.random() < 0.2:
        name = chance.choice(case.nodes)["metadata"]["name"]
        terms[0]["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    affinity: JsonObject = {}
    if chance.random() < 0.8:
        affinity[_REQUIRED] = {"nodeSelectorTerms": terms}
    if chance.random() < 0.5:
        preference = {"matchExpressions": [_expression(chance)]}
        affinity[_PREFERRED] = [{"weight": chance.choice((1, 50, 100)), "preference": preference}]
    _affinity_of(subject)["nodeAffinity"] = affinity


def _affinity_of(subject: JsonObject) -> JsonObject:
    affinity: JsonObject = subject["spec"].setdefault("affinity", {})
    return affinity


def _neighbours(chance: random.Random, case: Case) -> None:
    """Some pods of some applications."""
    first = len(case.pods)
    for place in range(first, first + chance.randint(0, 5)):
        home = chance.choice(case.nodes)["metadata"]["name"]
        case.pods.append(pod(f"near-{place}", cpu="20m", node=home, labels={"app": chance.choice(_APPS)}))


def _term(chance: random.Random) -> JsonObject:
    selector = {"matchLabels": {"app": chance.choice(_APPS)}}
    return {"labelSelector": selector, "topologyKey": chance.choice((_HOST, _ZONE))}


def _pod_affinity(chance: random.Random, case: Case, subject: JsonObject) -> None:
    _neighbours(chance, case)
    subject["metadata"]["labels"].setdefault("app", chance.choice(_APPS))
    for side in chance.sample(("podAffinity", "podAntiAffinity"), chance.randint(1, 2)):
        found: JsonObject = {}
        if chance.random() < 0.7:
            found[_REQUIRED] = [_term(chance)]
        if chance.random() < 0.5:
            found[_PREFERRED] = [{"weight": chance.choice((1, 100)), "podAffinityTerm": _term(chance)}]
        _affinity_of(subject)[side] = found


def _spread(chance: random.Random, case: Case, subject: JsonObject) -> None:
    _neighbours(chance, case)
    app = subject["metadata"]["labels"].setdefault("app", chance.choice(_APPS))
    constraints = []
    for key in chance.sample((_HOST, _ZONE), chance.randint(1, 2)):
        constraint: JsonObject = {
            "maxSkew": chance.choice((1, 1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": chance.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": {"matchLabels": {"app": app}},
        }
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and chance.random() < 0.3:
            constraint["minDomains"] = chance.choice((2, 5))
        if chance.random() < 0.3:
            constraint["nodeTaintsPolicy"] = "Honor"
        constraints.append(constraint)
    subject["spec"]["topologySpreadConstraints"] = constraints


def _ports(chance: random.Random, case: Case, subject: JsonObject) -> None:
    """Ports of several protocols and addresses, taken on some nodes."""

    def port() -> JsonObject:
        found: JsonObject = {"containerPort": 80, "hostPort": chance.choice((8080, 9090))}
        found["protocol"] = chance.choice(("TCP", "UDP"))
        if chance.random() < 0.3:
            found["hostIP"] = chance.choice(("127.0.0.1", "10.0.0.1"))
        return found

    for place, node in enumerate(case.nodes):
        if chance.random() < 0.8:
            container = {"ports": [port()]}
            name = node["metadata"]["name"]
            case.pods.append(pod(f"listens-{place}", cpu="20m", node=name, container=container))
    subject["spec"]["containers"][0]["ports"] = [port()]


_AMOUNTS = {"memory": ("1Gi", "15Gi", "64Gi"), "ephemeral-storage": ("1Gi", "99Gi", "200Gi"), "example.com/card": ()}


def _amounts(chance: random.Random, case: Case, subject: JsonObject) -> None:
    """Memory, disk and an extended resource, of which others have some."""
    requests = subject["spec"]["containers"][0]["resources"]["requests"]
    for resource in chance.sample(("memory", "ephemeral-storage"), 1):
        requests[resource] = chance.choice(_AMOUNTS[resource])
    if chance.random() < 0.5:
        return
    for place, node in enumerate(case.nodes):
        count = chance.randint(0, 3)
        if not count:
            continue
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts["example.com/card"] = str(count)
        if chance.random() < 0.6:
            _with_cards(pod(f"plays-{place}", cpu="20m", node=node["metadata"]["name"]), 1, case)
    asked = str(chance.randint(1, 4))
    subject["spec"]["containers"][0]["resources"]["requests"]["example.com/card"] = asked
    subject["spec"]["containers"][0]["resources"].setdefault("limits", {})["example.com/card"] = asked


def _with_cards(made: JsonObject, count: int, case: Case) -> None:
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"]["example.com/card"] = str(count)
    resources["limits"] = {"example.com/card": str(count)}
    case.pods.append(made)


def _cordons(chance: random.Random, case: Case, subject: JsonObject) -> None:
    for node in case.nodes:
        if chance.random() < 0.6:
            node["spec"]["unschedulable"] = True


def _selector(chance: random.Random, case: Case, subject: JsonObject) -> None:
    _node_labels(chance, case)
    subject["spec"]["nodeSelector"] = chance.choice(({"disk": "ssd"}, {"disk": "hdd", _ZONE: "zone-a"}, {"rack": "7"}))


_RULES: dict[str, Rule] = {
    "any taints": _taints,
    "any node affinity": _node_affinity,
    "any pod affinity": _pod_affinity,
    "any spread": _spread,
    "any ports": _ports,
    "any amounts": _amounts,
    "any cordons": _cordons,
    "any selector": _selector,
}


def _ruled(*rules: Rule) -> Callable[[random.Random, Case], None]:
    def make(chance: random.Random, case: Case) -> None:
        subject = pod("subject", cpu=f"{chance.choice((50, 900))}m")
        for rule in rules or chance.sample(list(_RULES.values()), chance.randint(2, 4)):
            rule(chance, case, subject)
        _let_stay(case)
        case.pods.append(subject)

    return make


def _let_stay(case: Case) -> None:
    """Pods that run tolerate everything: those that a taint evicts would leave for nobody's sake."""
    for each in case.pods:
        if each["spec"].get("nodeName"):
            each["spec"]["tolerations"] = [{"operator": "Exists"}]


def _crowd(chance: random.Random, case: Case) -> None:
    """Several pods that wait, each with rules of its own."""
    _ruled()(chance, case)
    for place in range(chance.randint(2, 4)):
        other: Any = pod(f"waits-{place}", cpu=f"{chance.choice((50, 500))}m")
        for rule in chance.sample([_taints, _selector, _node_affinity], 1):
            rule(chance, case, other)
        case.pods.append(other)
    _let_stay(case)


RULE_CAUSES: dict[str, Callable[[random.Random, Case], None]] = {
    **{name: _ruled(rule) for name, rule in _RULES.items()},
    "any rules": _ruled(),
    "more rules": _ruled(),
    "a crowd": _crowd,
}
