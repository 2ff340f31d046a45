"""Image names, in the form in which nodes report them."""

from __future__ import annotations

__all__ = ["normalized_image_name"]


def normalized_image_name(name: str) -> str:
    """Append `:latest` to a name without a tag; a colon before the last slash is a registry port, not a tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
