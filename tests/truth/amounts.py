"""What pods ask and nodes offer, read from the documents of a case."""

from __future__ import annotations

from bayplan.api.quantity import milli_value, value
from tests.truth.documents import JsonObject
from tests.truth.world import World

__all__ = ["amount_of", "asked_in_words", "largest_in_words", "requested"]

_UNITS = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


def amount_of(text: str, resource: str) -> int:
    return milli_value(text) if resource == "cpu" else value(text)


def requested(pod: JsonObject, resource: str) -> int:
    if resource == "pods":
        return 1
    spec = pod["spec"]
    before = peak = 0
    for each in spec.get("initContainers", ()):
        if each.get("restartPolicy") == "Always":
            before += _of_container(each, resource)
            peak = max(peak, before)
        else:
            peak = max(peak, before + _of_container(each, resource))
    together = before + sum(_of_container(each, resource) for each in spec["containers"])
    return max(peak, together) + amount_of(str(spec.get("overhead", {}).get(resource, "0")), resource)


def _of_container(container: JsonObject, resource: str) -> int:
    resources = container.get("resources", {})
    found = resources.get("requests", {}).get(resource) or resources.get("limits", {}).get(resource) or "0"
    return amount_of(str(found), resource)


def _in_words(amount: int, resource: str) -> str:
    if resource == "cpu":
        return f"{amount}m CPU" if 0 < amount < 1000 else f"{str(amount / 1000).removesuffix('.0')} CPU"
    if resource in ("memory", "ephemeral-storage"):
        size, unit = next(((size, unit) for size, unit in _UNITS if amount and amount % size == 0), (1, ""))
        return f"{amount // size}{unit} {resource}"
    return f"{amount} {resource}"


def largest_in_words(world: World, resource: str) -> str:
    most = max(amount_of(n["status"]["allocatable"].get(resource, "0"), resource) for n in world.case.nodes)
    return _in_words(most, resource) if most else ""


def asked_in_words(world: World, resource: str) -> str:
    return _in_words(requested(world.subject, resource), resource)
