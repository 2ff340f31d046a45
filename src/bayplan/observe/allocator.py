"""The C library's allocator, told to keep large blocks apart.

Every TLS connection has a buffer of 256 KiB. glibc puts such blocks among the small ones once it has seen a few go, and
connections that come and go then leave holes between them: a process under steady load grows by megabytes an hour with
nothing to show for it. With a fixed threshold they get pages of their own, which go back to the system with the
connection. Columns of up to 16,000 nodes stay below the threshold and are as fast as before.
"""

from __future__ import annotations

import ctypes
import platform

__all__ = ["keep_large_blocks_apart"]

_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 256 << 10


def keep_large_blocks_apart() -> bool:
    """Call once, early, in a process that lives long. Whether the C library listens; others need not be told."""
    if platform.libc_ver()[0] != "glibc":
        return False
    return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES))
