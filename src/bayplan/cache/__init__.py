"""The cache: the only writer of the cluster's columns, and the owner of assumed pods."""

from bayplan.cache.cache import Cache

__all__ = ["Cache"]
