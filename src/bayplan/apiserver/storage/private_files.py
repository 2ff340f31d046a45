"""Files and folders that only their owner can read, whatever stood there before."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def make_private_folder(path: Path) -> None:
    """Make a folder, with its parents, and close it to others; one that is meant to be shared (/tmp) stays open."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.stat().st_mode & stat.S_ISVTX:
        path.chmod(0o700)


def make_private_file(path: Path) -> None:
    """Make a file if it is missing, and close it to others."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file by one that only its owner can read; readers see the old content or the new."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
