"""Authorises requests: some paths are open to everybody, `system:masters` may do everything, and the API server decides
about the rest.

The attributes are the path and the verb (the method in lower case), as in rules about non-resource URLs:

    rules: [{nonResourceURLs: ["/metrics"], verbs: ["get"]}]
"""

from __future__ import annotations

from bayplan.server.options import AuthorizationOptions
from bayplan.server.reviews import AccessReviews
from bayplan.server.users import MASTERS, User

__all__ = ["Authorizer"]


class Authorizer:
    def __init__(self, options: AuthorizationOptions, reviews: AccessReviews | None) -> None:
        self._open_paths = frozenset(path for path in options.always_allow_paths if not path.endswith("*"))
        self._open_prefixes = tuple(path[:-1] for path in options.always_allow_paths if path.endswith("*"))
        self._reviews = reviews

    def is_open(self, path: str) -> bool:
        """Whether the path needs no credentials."""
        return path in self._open_paths or (bool(self._open_prefixes) and path.startswith(self._open_prefixes))

    async def is_allowed(self, user: User, *, method: str, path: str) -> bool:
        """Raises `ReviewUnavailable` when the API server does not answer."""
        if MASTERS in user.groups:
            return True
        if self._reviews is None:
            return False
        return await self._reviews.is_allowed(user, verb=method.lower(), path=path)
