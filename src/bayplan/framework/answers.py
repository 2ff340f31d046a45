"""What plugins may answer, derived from the declarations on `Plugin`.

`False` from `filter`, or `10` from `permit`, is a mistake that must not pass for a success. Every caller of plugins
checks answers here or in `bayplan.framework.runtime.call`; the sentence names plugin, method and what was expected.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from bayplan.framework.plugin import Plugin, PostFilterResult, PreFilterResult
from bayplan.framework.points import contract_of

__all__ = ["WrongAnswer", "check_answer", "is_answer"]

_ALSO: dict[type[Any], tuple[type[Any], ...]] = {bool: (np.bool_,), int: (np.integer,), frozenset: (set,)}
"""Types that do as well as the declared one."""


class WrongAnswer(TypeError):
    """A plugin returned something of another type than its contract declares."""

    def __init__(self, plugin: str, method: str, answer: object) -> None:
        returned, expected = f"{answer!r:.60} ({type(answer).__name__})", contract_of(method).return_annotation
        field = _wrong_field(answer)
        if field:
            value, kind = getattr(answer, field), type(answer)
            returned = f"a {kind.__name__} whose `{field}` is {value!r:.60} ({type(value).__name__})"
            expected = getattr(kind.__annotations__[field], "__forward_arg__", kind.__annotations__[field])
        super().__init__(f"plugin `{plugin}`: `{method}` returned {returned}, expected `{expected}`")


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
    return isinstance(answer, allowed) and not _wrong_field(answer)


def _wrong_field(answer: object) -> str:
    """The first field of a result that is of another type than the declared one, "" if there is none."""
    types = _FIELDS.get(type(answer), {})
    return next((name for name, kinds in types.items() if not isinstance(getattr(answer, name), kinds)), "")


@cache
def _types(method: str) -> tuple[type[Any], ...]:
    return _runtime_types(get_type_hints(_declaration(method), localns={"Plugin": Plugin})["return"])


def _runtime_types(declared: Any) -> tuple[type[Any], ...]:
    kinds = [_runtime_type(kind) for kind in get_args(declared) or (declared,)]
    if get_origin(declared) in (dict, frozenset, list, tuple, np.ndarray, Iterable):
        kinds = [_runtime_type(declared)]
    return (*kinds, *(also for kind in kinds for also in _ALSO.get(kind, ())))


def _declaration(method: str) -> Any:
    return getattr(Plugin, method)


def _runtime_type(kind: Any) -> type[Any]:
    if kind is None:
        return NoneType
    found: type[Any] = get_origin(kind) or kind
    return found


_FIELDS: dict[type[Any], dict[str, tuple[type[Any], ...]]] = {
    kind: {name: _runtime_types(declared) for name, declared in get_type_hints(kind).items()}
    for kind in (PreFilterResult, PostFilterResult)
}
"""Answers whose fields are checked too."""
