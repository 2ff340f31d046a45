"""A fingerprint of the pods on a node: the agent on the node and the scheduler agree when theirs are the same."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from bayplan.plugins.community.xxh64 import xxh64

__all__ = ["fingerprint"]

_PREFIX, _VERSION = "pfp0", "v001"


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """Of (namespace, name) pairs, in any order."""
    hashes = sorted(xxh64(name.encode(), xxh64(namespace.encode())) for namespace, name in pods)
    return f"{_PREFIX}{_VERSION}{xxh64(struct.pack(f'<{len(hashes)}Q', *hashes)):016x}"
