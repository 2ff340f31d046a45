"""Memory that was freed goes back to the machine: the C library would keep it for what may come.

After thousands of large objects have come and gone, a process would stay as large as it ever was. Where the library is
not glibc, nothing is done.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

__all__ = ["FreedMemory"]

_WORTH_IT = 4 << 20


class _Mallinfo(ctypes.Structure):
    _fields_ = [("before", ctypes.c_size_t * 8), ("fordblks", ctypes.c_size_t), ("keepcost", ctypes.c_size_t)]


class FreedMemory:
    def __init__(self) -> None:
        found = _functions()
        self._free_bytes, self._trim = found if found is not None else (lambda: 0, lambda: None)
        self._left = 0
        """Free bytes after the last time: gaps between objects cannot all be given back."""

    def give_back(self) -> bool:
        """Whether there was enough to be worth the time, some milliseconds."""
        free = self._free_bytes()
        self._left = min(self._left, free)
        if free < self._left + _WORTH_IT:
            return False
        self._trim()
        self._left = self._free_bytes()
        return True


def _functions() -> tuple[Callable[[], int], Callable[[], object]] | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    try:
        mallinfo, trim = library.mallinfo2, library.malloc_trim
    except AttributeError:
        return None
    mallinfo.restype = _Mallinfo
    return lambda: int(mallinfo().fordblks), lambda: trim(ctypes.c_size_t(0))
