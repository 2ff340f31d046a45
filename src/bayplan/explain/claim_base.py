"""What all claims have in common: each is frozen, tagged data about one pod."""

from __future__ import annotations

import msgspec

__all__ = ["ClaimAboutPod"]


class ClaimAboutPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="claim"):
    pod: str
