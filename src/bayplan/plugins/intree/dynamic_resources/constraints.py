"""Constraints of a claim: attributes in which its devices must agree, or differ."""

from __future__ import annotations

from typing import Protocol

from bayplan.framework.devices import Attribute, DeviceConstraint, DeviceLook

__all__ = ["AttributeConstraint", "make_constraint"]


class AttributeConstraint(Protocol):
    """Follows a search: `add` answers whether the device may be used and counts it if so; `remove` takes it back."""

    def add(self, request: str, sub_request: str, look: DeviceLook) -> bool: ...

    def remove(self, request: str, sub_request: str) -> None: ...


def make_constraint(declared: DeviceConstraint) -> AttributeConstraint | None:
    """None for a kind of constraint that is not known."""
    if declared.match_attribute is not None:
        return _SameAttribute(declared.requests or (), declared.match_attribute)
    if declared.distinct_attribute is not None:
        return _DistinctAttribute(declared.requests or (), declared.distinct_attribute)
    return None


class _OnAttribute:
    def __init__(self, requests: list[str] | tuple[()], attribute: str) -> None:
        self._requests, self._attribute = frozenset(requests), attribute
        self._count = 0

    def _concerns(self, request: str, sub_request: str) -> bool:
        named = self._requests
        return not named or request in named or bool(sub_request and f"{request}/{sub_request}" in named)


class _SameAttribute(_OnAttribute):
    """All devices have the attribute, with one type and value."""

    _value: Attribute = ("", None)

    def add(self, request: str, sub_request: str, look: DeviceLook) -> bool:
        if not self._concerns(request, sub_request):
            return True
        found = look.attribute(self._attribute)
        if found is None:
            return False
        if not self._count:
            self._value = found
        elif found != self._value or not found[0]:
            return False
        self._count += 1
        return True

    def remove(self, request: str, sub_request: str) -> None:
        if self._concerns(request, sub_request):
            self._count -= 1


class _DistinctAttribute(_OnAttribute):
    """All devices have the attribute, each with another value.

    As in kube-scheduler, only the latest device of each request is compared with: of a request for several devices the
    earlier ones are not remembered.
    """

    def __init__(self, requests: list[str] | tuple[()], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: dict[str, Attribute] = {}

    def add(self, request: str, sub_request: str, look: DeviceLook) -> bool:
        if not self._concerns(request, sub_request):
            return True
        found = look.attribute(self._attribute)
        if found is None:
            return False
        if self._count and self._values and (not found[0] or found in self._values.values()):
            return False
        self._values[request] = found
        self._count += 1
        return True

    def remove(self, request: str, sub_request: str) -> None:
        if self._concerns(request, sub_request):
            self._values.pop(request, None)
            self._count -= 1
