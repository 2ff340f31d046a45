"""Amounts of resources in a custom resource: what the API server accepts, and what is checked once more here.

A definition that somebody else installed may be laxer than ours; an object that holds no quantity where one belongs is
then skipped by name, so that it harms nobody else.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bayplan.framework.objects import Quantity, to_amounts

__all__ = ["ResourceAmounts", "check_amounts"]

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_PATTERN = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
"""Kubernetes' own, in every definition that holds quantities."""

ResourceAmounts = dict[
    str,
    Annotated[
        Quantity, Meta(extra_json_schema={"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": _PATTERN})
    ],
]


def check_amounts(*amounts: ResourceAmounts | None) -> None:
    """Raises `QuantityError`, a ValueError, for what is no quantity."""
    for each in amounts:
        to_amounts(each)
