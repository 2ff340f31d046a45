"""What pods ask for: requests and limits of containers added up, as scheduling, quotas and kubelets count them."""

from __future__ import annotations

from decimal import Decimal

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.quantity import BadQuantity, parse_quantity

Amounts = dict[str, Decimal]


def pod_requests(spec: Json) -> Amounts:
    """What a pod takes from its node: containers and sidecars together, or the largest init container."""
    return sum_amounts(pod_resources(spec, "requests"), {"pods": Decimal(1)})


def pod_resources(spec: Json, which: str) -> Amounts:
    """The `requests` or `limits` of a pod, with its overhead."""
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = container_resources(container, which)
        if container.get("restartPolicy") == "Always":
            running = sum_amounts(running, amounts)
            peak = _largest(peak, running)
        else:
            peak = _largest(peak, sum_amounts(running, amounts))
    for container in spec.get("containers") or ():
        running = sum_amounts(running, container_resources(container, which))
    total = _largest(peak, running)
    total |= amounts_of((spec.get("resources") or {}).get(which))
    overhead = amounts_of(spec.get("overhead"))
    if which == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return sum_amounts(total, overhead)


def container_resources(container: Json, which: str) -> Amounts:
    return amounts_of((container.get("resources") or {}).get(which))


def amounts_of(quantities: Json | None) -> Amounts:
    return {name: _amount(text) for name, text in (quantities or {}).items()}


def _amount(text: object) -> Decimal:
    try:
        return parse_quantity(str(text))
    except BadQuantity:
        return Decimal(0)


def sum_amounts(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, Decimal(0)) + right.get(name, Decimal(0)) for name in (*left, *right)}


def _largest(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, Decimal(0)), right.get(name, Decimal(0))) for name in (*left, *right)}


def allocatable(node: Json) -> Amounts:
    status = node.get("status") or {}
    return amounts_of(status.get("allocatable") or status.get("capacity"))


def lacking(requests: Amounts, used: Amounts, room: Amounts) -> str:
    """The first resource of which a node has too little, or nothing."""
    for name in sorted(requests):
        if requests[name] > 0 and used.get(name, Decimal(0)) + requests[name] > room.get(name, Decimal(0)):
            return name
    return ""
