"""What all claims have in common: each is frozen, tagged data."""

from __future__ import annotations

import msgspec

__all__ = ["ClaimAboutPod", "TypedClaim"]


class TypedClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="claim"):
    """About a cluster, a node or a pod; the tag tells the kinds apart on the wire."""


class ClaimAboutPod(TypedClaim, frozen=True):
    pod: str
