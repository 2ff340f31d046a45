"""WRITER: the only mutator of the snapshot's columns. Assumed pods live here."""

from bayplan.cache.cache import Cache

__all__ = ["Cache"]
