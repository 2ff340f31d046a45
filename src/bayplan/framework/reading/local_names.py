"""The local names of a function, and which of them hold values that nothing else refers to."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType

__all__ = ["LocalNames"]

_NUMBERS = ("len", "int", "float", "abs", "round")
_MAKERS = ("list", "dict", "set", "sorted")


class LocalNames:
    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self._has_builtins = function.__globals__.keys().isdisjoint((*_NUMBERS, *_MAKERS))
        self.assigned = _local_names(tree)
        """Names that the function itself assigns, without the variables of comprehensions."""
        self.immutable = _bound_to(tree, self._is_immutable)
        """Names to which only numbers and texts are assigned, so that `+=` changes nothing in place."""
        self.new = _bound_to(tree, _is_new) if self._has_builtins else set()
        """Names of collections that were made in this function: it may fill them."""

    def is_number(self, value: ast.expr) -> bool:
        """A value that is a number whatever its parts are."""
        match value:
            case ast.Constant(value=constant):
                return isinstance(constant, int | float)
            case ast.Call(func=ast.Name(id=name)):
                return name in _NUMBERS and name not in self.assigned and self._has_builtins
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
                return self.is_number(one) and self.is_number(other)
            case ast.UnaryOp(operand=one):
                return isinstance(value.op, ast.Not) or self.is_number(one)
        return isinstance(value, ast.Compare)

    def _is_immutable(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Constant | ast.JoinedStr) or self.is_number(value)


def _bound_to(tree: ast.FunctionDef, is_wanted: Callable[[ast.expr], bool]) -> set[str]:
    """Local names that are given only values that `is_wanted` accepts; `+=` counts as no new value."""
    wanted = {
        id(target)
        for each in ast.walk(tree)
        for target in (
            each.targets
            if isinstance(each, ast.Assign) and is_wanted(each.value)
            else [each.target]
            if isinstance(each, ast.AnnAssign) and each.value is not None and is_wanted(each.value)
            else [each.target]
            if isinstance(each, ast.AugAssign)
            else []
        )
    }
    stored = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    others = {each.id for each in stored if id(each) not in wanted}
    parameters = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    return {each.id for each in stored} - others - parameters


def _is_new(value: ast.expr) -> bool:
    """A collection that was made just now, so that nothing else refers to it."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in ("list", "dict", "set", "sorted")
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _local_names(tree: ast.FunctionDef) -> set[str]:
    loops = {
        id(part) for each in ast.walk(tree) if isinstance(each, ast.comprehension) for part in ast.walk(each.target)
    }
    return {
        each.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and id(each) not in loops
    }
