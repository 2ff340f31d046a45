"""Attributes of a plugin that keep their values while the scheduler runs: arguments, constants of the class, and what
`setup` sets.

An attribute counts as fixed if no method of the class stores to it (`setup` may, once), its value cannot be changed in
place or nothing changes it, and the plugin as a whole is passed to nothing that could.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

import msgspec

from bayplan.framework.args import PluginArgs
from bayplan.framework.metrics import MetricDeclaration
from bayplan.framework.plugin import Plugin
from bayplan.framework.reading.premises import Premises
from bayplan.framework.reading.source import (
    Definition,
    ReadingObstacle,
    class_functions,
    is_stored_in,
    own_bases,
    source_of,
    uses_builtin,
)
from bayplan.framework.status import Status

__all__ = ["PURE_METHODS", "FixedAttributes", "is_constant"]

_SIMPLE = (str, int, float, bool, type(None), bytes)
_CONTAINERS = (list, dict, set)
_MAKERS = {"list", "dict", "set", "sorted"}
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_REFLECTION = {"setattr", "delattr", "getattr", "vars", "exec", "eval", "globals", "locals", "super"}
_COUNTING = {"len", "bool"}
_COPYING = {"list", "tuple", "set", "frozenset", "dict", "sorted", "min", "max", "sum", "any", "all", "enumerate"}
PURE_METHODS = {
    *("get", "keys", "values", "items", "split", "rsplit", "partition", "rpartition", "join", "replace", "count"),
    *("removeprefix", "removesuffix", "splitlines", "find", "rfind", "title", "isalpha", "isalnum", "issubset"),
    *("issuperset", "isdisjoint", "union", "intersection", "difference", "startswith", "endswith", "lower", "upper"),
    *("strip", "lstrip", "rstrip", "isdigit", "isdecimal", "casefold", "index"),
}
"""Methods of texts and collections that change nothing."""
_REACHES = {
    "log": ("writes to the log, and an answer that is kept would write nothing", "log in `reserve` or `post_bind`"),
    "handle": ("reaches beyond the pod and the node", ""),
}
_FIXED = "set it once, in `setup`, to a number, a text, a tuple or a frozenset, or make it an argument"


def is_constant(value: object) -> bool:
    """Whether a value cannot be changed in place."""
    if type(value) in (tuple, frozenset):
        return all(map(is_constant, value))  # type: ignore[call-overload]  # one of the two, by the line above
    return type(value) in _SIMPLE or type(value) is Status


class FixedAttributes:
    """The attributes of one plugin that a reading has met so far."""

    def __init__(self, plugin: Plugin | type[Plugin]) -> None:
        self._plugin = plugin
        self._cls = plugin if isinstance(plugin, type) else type(plugin)
        self.premises = Premises()
        if isinstance(plugin, Plugin):
            self.premises.attribute(plugin, "__class__", self._cls)
        self._used = {"args", "filter", "score"}
        """Attributes of the plugin, and fields of its arguments, that the answer follows from."""
        self._containers: dict[str, bool] = {}
        """Those of them that could be changed in place, and whether their items could not be."""

    def method(self, name: str) -> FunctionType:
        """A method of the class, as it is found on the plugin."""
        if not isinstance(self._plugin, type) and name in vars(self._plugin):
            raise ReadingObstacle(f"`{name}` was replaced on the instance", advice="define it in the class alone")
        found = inspect.getattr_static(self._cls, name, None)
        if isinstance(found, staticmethod):
            found = found.__func__
        if not isinstance(found, FunctionType) or "__" in name:
            raise ReadingObstacle(f"`{name}` is not a plain method")
        self._used.add(name)
        self.premises.looked_up(self._cls, name)
        if isinstance(self._plugin, Plugin):
            self.premises.item(vars(self._plugin), name)
        return found

    def is_static(self, name: str) -> bool:
        return isinstance(inspect.getattr_static(self._cls, name, None), staticmethod)

    def argument(self, field: str, line: int) -> None:
        """`self.args.field`."""
        if field not in self._cls.Args.__struct_fields__:
            raise ReadingObstacle(f"`args.{field}` is not a field of `Args`", line)
        if isinstance(self._plugin, Plugin):
            value = getattr(self._plugin.args, field)
            if not is_constant(value):
                self._argument_container(field, value, line)
                self.premises.content(value)
            self.premises.item(vars(self._plugin), "args", self._plugin.args)
            self.premises.attribute(self._plugin.args, field, value)
        self._used.add(field)

    def _argument_container(self, field: str, value: object, line: int) -> None:
        """A list, dict or set that was decoded for this plugin, so that nothing else refers to it."""
        args = type(self._plugin.args)
        made = next(each.default_factory for each in msgspec.structs.fields(args) if each.name == field)
        is_own = made in (msgspec.NODEFAULT, *_CONTAINERS) and not hasattr(args, "__post_init__")
        if not is_own or not _is_plain(value):
            raise ReadingObstacle(
                f"`args.{field}` can be changed in place",
                line,
                advice="declare it as a number, a text, or a list, dict or tuple of those",
            )
        self._containers[field] = _is_flat(value)

    def own(self, name: str, line: int) -> None:
        """`self.name`: a constant of the class, or what `setup` sets."""
        is_instance = isinstance(self._plugin, Plugin)
        if name in _REACHES:
            why, advice = _REACHES[name]
            raise ReadingObstacle(f"`self.{name}` {why}", line, advice=advice)
        if "__" in name:
            raise ReadingObstacle(f"`self.{name}` is a private name", line, advice="write it with one underscore")
        if isinstance(inspect.getattr_static(self._cls, name, None), MetricDeclaration):
            why = "feeds a metric, and an answer that is kept would feed nothing"
            raise ReadingObstacle(f"`self.{name}` {why}", line, advice="feed it in `reserve` or `post_bind`")
        if is_instance and name in vars(self._plugin):
            self._set_up(name, vars(self._plugin)[name], line)
        elif not is_instance and any(_stores(tree, name) for _, tree in self._functions()):
            self._set_up(name, None, line)
        else:
            self._class_constant(name, line)
        self._used.add(name)

    def _set_up(self, name: str, value: object, line: int) -> None:
        stores = [(function, tree, each) for function, tree in self._functions() for each in _stores(tree, name)]
        assigned = _assigned_in_setup(*stores[0]) if len(stores) == 1 else None
        if assigned is None or not is_constant(inspect.getattr_static(self._cls, name, None)):
            place = next((function.__name__ for function, _, _ in stores if function.__name__ != "setup"), "")
            where = f": `{place}` sets it" if place else ""
            raise ReadingObstacle(f"`self.{name}` may change while the scheduler runs{where}", line, advice=_FIXED)
        if isinstance(self._plugin, Plugin):
            self.premises.item(vars(self._plugin), name, value)
        if is_constant(value):
            return
        function, tree, _ = stores[0]
        if not (isinstance(assigned, _DISPLAYS) or _makes_new(assigned, function, tree)) or not _is_flat(value):
            raise ReadingObstacle(f"`self.{name}` can be changed in place", line, advice=_FIXED)
        self._containers[name] = True
        self.premises.content(value)

    def _class_constant(self, name: str, line: int) -> None:
        owners = [base for base in own_bases(self._cls, Plugin) if name in vars(base)]
        value = vars(owners[0])[name] if owners else None
        if not owners or not is_constant(value):
            raise ReadingObstacle(f"`self.{name}` may change while the scheduler runs", line, advice=_FIXED)
        if any(is_stored_in(function, name) for _, function in class_functions(self._cls, Plugin)):
            raise ReadingObstacle(f"`self.{name}` is given a value in more than one place", line, advice=_FIXED)
        self.premises.looked_up(self._cls, name)
        if isinstance(self._plugin, Plugin):
            self.premises.item(vars(self._plugin), name)

    def check(self, read: Iterable[CodeType]) -> None:
        """That nothing in the class gives what was met another value. `read` is code that changes nothing."""
        for cls, base in ((self._cls, Plugin), (self._cls.Args, PluginArgs)):
            for name in ("args", "__getattribute__", "__getattr__", "__setattr__"):
                if inspect.getattr_static(cls, name, None) is not inspect.getattr_static(base, name, None):
                    raise ReadingObstacle(f"the class has a `{name}` of its own")
        if type(self._cls) is not type(Plugin):
            raise ReadingObstacle("the class has a metaclass of its own")
        known = set(read)
        for name, function in class_functions(self._cls, Plugin):
            self._check_function(name, function, is_first=name == "setup", is_known=function.__code__ in known)
        for name, function in _argument_functions(self._cls.Args):
            self._check_function(name, function, is_first=name == "__post_init__", is_known=False)

    def _check_function(self, name: str, function: FunctionType, *, is_first: bool, is_known: bool) -> None:
        """`is_first`: it runs before anything is read. `is_known`: it was read, and changes nothing."""
        tree = source_of(function)
        try:
            for line in _changes(tree, self._used, is_setup=is_first):
                raise ReadingObstacle(f"`{name}` may give arguments, attributes or methods other values", line)
            if not is_known:
                self._check_containers(name, function, tree)
        except ReadingObstacle as found:
            found.file = function.__code__.co_filename
            raise

    def _check_containers(self, name: str, function: FunctionType, tree: Definition) -> None:
        for field, line in _risks(function, tree, self._containers):
            raise ReadingObstacle(
                f"`{name}` may change `{field}` in place",
                line,
                advice=f"copy it there, as in `list(self.args.{field})`, or make it a tuple or a frozenset",
            )

    def _functions(self) -> Iterator[tuple[FunctionType, Definition]]:
        for _, function in class_functions(self._cls, Plugin):
            yield function, source_of(function)


def _is_plain(value: object) -> bool:
    """Lists, dicts and sets of constants, however nested."""
    if type(value) in _CONTAINERS:
        items: Any = value
        return all(map(_is_plain, items.values() if isinstance(items, dict) else items))
    return is_constant(value)


def _is_flat(value: object) -> bool:
    """A list, dict or set whose items cannot be changed in place."""
    items: Any = value
    return type(value) in _CONTAINERS and all(map(is_constant, items.values() if isinstance(items, dict) else items))


def _stores(tree: Definition, name: str) -> list[ast.Attribute]:
    return [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.Attribute) and each.attr == name and not isinstance(each.ctx, ast.Load)
    ]


def _makes_new(assigned: ast.expr | None, function: FunctionType, tree: Definition) -> bool:
    """`list(...)` and the like: a collection that nothing else refers to."""
    match assigned:
        case ast.Call(func=ast.Name(id=name)):
            return name in _MAKERS and uses_builtin(function, tree, name)
    return False


def _assigned_in_setup(function: FunctionType, tree: Definition, target: ast.Attribute) -> ast.expr | None:
    """What `setup` itself assigns to an attribute of the plugin; None for another form, or in a function inside it."""
    if (
        function.__name__ != "setup"
        or not isinstance(target.value, ast.Name)
        or target.value.id != _first_parameter(tree)
    ):
        return None
    inner = _inside_functions(tree)
    for each in ast.walk(tree):
        match each:
            case ast.Assign(targets=[place], value=value) | ast.AnnAssign(target=place, value=ast.expr() as value):
                if place is target and id(each) not in inner:
                    return value
    return None


def _inside_functions(tree: Definition) -> set[int]:
    """Parts of the functions and lambdas inside a function: they may run at any time."""
    return {
        id(part)
        for each in ast.walk(tree)
        if each is not tree and isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for part in ast.walk(each)
    }


def _first_parameter(tree: Definition) -> str:
    """The name that stands for the plugin in a method; a static method has none."""
    if any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in tree.decorator_list):
        return ""
    return next((each.arg for each in (*tree.args.posonlyargs, *tree.args.args)), "")


def _changes(tree: Definition, names: set[str], *, is_setup: bool) -> Iterator[int]:
    """Lines that store to one of these attributes, or hand over enough for others to do it.

    `is_setup`: the function runs once, before anything is read, so that what it stores itself does no harm.
    """
    inner = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    later = _inside_functions(tree)
    inherited = _calls_of_inherited_setup(tree) if is_setup else set()
    first = _first_parameter(tree)
    for each in ast.walk(tree):
        is_whole = id(each) not in inner
        if id(each) in inherited:
            continue
        if isinstance(each, ast.Attribute):
            is_first = is_setup and id(each) not in later
            is_stored = each.attr in names and not isinstance(each.ctx, ast.Load) and not is_first
            if is_stored or each.attr == "setup" or (each.attr == "args" and is_whole) or _reflects(each.attr):
                yield each.lineno
        elif isinstance(each, ast.Name) and (_reflects(each.id) or (each.id == first and is_whole)):
            yield each.lineno


def _reflects(name: str) -> bool:
    """Whether a name leads to attributes that are not written as such: `vars`, `__dict__`, `__class__`, ..."""
    return name in _REFLECTION or (name.startswith("__") and name.endswith("__"))


def _calls_of_inherited_setup(tree: Definition) -> set[int]:
    """The parts of `super().setup()`."""
    parts: set[int] = set()
    for each in ast.walk(tree):
        match each:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super") as name, args=[]), attr="setup"):
                parts |= {id(each), id(name)}
    return parts


def _risks(function: FunctionType, tree: Definition, containers: dict[str, bool]) -> Iterator[tuple[str, int]]:
    """Mentions of these attributes that may change them in place, or let others do it."""
    if not containers:
        return
    parents = {id(part): each for each in ast.walk(tree) for part in ast.iter_child_nodes(each)}
    for each in ast.walk(tree):
        if not isinstance(each, ast.Attribute) or each.attr not in containers or not isinstance(each.ctx, ast.Load):
            continue
        caller = parents[id(each)]
        if isinstance(caller, ast.Call) and isinstance(caller.func, ast.Name):
            is_read = _only_calls(caller.func.id, is_flat=containers[each.attr])
            is_read = is_read and uses_builtin(function, tree, caller.func.id)
        else:
            is_read = _only_reads(each, parents, is_flat=containers[each.attr])
        if not is_read:
            yield each.attr, each.lineno


def _only_calls(name: str, *, is_flat: bool) -> bool:
    """Whether a builtin leaves a container as it is; one that hands its items on does if they are constants."""
    return name in _COUNTING or (is_flat and name in _COPYING)


def _only_reads(each: ast.Attribute, parents: dict[int, ast.AST], *, is_flat: bool) -> bool:
    """Whether what is done with a container leaves it as it is; its items may be handed on if they are constants."""
    match parents[id(each)]:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[other]):
            return other is each
        case ast.For(iter=source) | ast.comprehension(iter=source):
            return is_flat and source is each
        case ast.Subscript(value=source, ctx=ast.Load()):
            return is_flat and source is each
        case ast.Attribute(attr=attr) as method:
            caller = parents[id(method)]
            return is_flat and attr in PURE_METHODS and isinstance(caller, ast.Call) and caller.func is method
        case _:
            return False


def _argument_functions(args: type[PluginArgs]) -> Iterator[tuple[str, FunctionType]]:
    for owner in own_bases(args, PluginArgs):
        for name, value in vars(owner).items():
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if isinstance(function, property):
                raise ReadingObstacle(f"the property `{name}` of the arguments is not read")
            if isinstance(function, FunctionType) and not name.startswith("__annotate"):
                yield name, function
