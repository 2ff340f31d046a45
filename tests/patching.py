"""What an API server makes of a patch: the embedded one's rules, on documents and without a server."""

from __future__ import annotations

import copy
from typing import Any

from bayplan.apiserver.kinds.type_table import builtin_types
from bayplan.apiserver.objects.strategic_merge import strategic_merge

__all__ = ["merged"]


def merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The pod or node with a strategic merge patch applied."""
    declared = builtin_types()[f"core.v1.{document['kind']}"]
    return strategic_merge(copy.deepcopy(document), copy.deepcopy(patch), declared)
