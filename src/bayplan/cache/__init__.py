"""WRITER: the only mutator of the cluster's columns. Assumed pods live here."""

from bayplan.cache.cache import Cache

__all__ = ["Cache"]
