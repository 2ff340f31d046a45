"""What must hold whatever broke, read from the API and from what clients asked for: a sentence for each violation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL
from tests.chaos.clients import BORROWER, BYSTANDER, GUARANTEED, HIGH_PODS, LENDER, LOW_PODS, Asked
from tests.e2e.ledger import Ledger, overcommitted
from tests.e2e.objects import HOSTNAME, ZONE, JsonObject

_LATE_SECONDS = 20.0
"""An event may be written so long after what it tells of."""


def key_of(item: JsonObject) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def node_of(pod: JsonObject) -> str:
    return str(pod["spec"].get("nodeName", ""))


def always(nodes: list[JsonObject], pods: list[JsonObject], claims: list[JsonObject]) -> list[str]:
    """What must hold at every moment."""
    return [*overcommitted(nodes, pods), *_given_twice(claims)]


def _given_twice(claims: Iterable[JsonObject]) -> Iterator[str]:
    given = Counter(
        (result["pool"], result["device"])
        for claim in claims
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    )
    return (f"device {pool}/{device} is given to {n} claims" for (pool, device), n in given.items() if n > 1)


def expected_bound(pods: list[JsonObject], asked: Asked) -> list[str]:
    """Pods that must have a node before the run can end, and have none."""
    waiting = [pod for pod in pods if not node_of(pod)]
    return [key_of(pod) for pod in waiting if asked.pods.get(key_of(pod)) != BORROWER]


def at_the_end(
    *,
    pods: list[JsonObject],
    nodes: list[JsonObject],
    claims: list[JsonObject],
    volumes: list[JsonObject],
    volume_claims: list[JsonObject],
    events: list[JsonObject],
    asked: Asked,
    ledger: Ledger,
) -> list[str]:
    zones = {node["metadata"]["name"]: node["metadata"]["labels"].get(ZONE, "") for node in nodes}
    return [
        *always(nodes, pods, claims),
        *(f"{name} was on {places} one after the other" for name, places in ledger.moved().items()),
        *(f"{key} has no node" for key in expected_bound(pods, asked)),
        *_lost(pods, asked),
        *_counts(pods, asked),
        *_skewed(pods, zones),
        *_halves(pods),
        *_elsewhere(pods, claims),
        *_volumes(pods, volumes, volume_claims),
        *_conditions(pods),
        *_events(pods, events),
    ]


def _lost(pods: list[JsonObject], asked: Asked) -> Iterator[str]:
    """Only pods that had to make room may be gone without their client's wish."""
    there = {key_of(pod) for pod in pods}
    for key, kind in asked.pods.items():
        if key in there and key in asked.deleted:
            yield f"{key} was deleted and is still there"
        if key not in there and key not in asked.deleted and kind not in ("low", BORROWER):
            yield f"{key} ({kind}) is gone and nobody deleted it"


def _counts(pods: list[JsonObject], asked: Asked) -> Iterator[str]:
    """Whoever made room was needed, and nobody lost what is guaranteed."""
    bound = Counter(asked.pods.get(key_of(pod), "") for pod in pods if node_of(pod))
    expected = {"high": HIGH_PODS, "low": LOW_PODS - HIGH_PODS, BYSTANDER: GUARANTEED}
    expected |= {LENDER: GUARANTEED, BORROWER: GUARANTEED}
    for kind, count in expected.items():
        if bound[kind] != count:
            yield f"{bound[kind]} pods of {kind} are bound, not {count}"


def _skewed(pods: list[JsonObject], zones: dict[str, str]) -> Iterator[str]:
    apps: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if node_of(pod) and "topologySpreadConstraints" in pod["spec"]:
            apps[pod["metadata"]["labels"]["app"]][zones[node_of(pod)]] += 1
    for app, counts in apps.items():
        per_zone = [counts[zone] for zone in set(zones.values()) if zone]
        if max(per_zone) - min(per_zone) > 1:
            yield f"{app} is spread unevenly: {dict(counts)}"


def _halves(pods: list[JsonObject]) -> Iterator[str]:
    groups: dict[str, list[bool]] = defaultdict(list)
    for pod in pods:
        name = (pod["metadata"].get("labels") or {}).get(POD_GROUP_LABEL)
        if name:
            groups[name].append(bool(node_of(pod)))
    return (
        f"{sum(bound)} of {len(bound)} pods of {name} are bound" for name, bound in groups.items() if not all(bound)
    )


def _elsewhere(pods: list[JsonObject], claims: list[JsonObject]) -> Iterator[str]:
    """A pod with a device is where its device is, and the claim is reserved for it."""
    held = {
        user["uid"]: claim["status"]["allocation"]["devices"]["results"][0]["pool"]
        for claim in claims
        for user in claim.get("status", {}).get("reservedFor", [])
    }
    for pod in pods:
        if pod["spec"].get("resourceClaims") and node_of(pod) and held.get(pod["metadata"]["uid"]) != node_of(pod):
            yield f"{key_of(pod)} is on {node_of(pod)}, its device on {held.get(pod['metadata']['uid'])}"


def _volumes(pods: list[JsonObject], volumes: list[JsonObject], claims: list[JsonObject]) -> Iterator[str]:
    places = {
        volume["metadata"]["name"]: volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
        for volume in volumes
    }
    used = {claim["metadata"]["name"]: claim["spec"].get("volumeName", "") for claim in claims}
    yield from (f"{name} has two claims" for name, n in Counter(v for v in used.values() if v).items() if n > 1)
    for pod in pods:
        for entry in pod["spec"].get("volumes") or ():
            volume = used.get(entry.get("persistentVolumeClaim", {}).get("claimName", ""), "")
            if not volume or not node_of(pod):
                continue
            expression = places[volume]["matchExpressions"][0]
            if expression["key"] != HOSTNAME or node_of(pod) not in expression["values"]:
                yield f"{key_of(pod)} is on {node_of(pod)}, its volume on {expression['values']}"


def _conditions(pods: list[JsonObject]) -> Iterator[str]:
    """DisruptionTarget is left out: a scheduler that is killed between that condition and the eviction leaves it, and
    the controller manager, which there is none of here, takes it away after two minutes."""
    for pod in pods:
        found = {c["type"]: c for c in pod["status"].get("conditions") or ()}
        scheduled = found.get("PodScheduled", {}).get("status", "")
        if scheduled != ("True" if node_of(pod) else "False"):
            yield f"{key_of(pod)} on `{node_of(pod)}` says PodScheduled={scheduled}"


def _events(pods: list[JsonObject], events: list[JsonObject]) -> Iterator[str]:
    by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
    for event in events:
        pod = by_uid.get(event["regarding"].get("uid", ""))
        if pod is None or not node_of(pod):
            continue
        if event["reason"] == "Scheduled" and not event["note"].endswith(f" to {node_of(pod)}"):
            yield f"{key_of(pod)} is on {node_of(pod)}, and an event says: {event['note']}"
        if event["reason"] == "FailedScheduling" and _time(event["metadata"]["creationTimestamp"]) > _bound_at(pod):
            yield f"{key_of(pod)} is on {node_of(pod)}, and long after an event says: {event['note']}"


def _bound_at(pod: JsonObject) -> float:
    condition = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    return _time(condition["lastTransitionTime"]) + _LATE_SECONDS


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
