"""What plugins may answer, derived from the declarations on `Plugin`.

`False` from `filter`, or `10` from `permit`, is a mistake that must not pass for a success. Every caller of plugins
checks answers here or in `bayplan.framework.runtime.call`; the sentence names plugin, method and what was expected.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from bayplan.framework.plugin import Plugin
from bayplan.framework.points import contract_of

__all__ = ["WrongAnswer", "check_answer", "is_answer"]

_ALSO = {bool: (np.bool_,), int: (np.integer,)}
"""Types of NumPy that stand for plain ones."""


class WrongAnswer(TypeError):
    """A plugin returned something of another type than its contract declares."""

    def __init__(self, plugin: str, method: str, answer: object) -> None:
        shown = f"{answer!r:.60}"
        expected = contract_of(method).return_annotation
        super().__init__(
            f"plugin `{plugin}`: `{method}` returned {shown} ({type(answer).__name__}), expected `{expected}`"
        )


def check_answer(plugin: str, method: str, answer: object) -> None:
    """Raise `WrongAnswer` for an answer that the contract does not know."""
    if not is_answer(method, answer):
        raise WrongAnswer(plugin, method, answer)


def is_answer(method: str, answer: object) -> bool:
    """Whether the contract of a method allows an answer, as far as types tell."""
    allowed = _types(method)
    # True and False are ints in Python; as a score they are a mistake.
    if isinstance(answer, bool) and bool not in allowed:
        return Hashable in allowed
    return isinstance(answer, allowed)


@cache
def _types(method: str) -> tuple[type[Any], ...]:
    declared = get_type_hints(_declaration(method), localns={"Plugin": Plugin})["return"]
    kinds = [_runtime_type(kind) for kind in get_args(declared) or (declared,)]
    if get_origin(declared) in (list, tuple, np.ndarray):
        kinds = [_runtime_type(declared)]
    return (*kinds, *(also for kind in kinds for also in _ALSO.get(kind, ())))


def _declaration(method: str) -> Any:
    return getattr(Plugin, method)


def _runtime_type(kind: Any) -> type[Any]:
    if kind is None:
        return NoneType
    found: type[Any] = get_origin(kind) or kind
    return found
