"""Fingerprints of the pods on a node, and XXH64, the hash that they are made of.

XXH64 is a published algorithm with published constants; it is written out here for short texts because it is a page
long and nothing else needs it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["fingerprint", "xxh64"]

_PREFIX, _VERSION = "pfp0", "v001"


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """Of (namespace, name) pairs, in any order."""
    hashes = sorted(xxh64(name.encode(), xxh64(namespace.encode())) for namespace, name in pods)
    return f"{_PREFIX}{_VERSION}{xxh64(struct.pack(f'<{len(hashes)}Q', *hashes)):016x}"


_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_ALL = 0xFFFFFFFFFFFFFFFF


def xxh64(data: bytes, seed: int = 0) -> int:
    length = len(data)
    stripes = length // 32 if length >= 32 else 0
    total = _long_start(data, stripes, seed) if stripes else (seed + _P5) & _ALL
    total = (total + length) & _ALL
    return _avalanche(_tail(data[stripes * 32 :], total))


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _ALL


def _round(lane: int, value: int) -> int:
    return _rotated((lane + value * _P2) & _ALL, 31) * _P1 & _ALL


def _long_start(data: bytes, stripes: int, seed: int) -> int:
    lanes = [(seed + _P1 + _P2) & _ALL, (seed + _P2) & _ALL, seed & _ALL, (seed - _P1) & _ALL]
    for values in struct.iter_unpack("<4Q", data[: stripes * 32]):
        lanes = [_round(lane, value) for lane, value in zip(lanes, values, strict=True)]
    total = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _ALL
    for lane in lanes:
        total = ((total ^ _round(0, lane)) * _P1 + _P4) & _ALL
    return total


def _tail(rest: bytes, total: int) -> int:
    while len(rest) >= 8:
        total = (_rotated(total ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * _P1 + _P4) & _ALL
        rest = rest[8:]
    if len(rest) >= 4:
        total = (_rotated(total ^ (int.from_bytes(rest[:4], "little") * _P1 & _ALL), 23) * _P2 + _P3) & _ALL
        rest = rest[4:]
    for byte in rest:
        total = _rotated(total ^ (byte * _P5 & _ALL), 11) * _P1 & _ALL
    return total


def _avalanche(total: int) -> int:
    total = (total ^ (total >> 33)) * _P2 & _ALL
    total = (total ^ (total >> 29)) * _P3 & _ALL
    return total ^ (total >> 32)
