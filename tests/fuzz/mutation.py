"""Inputs that are close to good ones: bytes with pieces changed, documents with values replaced."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

_BYTES = [
    b"",
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"'",
    b":",
    b",",
    b"-",
    b"\n",
    b"\r\n",
    b"\\",
    b"\t",
    b"%",
]
_BYTES += [b"&a", b"*a", b"!!python/object:os.system", b"<<: *a", b"0x", b"1e999", b"Ki", b"9" * 40, b"null", b"~"]
_BYTES += ["日\ud7ff".encode(), b"\xed\xa0\x80", b"--- ", b"in (", b"!=", b"chunked", b"Content-Length: 5\r\n"]
_VALUES: list[Any] = [None, True, False, 0, -1, 2**63, 2**63 - 1, 1e308, float("inf"), "", " ", "a" * 300, "\x00", "日"]
_VALUES += [[], {}, [[]], [{}], {"": ""}, "../..", "1Ki", "-1", "0x10", "1e9", "{}", [None], {"a": None}, "(a+)+$"]


def mutated_bytes(content: bytes, random: Random) -> bytes:
    for _ in range(random.choice([1, 1, 2, 4, 16])):
        position = random.randrange(len(content) + 1)
        removed = random.choice([0, 0, 1, 2, 8, 64])
        added = random.choice(_BYTES) if random.random() < 0.8 else bytes([random.randrange(256)])
        if random.random() < 0.1 and content:
            start = random.randrange(len(content))
            added = content[start : start + random.randrange(1, 80)] * random.choice([1, 2, 10])
        content = content[:position] + added + content[position + removed :]
    return content


def mutated_text(content: str, random: Random) -> str:
    return mutated_bytes(content.encode(), random).decode(
        "utf-8", "surrogateescape" if random.random() < 0.1 else "replace"
    )


def mutated_document(document: Any, random: Random) -> Any:
    """A copy with some values replaced, added, or taken away, at any depth."""
    made = copy.deepcopy(document)
    for _ in range(random.choice([1, 1, 2, 4])):
        made = _changed(made, random)
    return made


def _changed(value: Any, random: Random) -> Any:
    if random.random() < 0.25 or not isinstance(value, dict | list) or not value:
        return copy.deepcopy(random.choice(_VALUES))
    if isinstance(value, list):
        place = random.randrange(len(value))
        if random.random() < 0.2:
            return value + [value[place]] * random.choice([1, 3])
        value[place] = _changed(value[place], random)
        return value
    key = random.choice(list(value))
    fate = random.random()
    if fate < 0.1:
        del value[key]
    elif fate < 0.2:
        value[random.choice(["", "x", "kind", "metadata", "spec", "name", "$ref", "\x00", "a" * 300])] = value[key]
    else:
        value[key] = _changed(value[key], random)
    return value
