"""An exception in words, for logs, records and conditions.

An exception may have no text, and the text of one that a plugin defines may itself fail. Both are described here by
their type; tracebacks are the business of the log.
"""

from __future__ import annotations

__all__ = ["described"]


def described(exception: BaseException) -> str:
    """Type and text; the type alone where there is no text, or none can be had."""
    kind = type(exception).__name__
    try:
        text = str(exception)
    except Exception:
        return kind
    return f"{kind}: {text}" if text else kind
