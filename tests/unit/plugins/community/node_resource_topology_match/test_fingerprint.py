"""XXH64 and the fingerprint of pods, against published values."""

from __future__ import annotations

import pytest

from bayplan.plugins.community.node_resource_topology_match.fingerprint import fingerprint, xxh64


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_is_the_published_one(data: bytes, digest: int) -> None:
    assert xxh64(data) == digest


def test_a_seed_changes_the_hash() -> None:
    assert len({xxh64(b"abc", seed) for seed in range(4)}) == 4


def test_the_fingerprint_does_not_depend_on_the_order() -> None:
    pods = [("ns1", "n1"), ("ns1", "n2"), ("ns2", "n1"), ("ns3", "n1"), ("ns3", "n2")]

    assert fingerprint(pods) == "pfp0v001b92008c14168b3a6"
    assert fingerprint(reversed(pods)) == fingerprint(pods)
    assert fingerprint([]) == "pfp0v001ef46db3751d8e999"
