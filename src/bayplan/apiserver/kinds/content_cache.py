"""Results kept by the content of JSON values that recur, such as the spec of pods from one template.

An optimisation only: the key is the encoded value itself, so a hit is exact. Bounded; the oldest
half is evicted when it is full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from bayplan.apiserver.protocol.encoding import JsonValue, encode

Answer = TypeVar("Answer")
_LIMIT = 2048
_MAX_KEY_BYTES = 16 * 1024


class ContentCache(Generic[Answer]):
    """Results by the content of a JSON value."""

    def __init__(self) -> None:
        self._answers: dict[tuple[Hashable, bytes], Answer] = {}

    def get(self, value: JsonValue, about: Hashable, compute: Callable[[], Answer]) -> Answer:
        """The result for a value, computed on a miss; `about` separates different computations on equal values."""
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
