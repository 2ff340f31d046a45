"""The statements and expressions of one function, each with what it stands for and what reading it depends on.

An expression that is not listed here is an obstacle: nothing is understood by default.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from types import FunctionType, ModuleType
from typing import Protocol

from bayplan.api import meta, node, pod
from bayplan.framework.promises import Depends
from bayplan.framework.reading.attributes import PURE_METHODS, FixedAttributes, is_constant
from bayplan.framework.reading.local_names import LocalNames
from bayplan.framework.reading.source import ReadingObstacle, binds_once
from bayplan.framework.status import Error, Pending, Skip, Unresolvable, Unschedulable

__all__ = ["Body", "BodyReader", "Kind", "shown"]


class Kind(Enum):
    """What an expression stands for."""

    SELF = auto()
    ARGS = auto()
    STATE = auto()
    POD = auto()
    SPEC = auto()
    NODE = auto()
    PODS = auto()
    """`node.pods`."""
    OTHERS = auto()
    """Pods on the node, one after the other."""
    OTHER = auto()
    """A pod on the node."""
    DATA = auto()
    """Plain data: numbers, texts, collections and parts of Kubernetes objects."""
    PART = auto()
    """Part of the pod's spec. Pods of a shape may have its mappings in different orders, so only what does not
    depend on an order may be read."""
    PARTS = auto()
    """A list of such parts."""


_POD = {**dict.fromkeys(("labels", "namespace", "priority", "scheduler_name"), Kind.DATA), "spec": Kind.SPEC}
_SPEC = {
    **dict.fromkeys(("priority", "scheduler_name", "preemption_policy", "host_network", "host_users"), Kind.DATA),
    **dict.fromkeys(("containers", "init_containers", "tolerations", "topology_spread_constraints"), Kind.PARTS),
    **dict.fromkeys(("node_selector", "overhead", "resources", "affinity"), Kind.PART),
}
_NODE = ("name", "labels", "annotations", "taints", "unschedulable", "allowed_pods", "node")
_OTHER = ("labels", "namespace", "priority", "name", "uid")
_NODE_CALLS = {"allocatable_of": Depends.NODE, "requested_of": Depends.USE, "free": Depends.USE}
_NODE_USE = ("nonzero_cpu", "nonzero_memory")
_CHANGING = {*dir(set), *dir(list), *dir(dict)} - {*dir(frozenset), *dir(tuple)} - {"get", "items", "keys", "values"}
_FIELDS = {
    field
    for module in (meta, node, pod)
    for struct in vars(module).values()
    for field in getattr(struct, "__struct_fields__", ())
} - _CHANGING
_TEXT = ("startswith", "endswith", "lower", "upper", "strip", "lstrip", "rstrip", "isdigit", "isdecimal", "casefold")
_PURE = {
    name: getattr(builtins, name)
    for name in (
        *("len", "int", "float", "bool", "str", "min", "max", "sum", "any", "all", "sorted", "abs", "round"),
        *("tuple", "list", "dict", "set", "frozenset", "range", "enumerate", "zip", "reversed", "divmod"),
    )
}
_OF_PARTS = ("len", "int", "float", "bool")
_COPIES = ("list", "tuple", "reversed")
_STATUSES = (Unschedulable, Unresolvable, Pending, Error, Skip)
_ERRORS = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
_FILLS = {"append", "extend", "add", "update", "insert", "setdefault", "sort", "reverse"}
_MATH = {
    name: getattr(math, name)
    for name in (
        "ceil",
        "exp",
        "floor",
        "gcd",
        "hypot",
        "isclose",
        "isqrt",
        "log",
        "log10",
        "log2",
        "pow",
        "sqrt",
        "trunc",
    )
}
_SHARED = "read labels or the spec, which pods of one template share"
_OUTSIDE = "read it in `setup`, or keep it in a custom resource that the plugin `watches`"


class BodyReader(Protocol):
    """The reading that a body is part of."""

    @property
    def attributes(self) -> FixedAttributes: ...

    def reads(self, depends: Depends, each: ast.expr) -> None:
        """Note what an expression depends on."""

    def call(self, function: FunctionType, kinds: list[Kind], name: str) -> None:
        """Read a function that is called with arguments of these kinds; its answer must be plain data."""


class Body:
    """The statements and expressions of one function."""

    def __init__(
        self, reader: BodyReader, function: FunctionType, names: dict[str, Kind], tree: ast.FunctionDef
    ) -> None:
        self._reader = reader
        self._function = function
        self._names = names
        self._premises = reader.attributes.premises
        self._local = LocalNames(function, tree)
        self._is_inside = False
        """Whether the expression is part of a comprehension or a lambda, which has variables of its own."""

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, each: ast.stmt) -> None:
        match each:
            case ast.Return(value=None) | ast.Pass() | ast.Continue() | ast.Break():
                return
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) as filled) if (
                name in self._local.new and attr in _FILLS
            ):
                self._data(filled.func.value)  # type: ignore[attr-defined]  # an attribute, by the pattern
                self._arguments(filled)
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
                self._data(value)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=place)], value=value) if (
                name in self._local.new
            ):
                self._data(place)
                self._data(value)
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self._kind(value))
            case ast.AugAssign(target=ast.Name(id=name), value=value) if (
                name in self._local.immutable | self._local.new or self._is_added_number(each)
            ):
                if self._name(name, each.lineno) is not Kind.DATA:
                    raise ReadingObstacle(f"`{name}` is more than plain data", each.lineno)
                self._data(value)
            case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name), slice=place), value=value) if (
                name in self._local.new and self._is_added_number(each)
            ):
                self._data(place)
                self._data(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self._plain(test)
                self.block([*body, *orelse])
            case ast.While():
                raise ReadingObstacle(
                    "a `while` loop may not end for some node", each.lineno, advice="write a `for` loop"
                )
            case ast.For(target=target, iter=source, body=body, orelse=orelse):
                self._bind(target, self._items(source))
                self.block([*body, *orelse])
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                self.block([*body, *orelse, *final])
                for handler in handlers:
                    self._handler(handler)
            case _:
                raise ReadingObstacle(f"`{shown(each)}` is not a statement that is read", each.lineno)

    def _is_added_number(self, each: ast.AugAssign) -> bool:
        """`+= 1`: nothing that could be changed in place takes it. A list takes `*= 2`."""
        return not isinstance(each.op, ast.Mult) and self._local.is_number(each.value)

    def _handler(self, handler: ast.ExceptHandler) -> None:
        caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for each in caught:
            if not isinstance(each, ast.Name) or each.id not in _ERRORS or each.id in self._function.__globals__:
                raise ReadingObstacle("`except` names something other than a builtin error", handler.lineno)
        if handler.name:
            raise ReadingObstacle("`except ... as` is not read", handler.lineno)
        self.block(handler.body)

    def _bind(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, ast.Tuple) and kind is Kind.DATA:
            for each in target.elts:
                self._bind(each, kind)
        elif isinstance(target, ast.Name) and self._names.get(target.id, kind) is kind:
            self._names[target.id] = kind
        else:
            raise ReadingObstacle(f"`{shown(target)}` is assigned to in a way that is not read", target.lineno)

    def _items(self, source: ast.expr) -> Kind:
        """What iterating over an expression gives."""
        kind = self._kind(source)
        found = {Kind.DATA: Kind.DATA, Kind.PARTS: Kind.PART, Kind.OTHERS: Kind.OTHER, Kind.PODS: Kind.DATA}.get(kind)
        if found is None:
            raise ReadingObstacle(f"iterating over `{shown(source)}` is not read", source.lineno)
        if kind is Kind.PODS:
            self._reader.reads(Depends.ROW, source)
        return found

    def _data(self, each: ast.expr) -> Kind:
        if self._kind(each) is not Kind.DATA:
            raise ReadingObstacle(f"`{shown(each)}` is more than plain data", each.lineno)
        return Kind.DATA

    def _plain(self, each: ast.expr) -> Kind:
        """Data, or a part of the spec where its order plays no role."""
        kind = self._kind(each)
        if kind is Kind.PODS:
            self._reader.reads(Depends.USE, each)
        elif kind not in (Kind.DATA, Kind.PART, Kind.PARTS):
            raise ReadingObstacle(f"`{shown(each)}` is more than plain data", each.lineno)
        return kind

    def _kind(self, each: ast.expr) -> Kind:
        match each:
            case ast.Constant():
                return Kind.DATA
            case ast.Name(id=name, ctx=ast.Load()):
                return self._name(name, each.lineno)
            case ast.Attribute(value=value, attr=attr, ctx=ast.Load()):
                return self._attribute(self._kind(value), attr, each)
            case ast.Call():
                return self._call(each)
            case ast.Subscript(value=value, slice=place, ctx=ast.Load()):
                self._data(place)
                return self._part(value)
            case ast.BoolOp(values=values):
                kinds = {self._plain(value) for value in values} - {Kind.DATA}
                if Kind.PODS in kinds and len(kinds) > 1:
                    raise ReadingObstacle(f"`{shown(each)}` has two kinds of values", each.lineno)
                return kinds.pop() if len(kinds) == 1 else Kind.DATA if not kinds else Kind.PART
            case ast.NamedExpr(target=target, value=value) if not self._is_inside:
                kind = self._kind(value)
                self._bind(target, kind)
                return kind
            case ast.UnaryOp(op=ast.Not(), operand=value):
                self._plain(value)
            case ast.UnaryOp(operand=value):
                self._data(value)
            case ast.Compare(left=left, ops=ops, comparators=others):
                self._compare(left, ops, others)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._plain(test)
                kinds = {self._kind(body), self._kind(orelse)}
                if len(kinds) > 1:
                    raise ReadingObstacle(f"`{shown(each)}` has two kinds of values", each.lineno)
                return kinds.pop()
            case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item):
                self._comprehension(each.generators, [item])
            case ast.DictComp(key=key, value=value):
                self._comprehension(each.generators, [key, value])
            case _:
                self._composed(each)
        return Kind.DATA

    def _composed(self, each: ast.expr) -> None:
        """Expressions that are plain data if all their parts are."""
        known = (ast.BinOp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.FormattedValue, ast.Slice)
        if not isinstance(each, known):
            raise ReadingObstacle(f"`{shown(each)}` is not an expression that is read", each.lineno)
        for part in ast.iter_child_nodes(each):
            if isinstance(part, ast.expr):
                self._data(part)

    def _comprehension(self, generators: list[ast.comprehension], items: list[ast.expr]) -> None:
        with self._inside():
            for each in generators:
                if each.is_async:
                    raise ReadingObstacle("asynchronous loops are not read", each.target.lineno)
                self._bind(each.target, self._items(each.iter))
                for test in each.ifs:
                    self._plain(test)
            for item in items:
                self._data(item)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Within a comprehension or a lambda: its variables end with it, and a name after it may be a global one."""
        names, was_inside = dict(self._names), self._is_inside
        self._is_inside = True
        yield
        self._names, self._is_inside = names, was_inside

    def _part(self, value: ast.expr) -> Kind:
        kind = self._kind(value)
        if kind not in (Kind.DATA, Kind.PART, Kind.PARTS):
            raise ReadingObstacle(f"an item of `{shown(value)}` is not read", value.lineno)
        return Kind.DATA if kind is Kind.DATA else Kind.PART

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> None:
        for each in (left, *others):
            self._plain(each)
        for op, other in zip(ops, others, strict=True):
            is_fixed = isinstance(other, ast.Constant) and (other.value is None or isinstance(other.value, bool))
            if isinstance(op, ast.Is | ast.IsNot) and not is_fixed:
                raise ReadingObstacle("`is` compares identities; use `==`", other.lineno)

    def _name(self, name: str, line: int) -> Kind:
        if name.startswith("__"):
            raise ReadingObstacle(f"`{name}` is a private name", line, advice="write it with one underscore")
        if name in self._names:
            return self._names[name]
        if name in self._local.assigned:
            raise ReadingObstacle(f"`{name}` is read before it is assigned", line)
        if name not in self._function.__globals__:
            raise ReadingObstacle(f"`{name}` is not a local name, an argument or a constant", line)
        if not is_constant(self._function.__globals__[name]):
            what = (
                "is a module" if isinstance(self._function.__globals__[name], ModuleType) else "can be changed in place"
            )
            raise ReadingObstacle(f"`{name}` is not a constant: it {what}", line, advice=_OUTSIDE)
        if not binds_once(self._function, name):
            raise ReadingObstacle(f"`{name}` is given a value in more than one place", line, advice=_OUTSIDE)
        self._premises.item(self._function.__globals__, name, self._function.__globals__[name])
        return Kind.DATA

    def _attribute(self, kind: Kind, attr: str, each: ast.Attribute) -> Kind:
        line = each.lineno
        if kind is Kind.SELF:
            if attr == "args":
                return Kind.ARGS
            self._reader.attributes.own(attr, line)
        elif kind is Kind.ARGS:
            self._reader.attributes.argument(attr, line)
        elif kind is Kind.POD and attr in _POD:
            return _POD[attr]
        elif kind is Kind.SPEC and attr in _SPEC:
            return _SPEC[attr]
        elif kind is Kind.NODE and attr == "pods":
            return Kind.PODS
        elif kind is Kind.NODE and attr in _NODE_USE:
            self._reader.reads(Depends.USE, each)
        elif kind in (Kind.DATA, Kind.PART) and attr in _FIELDS:
            return kind
        elif not (kind is Kind.OTHER and attr in _OTHER) and not (kind is Kind.NODE and attr in _NODE):
            raise _unknown_attribute(kind, each)
        return Kind.DATA

    def _call(self, each: ast.Call) -> Kind:
        if isinstance(each.func, ast.Name):
            return self._call_name(each, each.func.id)
        if isinstance(each.func, ast.Attribute):
            return self._call_method(each, each.func)
        raise ReadingObstacle(f"`{shown(each)}` calls something that is not read", each.lineno)

    def _arguments(self, each: ast.Call) -> None:
        """Arguments, named ones included, that are plain data."""
        for argument in (*each.args, *(keyword.value for keyword in each.keywords)):
            self._data(argument)

    def _call_name(self, each: ast.Call, name: str) -> Kind:
        known = self._function.__globals__
        if name in self._names or name.startswith("__") or (name not in known and name not in _PURE):
            raise ReadingObstacle(f"`{name}(...)` is not known to be pure", each.lineno, advice=_OUTSIDE)
        if name not in known:
            return self._call_builtin(each, name)
        target = known[name]
        if not binds_once(self._function, name):
            raise ReadingObstacle(f"`{name}` is given a value in more than one place", each.lineno)
        self._premises.item(known, name, target)
        if any(target is status for status in _STATUSES):
            self._arguments(each)
        elif isinstance(target, FunctionType) and target.__module__ == self._function.__module__:
            self._call_function(each, target, [])
        else:
            raise ReadingObstacle(f"`{name}(...)` is not known to be pure", each.lineno, advice=_OUTSIDE)
        return Kind.DATA

    def _call_function(self, each: ast.Call, target: FunctionType, before: list[Kind]) -> None:
        """Call a function of the file; `before` are arguments besides those that are written."""
        kinds = [*before, *(self._kind(argument) for argument in each.args)]
        names = target.__code__.co_varnames[: target.__code__.co_argcount]
        given = {keyword.arg: keyword.value for keyword in each.keywords}
        if list(given) and set(given) != set(names[len(kinds) :]):
            raise ReadingObstacle(f"`{shown(each)}` has named arguments that are not read", each.lineno)
        kinds += [self._kind(given[name]) for name in names[len(kinds) :] if given]
        self._reader.call(target, kinds, target.__name__)

    def _call_builtin(self, each: ast.Call, name: str) -> Kind:
        if getattr(builtins, name) is not _PURE[name]:
            raise ReadingObstacle(f"the builtin `{name}` was replaced", each.lineno)
        self._premises.builtin(self._function, name)
        kinds = [self._kind(argument) for argument in each.args]
        for keyword in each.keywords:
            self._key(keyword.value, each) if keyword.arg == "key" else self._data(keyword.value)
        if kinds == [Kind.OTHERS] and name in _COPIES:
            return Kind.OTHERS
        for argument, kind in zip(each.args, kinds, strict=True):
            if kind in (Kind.PODS, Kind.OTHERS) and name == "len":
                self._reader.reads(Depends.USE, each)
            elif kind is not Kind.DATA and not (kind in (Kind.PART, Kind.PARTS) and name in _OF_PARTS):
                raise ReadingObstacle(f"`{name}({shown(argument)})` is not read", each.lineno)
        return Kind.DATA

    def _key(self, value: ast.expr, call: ast.Call) -> None:
        """`key=lambda each: ...` over plain data."""
        match value:
            case ast.Lambda(args=ast.arguments([], [ast.arg(arg=name)], None, [], [], None, []), body=body):
                with self._inside():
                    self._names[name] = Kind.DATA
                    self._data(body)
            case _:
                raise ReadingObstacle(f"`{shown(call)}` has a key that is not read", call.lineno)

    def _call_method(self, each: ast.Call, func: ast.Attribute) -> Kind:
        if self._is_math(func):
            self._arguments(each)
            return Kind.DATA
        kind, name = self._kind(func.value), func.attr
        if kind is Kind.SELF:
            attributes = self._reader.attributes
            self._call_function(each, attributes.method(name), [] if attributes.is_static(name) else [Kind.SELF])
            return Kind.DATA
        self._arguments(each)
        if kind is Kind.NODE and name in _NODE_CALLS:
            self._reader.reads(_NODE_CALLS[name], each)
        elif kind is Kind.PODS and name == "values" and not each.args:
            self._reader.reads(Depends.ROW, each)
            return Kind.OTHERS
        elif kind is Kind.PART and name == "get":
            return Kind.PART
        elif not (kind is Kind.DATA and name in PURE_METHODS) and not (kind is Kind.PART and name in _TEXT):
            raise ReadingObstacle(f"`{shown(func)}(...)` is not known to be pure", each.lineno, advice=_OUTSIDE)
        return Kind.DATA

    def _is_math(self, func: ast.Attribute) -> bool:
        """A function of the module `math`, as it was when this module was imported."""
        if not isinstance(func.value, ast.Name) or func.value.id in self._names or func.attr not in _MATH:
            return False
        name, attr = func.value.id, func.attr
        if self._function.__globals__.get(name) is not math or getattr(math, attr) is not _MATH[attr]:
            return False
        self._premises.item(self._function.__globals__, name, math)
        self._premises.item(vars(math), attr, _MATH[attr])
        return binds_once(self._function, name)


def _unknown_attribute(kind: Kind, each: ast.Attribute) -> ReadingObstacle:
    text = shown(each)
    if kind in (Kind.POD, Kind.SPEC):
        what, advice = f"`{text}` is the pod's own: pods of one shape may differ in it", _SHARED
    elif kind is Kind.STATE:
        what, advice = f"`{text}` holds what other methods put there", "compute it in the method itself"
    else:
        what, advice = f"`{text}` is not among the parts that are read", ""
    return ReadingObstacle(what, each.lineno, advice=advice)


def shown(each: ast.AST) -> str:
    """An expression as its author wrote it, in one line."""
    text = " ".join(ast.unparse(each).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
