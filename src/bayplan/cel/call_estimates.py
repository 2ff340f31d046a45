"""Estimates of single calls: how the cost and the size of the result follow from the sizes of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from bayplan.cel.cost import LIST_COST, PATTERN_FACTOR, SORTABLE, STRING_FACTOR
from bayplan.cel.sizes import ONE, UNBOUNDED, Range, SizeNode, Sizes, element, known_size, node_size
from bayplan.cel.syntax import Literal
from bayplan.cel.types import TypeKind

__all__ = ["estimate_call"]

Estimate = tuple[Range, Range | None]
"""A cost, and the size of the result if it is known."""
Rule = Callable[[Sizes, SizeNode | None, Sequence[SizeNode]], Estimate | None]

_FORMAT_SIZE = 128
_LARGEST_FORMAT_NAME = 64


def estimate_call(
    sizes: Sizes, function: str, overload_id: str, target: SizeNode | None, arguments: Sequence[SizeNode]
) -> Estimate | None:
    """The estimate of a call, or nothing where the call costs one unit or is an operator with rules of its own."""
    if overload_id in sizes.calls:
        return Range(0, sizes.calls[overload_id]), None
    rule = _BY_OVERLOAD_FIRST.get(overload_id)
    if rule is not None:
        known = rule(sizes, target, arguments)
        if known is not None:
            return known
    if function == "ip":
        return (ONE, None) if overload_id == "cidr_ip" else _parsed(sizes, target, arguments)
    if function in ("containsIP", "containsCIDR"):
        return _network(sizes, function, overload_id, arguments)
    if function == "_==_":
        known = _special_equality(arguments)
        if known is not None:
            return known
    rule = _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(overload_id)
    return None if rule is None else rule(sizes, target, arguments)


def _fixed(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    return ONE, None


def _visited(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    """One unit for each element, and the text of elements that are texts."""
    if target is None:
        return None
    size = node_size(sizes, target)
    inner = element(target)
    if inner is None:
        return size.scaled(STRING_FACTOR), None
    each = ONE
    if inner.type.kind in (TypeKind.STRING, TypeKind.BYTES):
        each += node_size(sizes, inner).scaled(STRING_FACTOR)
    return size * each, None


def _parsed(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if not arguments:
        return None
    return node_size(sizes, arguments[0]).scaled(STRING_FACTOR), None


def _url(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    size = node_size(sizes, arguments[0])
    return size.scaled(STRING_FACTOR), size


def _parsed_twice(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    return node_size(sizes, arguments[0]).scaled(2 * STRING_FACTOR), None


def _text(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    size = node_size(sizes, target)
    return size.scaled(STRING_FACTOR), size


def _split(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    size = node_size(sizes, target)
    most = size.most
    if len(arguments) > 1:
        limit = arguments[1].part
        if isinstance(limit, Literal) and limit.value.__class__ is int:
            most = int(str(limit.value)) % 2**64
    return size.scaled(2 * STRING_FACTOR), Range(0, most)


def _replace(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None or len(arguments) < 2:
        return None
    size, old, new = (node_size(sizes, node) for node in (target, arguments[0], arguments[1]))
    most_kept = least_kept = most_count = least_count = 0
    if old.least == 0:
        most_count, most_kept = min(size.most + 1, UNBOUNDED), size.most
    elif new.most <= old.least:
        most_kept = size.most
    else:
        most_count = min(ceil(float(size.most) / float(old.least)), UNBOUNDED)
    if old.most == 0:
        least_count, least_kept = min(size.least + 1, UNBOUNDED), size.least
    elif old.most <= new.least:
        least_kept = size.least
    else:
        least_count = ceil(float(size.least) / float(old.most))
    result = Range(least_count, most_count) * new + Range(least_kept, most_kept)
    return size.scaled(2 * STRING_FACTOR), result


def _join(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    count = node_size(sizes, target)
    inner = element(target)
    size = Range(0, 0) if inner is None else count * node_size(sizes, inner)
    if arguments:
        between = Range(max(count.least - 1, 0), max(count.most - 1, 0))
        size += node_size(sizes, arguments[0]) * between
    return size.scaled(STRING_FACTOR), size


def _searched(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None or not arguments:
        return None
    size = node_size(sizes, target)
    cost = (size + ONE).scaled(STRING_FACTOR) * node_size(sizes, arguments[0]).scaled(PATTERN_FACTOR)
    return cost, Range(0, size.most)


def _validated(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    size = node_size(sizes, arguments[0])
    return size.scaled(STRING_FACTOR).scaled(_FORMAT_SIZE * PATTERN_FACTOR), None


def _network(sizes: Sizes, function: str, overload_id: str, arguments: Sequence[SizeNode]) -> Estimate:
    size = Range(4, 16)
    cost = (size + size).scaled(STRING_FACTOR)
    if function == "containsCIDR":
        cost += size.scaled(STRING_FACTOR) + ONE
    if overload_id in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
        cost += node_size(sizes, arguments[0]).scaled(STRING_FACTOR)
    return cost, None


def _special_equality(arguments: Sequence[SizeNode]) -> Estimate | None:
    left, right = arguments[0].type, arguments[1].type
    if left != right:
        return None
    if left.name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
        return ONE, None
    if left.name == "kubernetes.NamedFormat":
        return Range(1, _LARGEST_FORMAT_NAME).scaled(STRING_FACTOR), None
    if left.name == "kubernetes.URL":
        size = arguments[1].size or ONE
        return Range(1, size.most).scaled(STRING_FACTOR), None
    return None


def _to_bytes(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    size = known_size(arguments[0])
    return size.scaled(STRING_FACTOR), Range(size.least, size.most * 4 % 2**64)


def _from_bytes(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    size = known_size(arguments[0])
    return size.scaled(STRING_FACTOR), Range(size.least // 4, size.most)


def _quote(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    size = known_size(arguments[0])
    return size.scaled(STRING_FACTOR), Range((size.least + 2) % 2**64, (size.most * 2 + 2) % 2**64)


def _format(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    return None if target is None else (known_size(target).scaled(STRING_FACTOR), None)


def _prefix(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    return known_size(arguments[0]).scaled(STRING_FACTOR), None


def _in_list(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    return known_size(arguments[1]).scaled(1), None


def _matches(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    text = (known_size(target) + ONE).scaled(STRING_FACTOR)
    return text * known_size(arguments[0]).scaled(PATTERN_FACTOR), None


def _contains(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    text = known_size(target).scaled(STRING_FACTOR)
    return text * known_size(arguments[0]).scaled(STRING_FACTOR), None


def _compared(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    most = min(known_size(arguments[0]).most, known_size(arguments[1]).most)
    return Range(1 if most > 0 else 0, most).scaled(STRING_FACTOR), None


def _sets(factor: int) -> Rule:
    def rule(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
        product = node_size(sizes, arguments[0]) * node_size(sizes, arguments[1])
        return product.scaled(factor) + ONE, None

    return rule


def _new_list(factor: float, size: Range) -> Estimate:
    return size.scaled(factor) + ONE + Range(LIST_COST, LIST_COST), size


def _whole(node: SizeNode, otherwise: int) -> int:
    part = node.part
    if isinstance(part, Literal) and part.value.__class__ is int:
        return max(int(str(part.value)), 0)
    return otherwise


def _slice(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    size = node_size(sizes, target)
    count = (_whole(arguments[1], size.most) - _whole(arguments[0], 0)) % 2**64
    return _new_list(1, Range(count, count))


def _flatten(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    depth = _whole(arguments[0], UNBOUNDED) if arguments else 1
    return _new_list(float(depth), node_size(sizes, target))


def _range(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    count = _whole(arguments[0], UNBOUNDED)
    return _new_list(1, Range(count, count))


def _reverse(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    return None if target is None else _new_list(1, node_size(sizes, target))


def _distinct(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
    if target is None:
        return None
    size = node_size(sizes, target)
    return _new_list(2.0, size * size)


def _sorted(name: str, *, by_keys: bool) -> Rule:
    factor = 2.0 + (STRING_FACTOR if name in ("string", "bytes") else 0)

    def rule(sizes: Sizes, target: SizeNode | None, arguments: Sequence[SizeNode]) -> Estimate | None:
        node = arguments[0] if by_keys else target
        if node is None:
            return None
        size = node_size(sizes, node)
        return _new_list(factor, size * size)

    return rule


_BY_OVERLOAD_FIRST: dict[str, Rule] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
}
_BY_OVERLOAD_FIRST |= {f"list_{name}_sort": _sorted(name, by_keys=False) for name in SORTABLE}
_BY_OVERLOAD_FIRST |= {f"list_{name}_sortByAssociatedKeys": _sorted(name, by_keys=True) for name in SORTABLE}

_BY_FUNCTION: Mapping[str, Rule] = (
    dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _visited)
    | dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _text)
    | dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parsed)
    | dict.fromkeys(("find", "findAll"), _searched)
    | {"url": _url, "jsonpatch.escapeKey": _url, "replace": _replace, "split": _split, "join": _join}
    | {"ip.isCanonical": _parsed_twice, "validate": _validated}
)

_ORDERED = ("less", "greater", "less_equals", "greater_equals")
_BY_OVERLOAD: Mapping[str, Rule] = (
    dict.fromkeys((f"{order}_{name}" for order in _ORDERED for name in ("string", "bytes")), _compared)
    | dict.fromkeys(("starts_with_string", "ends_with_string"), _prefix)
    | {"equals": _compared, "not_equals": _compared, "in_list": _in_list}
    | {"string_to_bytes": _to_bytes, "bytes_to_string": _from_bytes, "strings_quote": _quote}
    | {"string_format": _format, "matches_string": _matches, "contains_string": _contains}
)
