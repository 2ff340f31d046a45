"""The source of functions as syntax trees, only where it is certain that it is the source of the code that runs."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import NamedTuple

from bayplan.framework.metrics import MetricDeclaration
from bayplan.framework.normalize import Normalizer

__all__ = [
    "Definition",
    "ReadingObstacle",
    "binds_once",
    "class_functions",
    "is_stored_in",
    "own_bases",
    "source_of",
    "uses_builtin",
]


class ReadingObstacle(Exception):
    """Why source cannot be read, or not be understood; `advice` is what its author could write instead."""

    def __init__(self, message: str, line: int = 0, *, advice: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.advice = advice
        self.file = ""


Definition = ast.FunctionDef | ast.AsyncFunctionDef


def source_of(function: FunctionType) -> Definition:
    """The definition of a function, with line numbers of its file."""
    code, name = function.__code__, function.__name__
    around = [each for each in code.co_freevars if each != "__class__"]  # which `super()` needs
    if around:
        raise ReadingObstacle(f"`{name}` reads a variable of the function around it, `{around[0]}`")
    if hasattr(function, "__wrapped__"):
        raise ReadingObstacle(f"`{name}` is decorated")
    if getattr(function, "__builtins__", None) is not vars(builtins):
        raise ReadingObstacle(f"the file of `{name}` has builtins of its own")
    module = _module(_text_of(function))
    twins = [
        each for each in module.compiled if each.co_firstlineno == code.co_firstlineno and each.co_name == code.co_name
    ]
    if len(twins) != 1 or not _is_same(twins[0], code):
        raise ReadingObstacle(f"the source of `{name}` is not what runs: it was changed, rewritten or decorated")
    written = [each for each in module.definitions if _first_line(each) == code.co_firstlineno]
    if len(written) != 1 or written[0].name != code.co_name:
        raise ReadingObstacle(f"`{name}` is not written as a method")
    return written[0]


def _text_of(function: FunctionType) -> str:
    """The file that a function is written in, as it is now."""
    try:
        return "".join(inspect.findsource(function.__code__)[0])
    except (OSError, TypeError, IndexError):
        raise ReadingObstacle(f"the source of `{function.__name__}` cannot be read") from None


class _Module(NamedTuple):
    """A file as a syntax tree, and every code object that it compiles to. It is not executed."""

    tree: ast.Module
    nodes: list[ast.AST]
    """All of the tree."""
    definitions: list[Definition]
    compiled: list[CodeType]


@lru_cache(maxsize=16)
def _module(text: str) -> _Module:
    try:
        tree = ast.parse(text)
        compiled = list(_code_in(compile(text, "<source>", "exec", dont_inherit=True)))
        nodes = list(ast.walk(tree))
        return _Module(tree, nodes, [each for each in nodes if isinstance(each, Definition)], compiled)
    except (SyntaxError, ValueError):
        raise ReadingObstacle("the file was changed, and is not Python any longer") from None


def _code_in(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _code_in(each)


def _first_line(definition: Definition) -> int:
    return min([definition.lineno, *(each.lineno for each in definition.decorator_list)])


_FORM = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_GENERATED = ("__annotate__", "__annotate_func__")
"""Functions that Python itself adds to a class, for its annotations."""


def _is_same(first: CodeType, second: CodeType) -> bool:
    """Whether two code objects do the same, wherever they are written."""
    if len(first.co_consts) != len(second.co_consts) or (first.co_flags ^ second.co_flags) & _FORM:
        return False
    plain = ("co_code", "co_names", "co_varnames", "co_argcount", "co_exceptiontable", "co_cellvars")
    return all(getattr(first, each) == getattr(second, each) for each in plain) and all(
        _is_same(one, other)
        if isinstance(one, CodeType) and isinstance(other, CodeType)
        else type(one) is type(other) and repr(one) == repr(other)
        for one, other in zip(first.co_consts, second.co_consts, strict=True)
    )


def uses_builtin(function: FunctionType, tree: Definition, name: str) -> bool:
    """Whether a name stands for the builtin in a function, and for nothing of its own or of its file."""
    stored = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    parameters = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    return hasattr(builtins, name) and name not in function.__globals__ and name not in stored | parameters


def own_bases(cls: type, base: type) -> list[type]:
    """The class and those of its bases that are not `base` or bases of that, in the order of resolution."""
    return [each for each in cls.__mro__ if each not in base.__mro__]


def class_functions(cls: type, base: type) -> Iterator[tuple[str, FunctionType]]:
    """Every function that the class and its bases define, without those of `base`."""
    for owner in own_bases(cls, base):
        for name, value in vars(owner).items():
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if name in _GENERATED:
                continue
            if isinstance(function, property):
                raise ReadingObstacle(f"the property `{name}` is not read", advice="make it a method")
            if isinstance(function, FunctionType):
                yield name, function
            elif not isinstance(function, type | Normalizer | MetricDeclaration) and (
                callable(function) or hasattr(function, "__set_name__")
            ):
                raise ReadingObstacle(f"`{name}` is no plain method: it cannot be read")


def binds_once(function: FunctionType, name: str) -> bool:
    """Whether the module of a function gives a name its value in one statement of its top level, and nowhere else."""
    module = sys.modules.get(function.__module__)
    if module is None or vars(module) is not function.__globals__:
        return False
    read = _module(_text_of(function))
    if any(isinstance(each, ast.Global) and name in each.names for each in read.nodes):
        return False
    return sum(_binds(each, name) for each in read.tree.body) == 1 and not is_stored_in(function, name)


def is_stored_in(function: FunctionType, name: str) -> bool:
    """Whether the file of a function may store to an attribute of this name, of any object."""
    return any(_may_store(each, name) for each in _module(_text_of(function)).nodes)


def _may_store(each: ast.AST, name: str) -> bool:
    match each:
        case ast.Attribute(attr=attr, ctx=ast.Store() | ast.Del()):
            return attr == name
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[_, key, *_]) if called in _SETTERS:
            return _may_be(key, name)
        case ast.Subscript(value=place, slice=key, ctx=ast.Store() | ast.Del()):
            return _is_namespace(place) and _may_be(key, name)
        case ast.Call(func=ast.Attribute(value=place, attr="update" | "setdefault" | "pop" | "clear")):
            return _is_namespace(place)
        case ast.Call(func=ast.Name(id="exec" | "eval")):
            return True
    return False


_SETTERS = ("setattr", "delattr", "__setattr__", "__delattr__")


def _may_be(key: ast.expr, name: str) -> bool:
    return not isinstance(key, ast.Constant) or key.value == name


def _is_namespace(place: ast.expr) -> bool:
    """`vars(x)`, `globals()` or `x.__dict__`."""
    match place:
        case ast.Call(func=ast.Name(id="vars" | "globals" | "locals")) | ast.Attribute(attr="__dict__"):
            return True
    return False


def _binds(statement: ast.stmt, name: str) -> int:
    """How often a statement of the top level binds a name, without what is inside functions and classes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return int(statement.name == name)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return sum(each.name == "*" or (each.asname or each.name).split(".")[0] == name for each in statement.names)
    return sum(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(statement)
    )
