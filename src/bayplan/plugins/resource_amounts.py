"""Amounts of resources in custom resources: their schema, and a second check.

A definition that was installed by other means may be less strict than ours. An object with an invalid quantity is then
skipped and named in the log, without effect on others.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bayplan.framework.objects import Quantity, to_amounts

__all__ = ["ResourceAmounts", "check_amounts"]

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_PATTERN = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
"""The pattern of quantities in Kubernetes' own definitions."""

ResourceAmounts = dict[
    str,
    Annotated[
        Quantity, Meta(extra_json_schema={"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": _PATTERN})
    ],
]


def check_amounts(*amounts: ResourceAmounts | None) -> None:
    """Raise `QuantityError`, a ValueError, for an invalid quantity."""
    for each in amounts:
        to_amounts(each)
