"""Remembering answers about values that come again and again, such as the spec of pods from one template.

An optimisation only: the key is the value's own bytes, so a remembered answer is the answer. Bounded; the oldest
half is forgotten when it is full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from bayplan.apiserver.protocol.encoding import encode

Answer = TypeVar("Answer")
_LIMIT = 2048
_MAX_KEY_BYTES = 16 * 1024


class ByContent(Generic[Answer]):
    """Answers by the content of a JSON value."""

    def __init__(self) -> None:
        self._answers: dict[tuple[Hashable, bytes], Answer] = {}

    def get(self, value: Any, about: Hashable, compute: Callable[[], Answer]) -> Answer:
        """The answer for a value; `about` tells apart questions that are asked of equal values."""
        content = encode(value)
        if len(content) > _MAX_KEY_BYTES:
            return compute()
        key = (about, content)
        found = self._answers.get(key)
        if found is None:
            found = compute()
            if len(self._answers) >= _LIMIT:
                for old in list(self._answers)[: _LIMIT // 2]:
                    del self._answers[old]
            self._answers[key] = found
        return found
