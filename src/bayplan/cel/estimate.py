"""The most that an expression can cost, from its text and the declared sizes of its variables.

Kubernetes refuses expressions whose estimate is above its limit when they are created, so the estimate is part of the
API. A size is known exactly for literals, by path for what variables lead to, by its parts for what is put together.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.cel.call_estimates import estimate_call
from bayplan.cel.cost import LIST_COST, MAP_COST, READ_COST, STRING_FACTOR, STRUCT_COST
from bayplan.cel.sizes import ANY_SIZE, NOTHING, ONE, UNBOUNDED, Range, SizeNode, Sizes, is_scalar, known_size
from bayplan.cel.syntax import (
    Call,
    Expression,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from bayplan.cel.types import TypeKind

__all__ = ["estimate_cost"]


@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of the keys and values of a list or map."""

    kind: TypeKind
    key: Range
    value: Range

    def union(self, other: _Entries) -> _Entries:
        return _Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    """What is known of a name that a loop or binding declares."""

    path: tuple[str, ...]
    size: Range | None
    entries: _Entries | None


def estimate_cost(expression: Expression, sizes: Sizes) -> int:
    """The most that evaluating a checked expression can cost."""
    return _Estimator(sizes).cost(expression).most


class _Estimator:
    """Walks the parts of an expression, remembering the sizes and paths of those it has seen."""

    def __init__(self, sizes: Sizes) -> None:
        self._declared = sizes
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self._paths: dict[int, tuple[str, ...]] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, part: Expression) -> Range:
        match part:
            case Ident():
                local = self._local(part)
                self._paths[id(part)] = (part.name,) if local is None else local.path
                return ONE
            case Select():
                return self._select(part)
            case Call():
                return self._call(part)
            case ListLiteral():
                return self._list(part)
            case MapLiteral():
                return self._map(part)
            case StructLiteral():
                return sum((self.cost(value) for _, value in part.fields), Range(STRUCT_COST, STRUCT_COST))
            case Fold():
                return self._binding(part) if part.is_binding else self._fold(part)
        return NOTHING

    def _select(self, part: Select) -> Range:
        if part.variable is not None:
            return self.cost(part.variable)
        cost = self.cost(part.operand)
        if part.is_test:
            return cost
        if part.operand.type.kind in (TypeKind.MAP, TypeKind.STRUCT, TypeKind.PARAMETER):
            cost += Range(READ_COST, READ_COST)
        self._paths[id(part)] = (*self.path(part.operand), part.name)
        return cost

    def _call(self, part: Call) -> Range:
        if part.function == "dyn":
            cost = self.cost(part.arguments[0]) + ONE
            self._copy_sizes(part, part.arguments[0])
            return cost
        costs = [self.cost(argument) for argument in part.arguments]
        nodes = [self._node(argument) for argument in part.arguments]
        total, target = NOTHING, None
        if part.target is not None:
            total = self.cost(part.target)
            target = self._node(part.target)
        own = Range(UNBOUNDED, 0)
        result: Range | None = None
        for overload_id in part.overloads:
            call_cost, call_size = self._call_of(part, overload_id, target, nodes, costs)
            own = own.union(call_cost)
            if call_size is not None:
                result = call_size if result is None else result.union(call_size)
            result = self._indexed(part, overload_id, result)
            if result is None:
                result = self.size(part)
        if not part.overloads:
            return NOTHING
        if result is not None:
            self._sizes[id(part)] = result
        return total + own

    def _indexed(self, part: Call, overload_id: str, result: Range | None) -> Range | None:
        """An index leads to an element, whose size may be known."""
        step = {"index_list": "@items", "index_map": "@values"}.get(overload_id)
        if step is None:
            return result
        entries = self.entries(part.arguments[0])
        self._paths[id(part)] = (*self.path(part.arguments[0]), step)
        return None if entries is None else entries.value

    def _call_of(
        self, part: Call, overload_id: str, target: SizeNode | None, nodes: list[SizeNode], costs: list[Range]
    ) -> tuple[Range, Range | None]:
        arguments = sum(costs, NOTHING)
        known = estimate_call(self._declared, part.function, overload_id, target, nodes)
        if known is not None:
            return known[0] + arguments, known[1]
        match overload_id:
            case "logical_or" | "logical_and":
                return Range(costs[0].least, (costs[0] + costs[1]).most), None
            case "conditional":
                return self._conditional(part, nodes, costs)
            case "add_string" | "add_bytes" | "add_list":
                size = known_size(nodes[0]) + known_size(nodes[1])
                self._join_entries(part, part.arguments[0], part.arguments[1])
                own = ONE if overload_id == "add_list" else size.scaled(STRING_FACTOR)
                return own + arguments, size
        return ONE + arguments, None

    def _conditional(self, part: Call, nodes: list[SizeNode], costs: list[Range]) -> tuple[Range, Range | None]:
        self._join_entries(part, part.arguments[1], part.arguments[2])
        size = known_size(nodes[1]).union(known_size(nodes[2]))
        return costs[0] + costs[1].union(costs[2]), size

    def _join_entries(self, part: Expression, first: Expression, second: Expression) -> None:
        one, other = self.entries(first), self.entries(second)
        if one is not None and other is not None:
            self._entries[id(part)] = one.union(other)

    def _list(self, part: ListLiteral) -> Range:
        cost, size = NOTHING, Range(UNBOUNDED if part.elements else 0, 0)
        for element in part.elements:
            cost += self.cost(element)
            size = size.union(self.size_or_any(element))
        self._entries[id(part)] = _Entries(TypeKind.LIST, ONE, size)
        return cost + Range(LIST_COST, LIST_COST)

    def _map(self, part: MapLiteral) -> Range:
        cost = NOTHING
        key = value = Range(UNBOUNDED if part.entries else 0, 0)
        for entry in part.entries:
            cost += self.cost(entry.key) + self.cost(entry.value)
            key, value = key.union(self.size_or_any(entry.key)), value.union(self.size_or_any(entry.value))
        self._entries[id(part)] = _Entries(TypeKind.MAP, key, value)
        return cost + Range(MAP_COST, MAP_COST)

    def _fold(self, part: Fold) -> Range:
        cost = self.cost(part.range) + self.cost(part.initial)
        self._push(part.accumulator, self._bound(part.initial))
        names = self._push_variables(part)
        each = self.cost(part.condition) + self.cost(part.step)
        for name in names:
            self._locals[name].pop()
        cost += self.cost(part.result)
        self._locals[part.accumulator].pop()
        count = self.size_or_any(part.range)
        self._size_fold(part, count)
        return cost + count * each

    def _size_fold(self, part: Fold, count: Range) -> None:
        if isinstance(part.initial, Literal):
            size = self.size(part.initial)
            if size is not None:
                self._sizes[id(part)] = size
        elif isinstance(part.initial, ListLiteral | MapLiteral):
            self._sizes[id(part)] = count
            entries = self.entries(part.step)
            if entries is not None:
                self._entries[id(part)] = entries

    def _push_variables(self, part: Fold) -> list[str]:
        entries = self.entries(part.range)
        path = self.path(part.range)
        kind = part.range.type.kind if entries is None else entries.kind
        is_list = kind is TypeKind.LIST
        key, value = (None, None) if entries is None else (entries.key, entries.value)
        of_key = _Local((*path, "@indices" if is_list else "@keys"), key, None)
        of_value = _Local((*path, "@items" if is_list else "@values"), value, None)
        if part.second_variable is not None:
            self._push(part.variable, of_key)
            self._push(part.second_variable, of_value)
            return [part.variable, part.second_variable]
        self._push(part.variable, of_value if is_list else of_key)
        return [part.variable]

    def _binding(self, part: Fold) -> Range:
        cost = self.cost(part.range) + self.cost(part.initial)
        self._push(part.accumulator, self._bound(part.initial))
        cost += self.cost(part.result)
        self._locals[part.accumulator].pop()
        self._copy_sizes(part, part.result)
        return cost

    def _bound(self, part: Expression) -> _Local:
        return _Local(self.path(part), self.size(part), self.entries(part))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _local(self, part: Expression) -> _Local | None:
        found = self._locals.get(part.name) if isinstance(part, Ident) else None
        return found[-1] if found else None

    def _copy_sizes(self, part: Expression, other: Expression) -> None:
        size, entries = self.size(other), self.entries(other)
        if size is not None:
            self._sizes[id(part)] = size
        if entries is not None:
            self._entries[id(part)] = entries

    def _node(self, part: Expression) -> SizeNode:
        path = self.path(part)
        if path and path[0] in ("@result", "__result__"):
            path = ()
        return SizeNode(part, part.type, path, self.size(part))

    def path(self, part: Expression) -> tuple[str, ...]:
        local = self._local(part)
        return self._paths.get(id(part), ()) if local is None else local.path

    def size(self, part: Expression) -> Range | None:
        """What is known of the size: of literals and results of calls exactly, of others by path or type."""
        if id(part) in self._sizes:
            return self._sizes[id(part)]
        exact = _literal_size(part)
        if exact is not None:
            return Range(exact, exact)
        declared = self._declared.of(self.path(part))
        if declared is not None:
            self._sizes[id(part)] = declared
            return declared
        if is_scalar(part.type):
            return ONE
        local = self._local(part)
        return None if local is None else local.size

    def size_or_any(self, part: Expression) -> Range:
        size = self.size(part)
        return ANY_SIZE if size is None else size

    def entries(self, part: Expression) -> _Entries | None:
        if id(part) in self._entries:
            return self._entries[id(part)]
        local = self._local(part)
        return None if local is None else local.entries


def _literal_size(part: Expression) -> int | None:
    match part:
        case Literal():
            return len(part.value) if isinstance(part.value, str | bytes) else 1
        case ListLiteral():
            return len(part.elements)
        case MapLiteral():
            return len(part.entries)
    return None
