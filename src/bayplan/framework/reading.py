"""Find out from the source of a plugin's one-node method what its answer depends on; nothing is executed.

    reading_of(PreferZone, "score")     # Reading(depends=Depends.NODE, obstacle="", line=0)

An author who states no `depends` gets the speed of one who does, as long as every expression of the method is
understood: arguments, what pods of one shape share, parts of the node, pure builtins, and methods and functions of the
same file that are as pure. Anything else is an obstacle, and the answer counts as depending on everything. The source
must compile to the very code that runs, so that an edited file, a decorator or a replaced method is never misread.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator
from enum import Enum, auto
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from bayplan.api import meta, node, pod
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import defines
from bayplan.framework.promises import Depends, SpeedPromises
from bayplan.framework.source import Definition, ReadingObstacle, binds_once, class_functions, source_of
from bayplan.framework.status import Error, Pending, Skip, Status, Unresolvable, Unschedulable

__all__ = ["Reading", "reading_of", "stated_depends"]


class Reading(NamedTuple):
    depends: Depends
    obstacle: str = ""
    """The first thing that was not understood."""
    line: int = 0
    """Where it is in the file; 0 for an obstacle that is not an expression."""


class _Kind(Enum):
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


_K = _Kind
_PROMISES = ("sign", "is_idle", "accepts_all", "score_by_value", "combine_scores")
_POD = {"labels": _K.DATA, "namespace": _K.DATA, "priority": _K.DATA, "scheduler_name": _K.DATA, "spec": _K.SPEC}
_SPEC = {
    **dict.fromkeys(("priority", "scheduler_name", "preemption_policy", "host_network", "host_users"), _K.DATA),
    **dict.fromkeys(("containers", "init_containers", "tolerations", "topology_spread_constraints"), _K.PARTS),
    **dict.fromkeys(("node_selector", "overhead", "resources", "affinity"), _K.PART),
}
_NODE = ("name", "labels", "annotations", "taints", "unschedulable", "allowed_pods")
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
_PURE_METHODS = {
    *("get", "keys", "values", "items", "split", "rsplit", "partition", "rpartition", "join", "replace", "count"),
    *("removeprefix", "removesuffix", "splitlines", "find", "rfind", "title", "isalpha", "isalnum", "issubset"),
    *("issuperset", "isdisjoint", "union", "intersection", "difference", *_TEXT),
}
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
_REFLECTION = {"setattr", "delattr", "getattr", "vars", "exec", "eval", "globals", "locals", "__dict__", "super"}
_SIMPLE = (str, int, float, bool, type(None), bytes)


def stated_depends(plugin: Plugin | type[Plugin], method: str) -> Depends | None:
    """What the author states about `filter` or `score`; None where nothing is stated."""
    own: Depends | None = plugin.filter_depends if method == "filter" else plugin.score_depends
    if own is not None:
        return own
    cls = plugin if isinstance(plugin, type) else type(plugin)
    bases = cls.__mro__[: cls.__mro__.index(SpeedPromises)]
    return plugin.depends if any("depends" in vars(base) for base in bases) else None


def reading_of(plugin: Plugin | type[Plugin], method: str) -> Reading:
    """What `filter` or `score` of a plugin depends on, by its source. Of a class, arguments are taken as given."""
    try:
        _check_forms(plugin, method)
        reader = _Reader(plugin)
        reader.call(_function(plugin, method), [_K.SELF, _K.STATE, _K.POD, _K.NODE], method)
        reader.check_class()
        return Reading(reader.depends)
    except ReadingObstacle as found:
        return Reading(Depends.CLUSTER, str(found), found.line)
    except RecursionError:
        return Reading(Depends.CLUSTER, f"`{method}` is nested too deeply to be read")


def _check_forms(plugin: Plugin | type[Plugin], method: str) -> None:
    """Only the one-node form by itself is read: other methods may prepare, change or promise something about it."""
    for other in (f"{method}_nodes", f"pre_{method}", *_PROMISES):
        if defines(plugin, other):
            raise ReadingObstacle(f"`{other}` is defined besides `{method}`; state `{method}_depends` yourself")


def _function(plugin: Plugin | type[Plugin], name: str) -> FunctionType:
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if not isinstance(plugin, type) and name in vars(plugin):
        raise ReadingObstacle(f"`{name}` was replaced on the instance")
    found = inspect.getattr_static(cls, name, None)
    if not isinstance(found, FunctionType):
        raise ReadingObstacle(f"`{name}` is not a plain method")
    return found


class _Reader:
    """One reading. `depends` grows with what is read."""

    def __init__(self, plugin: Plugin | type[Plugin]) -> None:
        self._plugin = plugin
        self._cls = plugin if isinstance(plugin, type) else type(plugin)
        self._under_way: list[CodeType] = []
        self._used = {"args", "filter", "score"}
        """Attributes of the plugin, and fields of its arguments, that the answer follows from."""
        self.depends = Depends.NODE

    def reads(self, depends: Depends) -> None:
        self.depends = max(self.depends, depends)

    def call(self, function: FunctionType, kinds: list[_Kind], name: str) -> None:
        """Read a function that is called with arguments of these kinds; its answer must be plain data."""
        code = function.__code__
        if code in self._under_way:
            raise ReadingObstacle(f"`{name}` calls itself")
        tree = source_of(function)
        if not isinstance(tree, ast.FunctionDef):
            raise ReadingObstacle(f"`{name}` is asynchronous", tree.lineno)
        parameters = [*tree.args.posonlyargs, *tree.args.args]
        if tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs or tree.args.defaults or tree.decorator_list:
            raise ReadingObstacle(f"`{name}` has decorators, defaults or parameters besides plain ones", tree.lineno)
        if len(parameters) != len(kinds):
            raise ReadingObstacle(f"`{name}` is called with another number of arguments", tree.lineno)
        names = dict(zip((each.arg for each in parameters), kinds, strict=True))
        self._under_way.append(code)
        _Body(self, function, names, tree).block(tree.body)
        self._under_way.pop()

    def method(self, name: str) -> FunctionType:
        self._used.add(name)
        return _function(self._plugin, name)

    def argument(self, field: str, line: int) -> _Kind:
        """`self.args.field`: a value that nothing can change in place."""
        if field not in self._cls.Args.__struct_fields__:
            raise ReadingObstacle(f"`args.{field}` is not a field of `Args`", line)
        if isinstance(self._plugin, Plugin) and not _is_constant(getattr(self._plugin.args, field)):
            raise ReadingObstacle(f"`args.{field}` can be changed in place; declare it as a tuple or a frozenset", line)
        self._used.add(field)
        return _K.DATA

    def check_class(self) -> None:
        """That no method of the class gives arguments or attributes other values."""
        for name in ("args", "__getattribute__", "__getattr__", "__setattr__"):
            if inspect.getattr_static(self._cls, name, None) is not inspect.getattr_static(Plugin, name, None):
                raise ReadingObstacle(f"the class has a `{name}` of its own")
        if type(self._cls) is not type(Plugin):
            raise ReadingObstacle("the class has a metaclass of its own")
        for name, function in class_functions(self._cls, Plugin):
            for line in _changes(source_of(function), self._used):
                raise ReadingObstacle(f"`{name}` may give arguments or methods other values", line)


def _changes(tree: Definition, names: set[str]) -> Iterator[int]:
    """Lines that store to one of these attributes, or hand over enough for others to do it."""
    inner = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    first = next((each.arg for each in (*tree.args.posonlyargs, *tree.args.args)), "")
    for each in ast.walk(tree):
        is_whole = id(each) not in inner
        if isinstance(each, ast.Attribute):
            is_stored = each.attr in names and not isinstance(each.ctx, ast.Load)
            if is_stored or (each.attr == "args" and is_whole) or each.attr in _REFLECTION:
                yield each.lineno
        elif isinstance(each, ast.Name) and (each.id in _REFLECTION or (each.id == first and is_whole)):
            yield each.lineno


def _literals(tree: ast.AST) -> set[str]:
    targets = {
        id(target): target
        for each in ast.walk(tree)
        for target in (
            each.targets
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
            else [each.target]
            if isinstance(each, ast.AugAssign)
            else []
        )
    }
    stored = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return {each.id for each in stored} - {each.id for each in stored if id(each) not in targets}


def _is_constant(value: object) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_constant, value))  # type: ignore[call-overload]  # one of the two, by the line above
    return type(value) in _SIMPLE or type(value) is Status


class _Body:
    """The statements and expressions of one function."""

    def __init__(self, reader: _Reader, function: FunctionType, names: dict[str, _Kind], tree: ast.FunctionDef) -> None:
        self._reader = reader
        self._function = function
        self._names = names
        self._numbers = _literals(tree)
        """Local names to which only literals are assigned, so that `+=` changes nothing in place."""

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, each: ast.stmt) -> None:
        match each:
            case ast.Return(value=None) | ast.Pass() | ast.Continue() | ast.Break():
                return
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
                self._data(value)
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self._kind(value))
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name in self._numbers:
                self._data(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self._plain(test)
                self.block([*body, *orelse])
            case ast.For(target=target, iter=source, body=body, orelse=orelse):
                self._bind(target, self._items(source))
                self.block([*body, *orelse])
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                self.block([*body, *orelse, *final])
                for handler in handlers:
                    self._handler(handler)
            case _:
                raise ReadingObstacle(f"`{_text(each)}` is not a statement that is read", each.lineno)

    def _handler(self, handler: ast.ExceptHandler) -> None:
        caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for each in caught:
            if not isinstance(each, ast.Name) or each.id not in _ERRORS or each.id in self._function.__globals__:
                raise ReadingObstacle("`except` names something other than a builtin error", handler.lineno)
        if handler.name:
            raise ReadingObstacle("`except ... as` is not read", handler.lineno)
        self.block(handler.body)

    def _bind(self, target: ast.expr, kind: _Kind) -> None:
        if isinstance(target, ast.Tuple) and kind in (_K.DATA, _K.PART):
            for each in target.elts:
                self._bind(each, kind)
        elif isinstance(target, ast.Name) and self._names.get(target.id, kind) is kind:
            self._names[target.id] = kind
        else:
            raise ReadingObstacle(f"`{_text(target)}` is assigned to in a way that is not read", target.lineno)

    def _items(self, source: ast.expr) -> _Kind:
        """What iterating over an expression gives."""
        kind = self._kind(source)
        found = {_K.DATA: _K.DATA, _K.PARTS: _K.PART, _K.OTHERS: _K.OTHER, _K.PODS: _K.DATA}.get(kind)
        if found is None:
            raise ReadingObstacle(f"iterating over `{_text(source)}` is not read", source.lineno)
        if kind is _K.PODS:
            self._reader.reads(Depends.ROW)
        return found

    def _data(self, each: ast.expr) -> _Kind:
        if self._kind(each) is not _K.DATA:
            raise ReadingObstacle(f"`{_text(each)}` is more than plain data", each.lineno)
        return _K.DATA

    def _plain(self, each: ast.expr) -> _Kind:
        """Data, or a part of the spec where its order plays no role."""
        kind = self._kind(each)
        if kind is _K.PODS:
            self._reader.reads(Depends.USE)
        elif kind not in (_K.DATA, _K.PART, _K.PARTS):
            raise ReadingObstacle(f"`{_text(each)}` is more than plain data", each.lineno)
        return kind

    def _kind(self, each: ast.expr) -> _Kind:
        match each:
            case ast.Constant():
                return _K.DATA
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
                kinds = {self._plain(value) for value in values} - {_K.DATA}
                return kinds.pop() if len(kinds) == 1 else _K.DATA if not kinds else _K.PART
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
                    raise ReadingObstacle(f"`{_text(each)}` has two kinds of values", each.lineno)
                return kinds.pop()
            case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item):
                self._comprehension(each.generators, [item])
            case ast.DictComp(key=key, value=value):
                self._comprehension(each.generators, [key, value])
            case _:
                self._composed(each)
        return _K.DATA

    def _composed(self, each: ast.expr) -> None:
        """Expressions that are plain data if all their parts are."""
        known = (ast.BinOp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.FormattedValue, ast.Slice)
        if not isinstance(each, known):
            raise ReadingObstacle(f"`{_text(each)}` is not an expression that is read", each.lineno)
        for part in ast.iter_child_nodes(each):
            if isinstance(part, ast.expr):
                self._data(part)

    def _comprehension(self, generators: list[ast.comprehension], items: list[ast.expr]) -> None:
        outside = dict(self._names)
        for each in generators:
            if each.is_async:
                raise ReadingObstacle("asynchronous loops are not read", each.target.lineno)
            self._bind(each.target, self._items(each.iter))
            for test in each.ifs:
                self._plain(test)
        for item in items:
            self._data(item)
        self._names = outside  # its variables end with it: a name after it may be a global one

    def _part(self, value: ast.expr) -> _Kind:
        kind = self._kind(value)
        if kind not in (_K.DATA, _K.PART, _K.PARTS):
            raise ReadingObstacle(f"an item of `{_text(value)}` is not read", value.lineno)
        return _K.DATA if kind is _K.DATA else _K.PART

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> None:
        for each in (left, *others):
            self._plain(each)
        for op, other in zip(ops, others, strict=True):
            is_fixed = isinstance(other, ast.Constant) and (other.value is None or isinstance(other.value, bool))
            if isinstance(op, ast.Is | ast.IsNot) and not is_fixed:
                raise ReadingObstacle("`is` compares identities; use `==`", other.lineno)

    def _name(self, name: str, line: int) -> _Kind:
        if name in self._names:
            return self._names[name]
        if name not in self._function.__globals__:
            raise ReadingObstacle(f"`{name}` is not a local name, an argument or a constant", line)
        if not _is_constant(self._function.__globals__[name]):
            raise ReadingObstacle(f"`{name}` is not a constant: it can be changed in place", line)
        if not binds_once(self._function, name):
            raise ReadingObstacle(f"`{name}` is given a value in more than one place", line)
        return _K.DATA

    def _attribute(self, kind: _Kind, attr: str, each: ast.Attribute) -> _Kind:
        line = each.lineno
        if kind is _K.SELF:
            if attr == "args":
                return _K.ARGS
            raise ReadingObstacle(f"`self.{attr}` may change while the scheduler runs; pass it as an argument", line)
        if kind is _K.ARGS:
            return self._reader.argument(attr, line)
        if kind is _K.POD and attr in _POD:
            return _POD[attr]
        if kind is _K.SPEC and attr in _SPEC:
            return _SPEC[attr]
        if kind is _K.OTHER and attr in _OTHER:
            return _K.DATA
        if kind is _K.NODE and (attr in _NODE or attr in _NODE_USE or attr == "pods"):
            if attr in _NODE_USE:
                self._reader.reads(Depends.USE)
            return _K.PODS if attr == "pods" else _K.DATA
        if kind in (_K.DATA, _K.PART) and attr in _FIELDS:
            return kind
        raise ReadingObstacle(
            f"`{_text(each)}` is not known to be the same for all pods of a shape, or is not read", line
        )

    def _call(self, each: ast.Call) -> _Kind:
        if each.keywords:
            raise ReadingObstacle(f"`{_text(each)}` has named arguments", each.lineno)
        if isinstance(each.func, ast.Name):
            return self._call_name(each, each.func.id)
        if isinstance(each.func, ast.Attribute):
            return self._call_method(each, each.func)
        raise ReadingObstacle(f"`{_text(each)}` calls something that is not read", each.lineno)

    def _call_name(self, each: ast.Call, name: str) -> _Kind:
        known = self._function.__globals__
        if name in self._names or (name not in known and name not in _PURE):
            raise ReadingObstacle(f"`{name}(...)` is not known to be pure", each.lineno)
        if name not in known:
            return self._call_builtin(each, name)
        target = known[name]
        if not binds_once(self._function, name):
            raise ReadingObstacle(f"`{name}` is given a value in more than one place", each.lineno)
        if any(target is status for status in _STATUSES):
            for argument in each.args:
                self._data(argument)
        elif isinstance(target, FunctionType) and target.__module__ == self._function.__module__:
            self._reader.call(target, [self._kind(argument) for argument in each.args], name)
        else:
            raise ReadingObstacle(f"`{name}(...)` is not known to be pure", each.lineno)
        return _K.DATA

    def _call_builtin(self, each: ast.Call, name: str) -> _Kind:
        if getattr(builtins, name) is not _PURE[name]:
            raise ReadingObstacle(f"the builtin `{name}` was replaced", each.lineno)
        kinds = [self._kind(argument) for argument in each.args]
        if kinds == [_K.OTHERS] and name in _COPIES:
            return _K.OTHERS
        for argument, kind in zip(each.args, kinds, strict=True):
            if kind in (_K.PODS, _K.OTHERS) and name == "len":
                self._reader.reads(Depends.USE)
            elif kind is not _K.DATA and not (kind in (_K.PART, _K.PARTS) and name in _OF_PARTS):
                raise ReadingObstacle(f"`{name}({_text(argument)})` is not read", each.lineno)
        return _K.DATA

    def _call_method(self, each: ast.Call, func: ast.Attribute) -> _Kind:
        kind, name = self._kind(func.value), func.attr
        if kind is _K.SELF:
            arguments = [_K.SELF, *(self._kind(argument) for argument in each.args)]
            self._reader.call(self._reader.method(name), arguments, name)
            return _K.DATA
        for argument in each.args:
            self._data(argument)
        if kind is _K.NODE and name in _NODE_CALLS:
            self._reader.reads(_NODE_CALLS[name])
        elif kind is _K.PODS and name == "values" and not each.args:
            self._reader.reads(Depends.ROW)
            return _K.OTHERS
        elif kind is _K.PART and name == "get":
            return _K.PART
        elif not (kind is _K.DATA and name in _PURE_METHODS) and not (kind is _K.PART and name in _TEXT):
            raise ReadingObstacle(f"`{_text(func)}(...)` is not known to be pure", each.lineno)
        return _K.DATA


def _text(each: Any) -> str:
    """An expression as its author wrote it, in one line."""
    text = " ".join(ast.unparse(each).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
