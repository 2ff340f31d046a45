"""Causes: what keeps the subject of a case from running, or lets it run, one function each."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from bayplan.explain.claims.base import Edit
from tests.truth.community_cases import COMMUNITY_CAUSES
from tests.truth.device_cases import DEVICE_CAUSES
from tests.truth.documents import SUBJECT, Case, new_case, pod
from tests.truth.owned_cases import OWNED_CAUSES, own_some
from tests.truth.preemption_cases import PREEMPTION_CAUSES
from tests.truth.rule_cases import RULE_CAUSES
from tests.truth.volume_cases import VOLUME_CAUSES

__all__ = ["CAUSES", "generate"]


def generate(seed: int, number: int) -> Case:
    """The same case for the same seed and number."""
    chance = random.Random(seed * 1_000_003 + number)
    cause = list(CAUSES)[number % len(CAUSES)]
    case = new_case(number, cause, chance)
    CAUSES[cause](chance, case)
    if chance.random() < 0.5:
        own_some(chance, case)
    return case


def _subject(case: Case, **spec: Any) -> None:
    case.pods.append(pod("subject", **spec))


def _fits(chance: random.Random, case: Case) -> None:
    _subject(case, cpu="100m")


def _only_node(chance: random.Random, case: Case) -> None:
    chosen = chance.choice(case.nodes)
    chosen["metadata"]["labels"]["disk"] = "ssd"
    _subject(case, cpu="50m", nodeSelector={"disk": "ssd"})


def _room(chance: random.Random, case: Case) -> None:
    for place, node in enumerate(case.nodes):
        free = int(node["status"]["allocatable"]["cpu"]) * 1000 - 1900
        case.pods.append(pod(f"fills-{place}", cpu=f"{max(free, 100)}m", node=node["metadata"]["name"]))
    _subject(case, cpu=f"{chance.choice((1950, 2000))}m")


def _too_large(chance: random.Random, case: Case) -> None:
    _subject(case, cpu=str(chance.choice((12, 64, 500))))


def _no_gpu(chance: random.Random, case: Case) -> None:
    _subject(case, more_requests={"nvidia.com/gpu": "1"}, container={"resources": {}})
    container = case.pods[-1]["spec"]["containers"][0]
    container["resources"] = {
        "requests": {"cpu": "100m", "memory": "64Mi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }


def _taint(chance: random.Random, case: Case) -> None:
    value = chance.choice(("a", "b"))
    for node in case.nodes:
        node["spec"]["taints"] = [{"key": "team", "value": value, "effect": "NoSchedule"}]
    _subject(case)


def _cordon(chance: random.Random, case: Case) -> None:
    for node in case.nodes:
        node["spec"]["unschedulable"] = True
    _subject(case)


def _selector(chance: random.Random, case: Case) -> None:
    selector = {"disk": "ssd"} if chance.random() < 0.5 else {"disk": "ssd", "topology.kubernetes.io/zone": "zone-a"}
    _subject(case, nodeSelector=selector)


def _node_affinity(chance: random.Random, case: Case) -> None:
    term = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    _subject(case, affinity={"nodeAffinity": required})


def _two_causes(chance: random.Random, case: Case) -> None:
    _taint(chance, case)
    case.pods[-1]["spec"]["nodeSelector"] = {"disk": "ssd"}


def _anti_affinity(chance: random.Random, case: Case) -> None:
    for place, node in enumerate(case.nodes):
        name = node["metadata"]["name"]
        case.pods.append(pod(f"keeps-{place}", cpu="50m", node=name, labels={"app": "alone"}))
    term = {"labelSelector": {"matchLabels": {"app": "alone"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    _subject(case, labels={"app": "alone"}, affinity=apart)


def _affinity(chance: random.Random, case: Case) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "absent"}}, "topologyKey": "topology.kubernetes.io/zone"}
    _subject(case, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def _spread(chance: random.Random, case: Case) -> None:
    """One zone has all of them, and the others are cordoned."""
    case.nodes[:] = case.nodes[:2]
    home = case.nodes[0]["metadata"]["name"]
    case.pods[:] = [each for each in case.pods if each["spec"].get("nodeName") == home]
    case.pods.append(pod("first", cpu="50m", node=home, labels={"app": "even"}))
    case.nodes[1]["spec"]["taints"] = [{"key": "only", "value": "others", "effect": "NoSchedule"}]
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    _subject(case, cpu="50m", labels={"app": "even"}, topologySpreadConstraints=[constraint])


def _port(chance: random.Random, case: Case) -> None:
    ports = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    for place, node in enumerate(case.nodes):
        case.pods.append(pod(f"listens-{place}", cpu="50m", node=node["metadata"]["name"], container=ports))
    _subject(case, cpu="50m", container=ports)


def _no_group(chance: random.Random, case: Case) -> None:
    """The label names a group that nobody made."""
    _gang_of(case, 2)
    case.objects.clear()


def _gate(chance: random.Random, case: Case) -> None:
    _subject(case, schedulingGates=[{"name": name} for name in ("quota", "review")[: chance.randint(1, 2)]])


def _other_scheduler(chance: random.Random, case: Case) -> None:
    _subject(case, cpu=chance.choice(("200m", "200m", "64")), schedulerName="nobody")


def _many(chance: random.Random, case: Case) -> None:
    _subject(case, cpu="50m", nodeSelector={"disk": "ssd"})
    for place in range(chance.randint(1, 8)):
        case.pods.append(pod(f"like-{place}", cpu="50m", nodeSelector={"disk": "ssd"}))


_MEMBER = {"scheduling.x-k8s.io/pod-group": "gang"}


def _gang_of(case: Case, members: int) -> None:
    """A group that wants so many, and the subject in it."""
    case.plugin = "Coscheduling"
    case.objects.append(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "gang", "namespace": "default"},
            "spec": {"minMember": members},
        }
    )
    _subject(case, cpu="50m", labels=_MEMBER)


def _gang(chance: random.Random, case: Case) -> None:
    members = chance.randint(2, 4)
    _gang_of(case, members)
    for place in range(chance.randint(0, members - 1)):
        case.pods.append(pod(f"younger-{place}", cpu="50m", labels=_MEMBER))


def _quota(chance: random.Random, case: Case) -> None:
    case.plugin = "CapacityScheduling"
    least = {"cpu": chance.choice(("400m", "1")), "memory": "4Gi"}
    case.objects.append(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": "default"},
            "spec": {"min": least, "max": {"cpu": "1", "memory": "4Gi"}},
        }
    )
    case.pods.clear()
    _subject(case, cpu=chance.choice(("500m", "1500m")))


def _numa(chance: random.Random, case: Case) -> None:
    case.plugin = "NodeResourceTopologyMatch"
    for node in case.nodes:
        zones = [
            {
                "name": f"node-{cell}",
                "type": "Node",
                "resources": [
                    {"name": "cpu", "capacity": "1", "allocatable": "1", "available": "1"},
                    {"name": "memory", "capacity": "8Gi", "allocatable": "8Gi", "available": "8Gi"},
                ],
            }
            for cell in range(2)
        ]
        case.objects.append(
            {
                "apiVersion": "topology.node.k8s.io/v1alpha2",
                "kind": "NodeResourceTopology",
                "metadata": {"name": node["metadata"]["name"]},
                "attributes": [
                    {"name": "topologyManagerPolicy", "value": "single-numa-node"},
                    {"name": "topologyManagerScope", "value": "container"},
                ],
                "zones": zones,
            }
        )
    cpu = chance.choice(("1", "2"))
    amounts = {"cpu": cpu, "memory": "128Mi"}
    case.pods.clear()
    _subject(case, container={"resources": {"requests": amounts, "limits": dict(amounts)}})


# What counts beside the containers


def _init(chance: random.Random, case: Case) -> None:
    """Containers that run before the others, some of them for as long as the pod does."""
    _too_full(chance, case)
    kinds = chance.choice((("once",), ("sidecar",), ("once", "sidecar"), ("sidecar", "once")))
    _subject(case, cpu="300m")
    for kind in kinds:
        amounts = {"cpu": f"{chance.choice((200, 900, 1800))}m", "memory": "64Mi"}
        container = {"name": kind, "image": "init:1", "resources": {"requests": amounts}}
        more = {"restartPolicy": "Always"} if kind == "sidecar" else {}
        case.pods[-1]["spec"].setdefault("initContainers", []).append({**container, **more})


def _overhead(chance: random.Random, case: Case) -> None:
    """What the runtime takes for itself; admission writes it into the pod."""
    _too_full(chance, case)
    overhead = {"cpu": f"{chance.choice((100, 700, 1200))}m", "memory": "120Mi"}
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}
    case.objects.append({**head, "overhead": {"podFixed": overhead}})
    _subject(case, cpu="400m", runtimeClassName="kata", overhead=overhead)


def _too_full(chance: random.Random, case: Case) -> None:
    """Nodes with a core left, or less."""
    case.pods.clear()
    for place, node in enumerate(case.nodes):
        used = int(node["status"]["allocatable"]["cpu"]) * 1000 - chance.choice((500, 800, 1000))
        case.pods.append(pod(f"fills-{place}", cpu=f"{used}m", node=node["metadata"]["name"]))


# After the choice, and beside it


def _own_plugin(chance: random.Random, case: Case) -> None:
    case.plugin = f"Refusing:{chance.choice(('reserve', 'permit', 'reserve fails', 'permit fails', 'preBind fails'))}"
    _subject(case, cpu="50m", labels={"app": "refused"})


def _own_filter(chance: random.Random, case: Case) -> None:
    case.plugin = "Refusing:filter"
    _subject(case, cpu="50m", labels={"app": "refused"})


def _extender(chance: random.Random, case: Case) -> None:
    """A program that is asked over HTTP, and refuses every second node, or all of them."""
    case.plugin, case.is_asked_early = f"Extender:{chance.choice(('some', 'all'))}", False
    _subject(case, cpu="50m")
    if chance.random() < 0.3:
        case.pods[-1]["spec"]["nodeSelector"] = {"disk": "ssd"}


def _held(chance: random.Random, case: Case) -> None:
    """The sibling counts as a member, and nobody schedules it."""
    _gang_of(case, 2)
    case.pods.append(pod("sibling", cpu="50m", labels=_MEMBER, schedulerName="nobody"))


def _released(chance: random.Random, case: Case) -> None:
    """The sibling fits nowhere, so that the group gives its places back."""
    _gang_of(case, 2)
    case.pods.append(pod("very-large", cpu="900", labels=_MEMBER))


def _deleted(chance: random.Random, case: Case) -> None:
    (_too_large if chance.random() < 0.5 else _selector)(chance, case)
    case.later.append(Edit(kind="deletePod", name=SUBJECT))


def _ended(chance: random.Random, case: Case) -> None:
    """It ran, and somebody has deleted it."""
    _fits(chance, case)
    case.later.append(Edit(kind="deletePod", name=SUBJECT))


def _line(chance: random.Random, case: Case) -> None:
    """Pods as important have waited longer for room that is too little for all."""
    is_cordoned = chance.random() < 0.5
    del case.nodes[3:]
    case.pods.clear()
    for place, node in enumerate(case.nodes):
        left = 600 if is_cordoned else 200
        for part in range(count := chance.randint(1, 3)):
            used = (int(node["status"]["allocatable"]["cpu"]) * 1000 - left) // count
            case.pods.append(pod(f"fills-{place}-{part}", cpu=f"{used}m", node=node["metadata"]["name"]))
        if is_cordoned:
            node["spec"]["unschedulable"] = True
    for place in range(chance.randint(1, 4)):
        case.pods.append(pod(f"before-{place}", cpu=f"{chance.choice((300, 500, 600))}m"))
    _subject(case, cpu="500m")
    for place in range(chance.randint(0, 2)):
        case.pods.append(pod(f"after-{place}", cpu="500m"))


# Several at once


def _gate_and_taint(chance: random.Random, case: Case) -> None:
    _taint(chance, case)
    case.pods[-1]["spec"]["schedulingGates"] = [{"name": "review"}]


_MIXED: tuple[Callable[[random.Random, Case], None], ...]


def _mixed(chance: random.Random, case: Case) -> None:
    """Two causes for one pod."""
    for cause in chance.sample(_MIXED, 2):
        cause(chance, case)
    second, first = case.pods.pop(), next(each for each in case.pods if each["metadata"]["name"] == "subject")
    labels = {**first["metadata"]["labels"], **second["metadata"]["labels"]}
    container = {**first["spec"]["containers"][0], **second["spec"]["containers"][0]}
    affinity = {**first["spec"].get("affinity", {}), **second["spec"].get("affinity", {})}
    case.pods.remove(first)
    second["metadata"]["labels"] = labels
    second["spec"] = {**first["spec"], **second["spec"], "containers": [container], "affinity": affinity}
    case.pods.append(second)


def _pod_places(chance: random.Random, case: Case) -> None:
    for place, node in enumerate(case.nodes):
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts["pods"] = "1"
        case.pods[:] = [each for each in case.pods if each["spec"].get("nodeName") != node["metadata"]["name"]]
        case.pods.append(pod(f"sits-{place}", cpu="50m", node=node["metadata"]["name"]))
    _subject(case, cpu="50m")


def _kept_away(chance: random.Random, case: Case) -> None:
    """Pods that run keep the subject away, not the other way round."""
    term = {"labelSelector": {"matchLabels": {"app": "noisy"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for place, node in enumerate(case.nodes):
        case.pods.append(pod(f"quiet-{place}", cpu="50m", node=node["metadata"]["name"], affinity=apart))
    _subject(case, cpu="50m", labels={"app": "noisy"})


_MIXED = (_taint, _selector, _node_affinity, _anti_affinity, _kept_away, _affinity, _port, _cordon)


CAUSES: dict[str, Callable[[random.Random, Case], None]] = {
    "fits": _fits,
    "only node": _only_node,
    "room": _room,
    "too large": _too_large,
    "no gpu": _no_gpu,
    "taint": _taint,
    "cordon": _cordon,
    "selector": _selector,
    "node affinity": _node_affinity,
    "two causes": _two_causes,
    "anti-affinity": _anti_affinity,
    "affinity": _affinity,
    "spread": _spread,
    "port": _port,
    "no group": _no_group,
    "gate": _gate,
    "other scheduler": _other_scheduler,
    "many": _many,
    "gang": _gang,
    "quota": _quota,
    "numa": _numa,
    "init containers": _init,
    "overhead": _overhead,
    "own plugin": _own_plugin,
    "own filter": _own_filter,
    "extender": _extender,
    "held": _held,
    "released": _released,
    "deleted": _deleted,
    "ended": _ended,
    "line": _line,
    "gate and taint": _gate_and_taint,
    "mixed": _mixed,
    "pod places": _pod_places,
    "kept away": _kept_away,
    **VOLUME_CAUSES,
    **PREEMPTION_CAUSES,
    **DEVICE_CAUSES,
    **RULE_CAUSES,
    **COMMUNITY_CAUSES,
    **OWNED_CAUSES,
}
