"""Random expressions over a random device: mostly well typed, sometimes dynamic, now and then wrong.

The grammar (`grammar.txt`) is a table from types to ways of making them; a way names the types of its parts. The same
seed gives the same expressions.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["Generator"]

_STRINGS = [
    "",
    "a",
    "abc",
    "fish",
    "a.b.c",
    "Ünï",
    "x-1",
    "10",
    "1.5",
    "true",
    "dra.example.com",
    "a,b,,c",
    "日本",
    "1Gi",
    "%",
    "\\n",
]
_INTS = [
    "0",
    "1",
    "2",
    "-1",
    "3",
    "7",
    "10",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
]
_UINTS = ["0u", "1u", "2u", "7u", "18446744073709551615u"]
_DOUBLES = ["0.0", "1.0", "-1.5", "0.1", "2.5e10", "1e300", "3.0", "123456.75"]
_BYTES = ["b''", "b'abc'", "b'\\xff\\x00'", "b'ü'"]
_DURATIONS = ["1h", "90s", "-1.5ms", "0s", "2h45m", "1ns"]
_TIMESTAMPS = [
    "2020-01-01T00:00:00Z",
    "2009-02-13T23:31:30.5+02:00",
    "1969-12-31T23:59:59.999Z",
    "9999-12-31T23:59:59Z",
]
_QUANTITIES = [
    "1",
    "1k",
    "1Ki",
    "10Gi",
    "1500m",
    "-2",
    "0.5",
    "1e3",
    "0",
    "100000000000000000000",
    "1n",
    "1.5Gi",
    "12E",
]
_VERSIONS = ["1.0.0", "0.0.1", "1.2.3-rc.1", "1.2.3-rc.1+build", "2.10.0", "1.2.3-alpha", "10.0.0"]
_IPS = ["10.1.2.3", "::1", "192.168.0.1", "fe80::1", "224.0.0.1", "0.0.0.0", "2001:db8::1", "127.0.0.1"]
_CIDRS = ["10.0.0.0/8", "10.1.0.0/16", "::/0", "192.168.0.5/24", "fe80::/10", "10.1.2.3/32"]
_PATTERNS = ["a", "^a.*c$", "[a-c]+", "(a|b)*", "[0-9]+", "^$", "\\\\d+", "b?", ".", "x{2,3}"]
_BAD = {
    "quantity": ["", "x", "1Zi", "1..2", "--1"],
    "semver": ["", "1", "1.2", "v1.0.0", "01.0.0", "1.0.0-01", "1.0.0-", "a.b.c", "1.0"],
    "ip": ["", "1.2.3", "1.2.3.256", "::g", "fe80::1%eth0", "::ffff:1.2.3.4", "x"],
    "cidr": ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/x", "/8"],
}

_WAYS: dict[str, list[str]] = {}
for _line in (Path(__file__).parent / "grammar.txt").read_text(encoding="utf-8").splitlines():
    if _line and not _line.startswith("#"):
        _kind, _, _way = _line.partition(": ")
        _WAYS.setdefault(_kind, []).append(_way)
_LEAVES: dict[str, list[str]] = {
    "bool": ["true", "false", "device.allowMultipleAllocations"],
    "int": _INTS,
    "uint": _UINTS,
    "double": _DOUBLES,
    "string": [json.dumps(text, ensure_ascii=False) for text in _STRINGS] + ["device.driver"],
    "bytes": _BYTES,
    "ints": ["[]", "[1, 2, 3]", "[3, 1, 2, 1]", "[5]"],
    "strings": ["['a', 'b']", "['x', 'fish', 'abc']", "['']"],
    "map": ["{'a': 1}", "{'a': 1, 'b': 2}", "{'fish': 10}"],
    "dyn": [
        "device.attributes['dra.example.com'].name",
        "device.attributes['dra.example.com'].count",
        "dyn(1)",
        "dyn('a')",
        "dyn([1, 2])",
        "dyn(null)",
        "dyn(1.5)",
        "dyn({'a': 1})",
    ],
    "quantity": [f"quantity('{text}')" for text in _QUANTITIES],
    "semver": [f"semver('{text}')" for text in _VERSIONS],
    "ip": [f"ip('{text}')" for text in _IPS],
    "cidr": [f"cidr('{text}')" for text in _CIDRS],
    "duration": [f"duration('{text}')" for text in _DURATIONS],
    "timestamp": [f"timestamp('{text}')" for text in _TIMESTAMPS],
    "optional": ["optional.of(1)", "optional.none()"],
    "type": ["int", "string", "type(1)"],
    "null": ["null"],
}
_ATOMS: dict[str, list[str]] = {
    "cmp": ["<", "<=", ">", ">="],
    "eq": ["==", "!="],
    "field": ["name", "count", "flag", "version", "memory", "a", "b", "missing"],
    "small": ["0", "1", "2", "3", "-1"],
    "pattern": [f"'{pattern}'" for pattern in _PATTERNS],
    "qtext": [f"'{text}'" for text in _QUANTITIES + _BAD["quantity"]],
    "vtext": [f"'{text}'" for text in _VERSIONS + _BAD["semver"]],
    "iptext": [f"'{text}'" for text in _IPS + _BAD["ip"]],
    "ctext": [f"'{text}'" for text in _CIDRS + _BAD["cidr"]],
    "dtext": [f"'{text}'" for text in _DURATIONS],
    "ttext": [f"'{text}'" for text in _TIMESTAMPS],
}
_LISTS = [{"ints": [1, 7]}, {"strings": ["a", "fish"]}, {"bools": [True]}, {"ints": []}]
_VARIABLES = ["x", "y", "z"]


class Generator:
    """Makes requests for the oracle."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def request(self) -> dict[str, Any]:
        """An expression and a device; selectors are booleans, values of any type."""
        mode = self._random.choice(["selector", "value"])
        kind = "bool" if mode == "selector" else self._random.choice(list(_WAYS))
        expression = self._make(kind, self._random.randint(1, 5), {})
        if self._random.random() < 0.02:
            expression = self._broken(expression)
        device = self._device()
        lists = self._random.random() < 0.3
        if lists and self._random.random() < 0.7:
            device["attributes"]["list"] = self._random.choice(_LISTS)
        return {"expression": expression, "mode": mode, "lists": lists, "device": device}

    def _make(self, kind: str, depth: int, scope: dict[str, str]) -> str:
        random = self._random
        if kind == "any":
            kind = random.choice(list(_WAYS))
        if random.random() < 0.015:
            kind = random.choice(list(_WAYS))
        names = [name for name, of in scope.items() if of == kind or of == "dyn"]
        if names and random.random() < 0.4:
            return random.choice(names)
        if depth <= 0 or random.random() < 0.1:
            return random.choice(_LEAVES[kind])
        return self._fill(random.choice(_WAYS[kind]), depth - 1, scope)

    def _fill(self, way: str, depth: int, scope: dict[str, str]) -> str:
        """The way with its holes filled; variables that it declares are in scope to the right of them."""
        pieces: list[str] = []
        inner = dict(scope)
        position = 0
        target = ""
        while position < len(way):
            if way.startswith("{{", position) or way.startswith("}}", position):
                pieces.append(way[position])
                position += 2
            elif way[position] == "{":
                end = way.index("}", position)
                hole = way[position + 1 : end]
                if hole == "var":
                    name = self._variable(pieces, inner)
                    inner[name] = self._element(target, "".join(pieces))
                    pieces.append(name)
                else:
                    target = target or hole
                    pieces.append(self._hole(hole, depth, inner))
                position = end + 1
            else:
                pieces.append(way[position])
                position += 1
        return "".join(pieces)

    def _variable(self, pieces: list[str], scope: dict[str, str]) -> str:
        taken = set(pieces)
        free = [name for name in _VARIABLES if name not in taken]
        return self._random.choice(free or _VARIABLES)

    def _element(self, target: str, before: str) -> str:
        if before.startswith("cel.bind"):
            return "dyn"
        return {"ints": "int", "strings": "string", "map": "string", "optional": "int"}.get(target, "string")

    def _hole(self, hole: str, depth: int, scope: dict[str, str]) -> str:
        if hole in _ATOMS:
            return self._random.choice(_ATOMS[hole])
        text = self._make(hole, depth, scope)
        return f"({text})" if _needs_brackets(text) else text

    def _broken(self, expression: str) -> str:
        position = self._random.randrange(len(expression))
        return (
            expression[:position] + self._random.choice(["", "(", ")", " foo ", "1", "."]) + expression[position + 1 :]
        )

    def _device(self) -> dict[str, Any]:
        random = self._random
        attributes: dict[str, Any] = {}
        if random.random() < 0.8:
            attributes["name"] = {"string": random.choice(_STRINGS)}
        if random.random() < 0.7:
            attributes["count"] = {"int": random.choice([0, 1, 7, -3])}
        if random.random() < 0.5:
            attributes["flag"] = {"bool": random.random() < 0.5}
        if random.random() < 0.5:
            attributes["version"] = {"version": random.choice(_VERSIONS)}
        if random.random() < 0.3:
            attributes["other.example.com/name"] = {"string": "fish"}
        capacity = {"memory": random.choice(_QUANTITIES)} if random.random() < 0.7 else {}
        return {
            "driver": "dra.example.com",
            "allowMultipleAllocations": random.random() < 0.3,
            "attributes": attributes,
            "capacity": capacity,
        }


def _needs_brackets(text: str) -> bool:
    return any(sign in text for sign in (" ", "-", "?")) and not (
        text[0] in "\"'[" and text[-1] in "\"']" and " " not in text
    )
