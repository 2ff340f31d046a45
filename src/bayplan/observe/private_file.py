"""A private file with given content, for C libraries that take only file names."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

__all__ = ["private_file"]


@contextlib.contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """A path to the content, valid inside the block. In memory where the system can, else a file of mode 0600."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("bayplan")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile(prefix="bayplan-") as named:
            named.write(content)
            named.flush()
            yield named.name
