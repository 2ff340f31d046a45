"""What all claims have in common: each is frozen, tagged data. And edits, which some of them are about."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = ["ClaimAboutPod", "Edit", "JsonObject", "TypedClaim"]

JsonObject = dict[str, Any]


class TypedClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="claim"):
    """About a cluster, a node or a pod; the tag tells the kinds apart on the wire."""


class ClaimAboutPod(TypedClaim, frozen=True):
    pod: str


class Edit(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """`patchPod` is about a pending pod; `name` is `namespace/name` for pods."""

    kind: Literal[
        "patchPod",
        "patchNode",
        "deletePod",
        "addPod",
        "addNode",
        "removeNode",
        "create",
        "patchClaim",
        "releaseClaim",
        "patch",
    ]
    name: str
    patch: JsonObject = {}
    object: JsonObject = {}
    """For `addNode`: the whole node. For `patch`, which is of any other object: its apiVersion and kind."""
    like: str = ""
    """For `create`: an object of the kind that the new one is a copy of. For `addNode`: a node whose pods of DaemonSets
    and of its kubelet run on the new one as well."""
