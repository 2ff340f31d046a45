"""The macros: calls that are replaced by loops and bindings before anything is checked.

A macro is looked up by its name, its number of arguments and whether it has a target. It answers with the expression to
put in its place, or with nothing where the call only looks like it (`x.bind(…)` for another `x` than `cel`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bayplan.cel.syntax import Call, Expression, Fold, Ident, ListLiteral, Literal, MapLiteral, Select, copy

__all__ = [
    "BINDING_MACROS",
    "LIST_MACROS",
    "OPTIONAL_MACROS",
    "STANDARD_MACROS",
    "TWO_VARIABLE_MACROS",
    "Macro",
    "MacroProblem",
    "Macros",
]

Macro = Callable[[int, Expression | None, Sequence[Expression]], Expression | None]
"""Takes the place of the call, its target and its arguments."""
Macros = Mapping[tuple[str, int, bool], Macro]
"""Macros by name, number of arguments and whether there is a target."""

_RESULT = "@result"
_UNUSED = "#unused"
_SORTED = "@__sortBy_input__"


class MacroProblem(Exception):
    """A macro with arguments that it cannot use."""

    def __init__(self, part: Expression, message: str) -> None:
        super().__init__(message)
        self.offset = part.offset


def _name(part: Expression, message: str) -> str:
    if not isinstance(part, Ident):
        raise MacroProblem(part, message)
    if part.name in (_RESULT, "__result__"):
        raise MacroProblem(part, "iteration variable overwrites accumulator variable")
    return part.name


def _names(arguments: Sequence[Expression], count: int) -> tuple[str, str | None]:
    message = "argument must be a simple name"
    first = _name(arguments[0], message)
    if count == 1:
        return first, None
    second = _name(arguments[1], message)
    if first == second:
        raise MacroProblem(arguments[1], f"duplicate variable name: {first}")
    return first, second


def _fold(
    offset: int,
    target: Expression | None,
    names: tuple[str, str | None],
    initial: Expression,
    condition: Expression,
    step: Expression,
    result: Expression,
) -> Fold:
    assert target is not None, "macros over ranges have targets"
    return Fold(offset, target, *names, _RESULT, initial, condition, step, result)


def _all(count: int) -> Macro:
    def expand(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
        names = _names(arguments, count)
        so_far = Ident(offset, _RESULT)
        return _fold(
            offset,
            target,
            names,
            Literal(offset, True),
            Call(offset, "@not_strictly_false", [Ident(offset, _RESULT)]),
            Call(offset, "_&&_", [so_far, arguments[count]]),
            Ident(offset, _RESULT),
        )

    return expand


def _exists(count: int) -> Macro:
    def expand(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
        names = _names(arguments, count)
        negated = Call(offset, "!_", [Ident(offset, _RESULT)])
        return _fold(
            offset,
            target,
            names,
            Literal(offset, False),
            Call(offset, "@not_strictly_false", [negated]),
            Call(offset, "_||_", [Ident(offset, _RESULT), arguments[count]]),
            Ident(offset, _RESULT),
        )

    return expand


def _exists_one(count: int) -> Macro:
    def expand(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
        names = _names(arguments, count)
        one_more = Call(offset, "_+_", [Ident(offset, _RESULT), Literal(offset, 1)])
        return _fold(
            offset,
            target,
            names,
            Literal(offset, 0),
            Literal(offset, True),
            Call(offset, "_?_:_", [arguments[count], one_more, Ident(offset, _RESULT)]),
            Call(offset, "_==_", [Ident(offset, _RESULT), Literal(offset, 1)]),
        )

    return expand


def _collect(
    offset: int,
    target: Expression | None,
    names: tuple[str, str | None],
    kept: Expression | None,
    initial: Expression,
    step: Expression,
) -> Fold:
    """A loop that adds to a list or map, for all entries or those that are kept."""
    if kept is not None:
        step = Call(offset, "_?_:_", [kept, step, Ident(offset, _RESULT)])
    return _fold(offset, target, names, initial, Literal(offset, True), step, Ident(offset, _RESULT))


def _appended(offset: int, element: Expression) -> Expression:
    return Call(offset, "_+_", [Ident(offset, _RESULT), ListLiteral(offset, [element])])


def _map(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    name = _name(arguments[0], "argument is not an identifier")
    kept = arguments[1] if len(arguments) == 3 else None
    step = _appended(offset, arguments[-1])
    return _collect(offset, target, (name, None), kept, ListLiteral(offset, []), step)


def _filter(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    name = _name(arguments[0], "argument is not an identifier")
    step = _appended(offset, arguments[0])
    return _collect(offset, target, (name, None), arguments[1], ListLiteral(offset, []), step)


def _has(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    selected = arguments[0]
    if not isinstance(selected, Select):
        raise MacroProblem(selected, "invalid argument to has() macro")
    return Select(offset, selected.operand, selected.name, is_test=True)


def _transform_list(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    names = _names(arguments, 2)
    kept = arguments[2] if len(arguments) == 4 else None
    return _collect(offset, target, names, kept, ListLiteral(offset, []), _appended(offset, arguments[-1]))


def _transform_map(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    names = _names(arguments, 2)
    kept = arguments[2] if len(arguments) == 4 else None
    step = Call(offset, "cel.@mapInsert", [Ident(offset, _RESULT), Ident(offset, names[0]), arguments[-1]])
    return _collect(offset, target, names, kept, MapLiteral(offset, []), step)


def _transform_map_entry(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    names = _names(arguments, 2)
    kept = arguments[2] if len(arguments) == 4 else None
    step = Call(offset, "cel.@mapInsert", [Ident(offset, _RESULT), arguments[-1]])
    return _collect(offset, target, names, kept, MapLiteral(offset, []), step)


def _binding(offset: int, name: str, value: Expression, result: Expression) -> Fold:
    nothing = ListLiteral(offset, [])
    return Fold(offset, nothing, _UNUSED, None, name, value, Literal(offset, False), Ident(offset, name), result)


def _bound_name(part: Expression, message: str) -> str:
    if not isinstance(part, Ident):
        raise MacroProblem(part, message)
    return part.name


def _bind(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    name = _bound_name(arguments[0], "cel.bind() variable names must be simple identifiers")
    return _binding(offset, name, arguments[1], arguments[2])


def _optional_map(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    name = _bound_name(arguments[0], "optMap() variable name must be a simple identifier")
    return _if_present(offset, target, name, arguments[1], is_wrapped=True)


def _optional_flat_map(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    name = _bound_name(arguments[0], "optFlatMap() variable name must be a simple identifier")
    return _if_present(offset, target, name, arguments[1], is_wrapped=False)


def _if_present(
    offset: int, target: Expression | None, name: str, result: Expression, *, is_wrapped: bool
) -> Expression:
    assert target is not None, "the macros of optional values have targets"
    present = Call(offset, "hasValue", [], target)
    bound: Expression = _binding(offset, name, Call(offset, "value", [], copy(target)), result)
    if is_wrapped:
        bound = Call(offset, "optional.of", [bound])
    return Call(offset, "_?_:_", [present, bound, Call(offset, "optional.none", [])])


def _sort_by(offset: int, target: Expression | None, arguments: Sequence[Expression]) -> Expression:
    if not isinstance(target, ListLiteral | Select | Ident | Fold | Call):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroProblem(target or arguments[0], message)
    keys = _map(offset, Ident(offset, _SORTED), arguments)
    by_keys = Call(offset, "@sortByAssociatedKeys", [keys], Ident(offset, _SORTED))
    return _binding(offset, _SORTED, target, by_keys)


STANDARD_MACROS: Macros = {
    ("has", 1, False): _has,
    ("all", 2, True): _all(1),
    ("exists", 2, True): _exists(1),
    ("exists_one", 2, True): _exists_one(1),
    ("existsOne", 2, True): _exists_one(1),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
}
TWO_VARIABLE_MACROS: Macros = {
    ("all", 3, True): _all(2),
    ("exists", 3, True): _exists(2),
    ("exists_one", 3, True): _exists_one(2),
    ("existsOne", 3, True): _exists_one(2),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
}
BINDING_MACROS: Macros = {("bind", 3, True): _bind}
OPTIONAL_MACROS: Macros = {("optMap", 2, True): _optional_map, ("optFlatMap", 2, True): _optional_flat_map}
LIST_MACROS: Macros = {("sortBy", 2, True): _sort_by}
