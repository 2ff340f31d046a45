"""Cautions for plugin authors: what looks like a mistake but may be meant, so that registration does not refuse it.

State of a point that may be skipped: PreScore, Score and `normalize` do not run when one node is feasible, so that what
they alone put into the state is missing in Reserve and later. Points that a configuration leaves out: their methods are
never called. Nothing is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType
from typing import NamedTuple

from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, defines, extends
from bayplan.framework.reading.source import Definition, ReadingObstacle, class_functions, source_of

__all__ = ["Caution", "state_cautions", "unused_points"]

_SKIPPED = ("pre_score", "score_nodes", "score", "normalize")
"""Not called with one feasible node."""
_SURE = ("pre_filter", "filter_nodes", "filter", "reserve", "permit", "pre_bind")
_LATER = ("reserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind", "post_bind", "unreserve")


class Caution(NamedTuple):
    plugin: str
    text: str

    def __str__(self) -> str:
        return f"plugin `{self.plugin}`: {self.text}"


class _Use(NamedTuple):
    """What a method does with the state: keys as they are written, with the line of the first use."""

    puts: dict[str, int]
    reads: dict[str, int]


def state_cautions(cls: type[Plugin]) -> list[str]:
    """State that a later point reads without a check and that only a point that may be skipped writes."""
    try:
        functions = dict(reversed(list(class_functions(cls, Plugin))))
    except ReadingObstacle:
        return []
    uses = {name: _uses(functions, name) for name in (*_SKIPPED, *_SURE, *_LATER) if defines(cls, name)}
    sure = {key for name in _SURE if name in uses for key in uses[name].puts}
    found = []
    for writer in _SKIPPED:
        for key in uses[writer].puts if writer in uses else ():
            for reader in _LATER:
                line = uses[reader].reads.get(key) if reader in uses and key not in sure else None
                if line is not None:
                    found.append(
                        f"line {line}: `{reader}` reads `state[{key}]`, which `{writer}` alone writes; with one "
                        f"feasible node `{writer}` is not called, and `{reader}` fails with a KeyError. Write it in "
                        f"`pre_filter`, or read it with `state.get({key})`"
                    )
    return found


def _uses(functions: Mapping[str, FunctionType], name: str, place: int = 1, depth: int = 4) -> _Use:
    """What a method, and the methods it passes the state to, do with the state. `place`: of its parameter."""
    use = _Use({}, {})
    try:
        tree = source_of(functions[name])
    except (ReadingObstacle, KeyError):
        return use
    parameters = [*tree.args.posonlyargs, *tree.args.args]
    if place >= len(parameters) or not depth:
        return use
    state = parameters[place].arg
    checked = set(_checked(tree, state))
    for each in ast.walk(tree):
        match each:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr="put"), args=[key, *_]) if found == state:
                use.puts.setdefault(ast.unparse(key), each.lineno)
            case ast.Subscript(value=ast.Name(id=found), slice=key, ctx=ast.Load()) if found == state:
                if ast.unparse(key) not in checked:
                    use.reads.setdefault(ast.unparse(key), each.lineno)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=called), args=given):
                passed = [n for n, each in enumerate(given) if isinstance(each, ast.Name) and each.id == state]
                if owner == parameters[0].arg and passed:
                    inner = _uses(functions, called, passed[0] + 1, depth - 1)
                    use.puts.update(inner.puts)
                    use.reads.update({key: line for key, line in inner.reads.items() if key not in checked})
    return use


def _checked(tree: Definition, state: str) -> Iterator[str]:
    """Keys that a method looks for before it reads them, or for whose absence it has an answer."""
    for each in ast.walk(tree):
        match each:
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=found)]):
                if found == state:
                    yield ast.unparse(key)
            case ast.Try(handlers=handlers):
                if any(handler.type is None or "KeyError" in ast.unparse(handler.type) for handler in handlers):
                    for part in each.body:
                        for read in ast.walk(part):
                            if isinstance(read, ast.Subscript):
                                yield ast.unparse(read.slice)


def unused_points(
    cls: type[Plugin], points: Mapping[ExtensionPoint, Collection[str]], disabled: Collection[str] = ()
) -> list[ExtensionPoint]:
    """Points that a plugin extends and at which a profile runs others, if it runs the plugin at all.

    `disabled` are the names in the configuration of points at which it is switched off by name.
    """
    if not any(cls.name in names for names in points.values()):
        return []
    return [
        point
        for point in ExtensionPoint
        if extends(cls, point) and cls.name not in points[point] and point.config_name not in disabled
    ]
