"""Authorises requests: some paths are open to everybody, `system:masters` may do everything, and the API server decides
about the rest.

The attributes are the path and the verb (the method in lower case), as in rules about non-resource URLs:

    rules: [{nonResourceURLs: ["/metrics"], verbs: ["get"]}]

Where the options say which pods an answer is about, the user must be allowed to read those as well, as with kubectl.
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
        self._pods_in = options.pods_in
        self._reviews = reviews

    def is_open(self, path: str) -> bool:
        """Whether the path needs no credentials."""
        return path in self._open_paths or (bool(self._open_prefixes) and path.startswith(self._open_prefixes))

    async def refusal_of(self, user: User, *, method: str, path: str, query: str = "") -> str:
        """What the user may not do, in words; empty where everything is allowed. Raises `ReviewUnavailable` when the
        API server does not answer."""
        if MASTERS in user.groups:
            return ""
        verb = method.lower()
        if self._reviews is None or not await self._reviews.may_request(user, verb=verb, path=path):
            return f'cannot {verb} path "{path}"'
        pods = self._pods_in(path, query)
        if pods is None or await self._reviews.may_read(user, pods):
            return ""
        where = f'in the namespace "{pods.namespace}"' if pods.namespace else "at the cluster scope"
        return f'cannot {pods.verb} resource "pods" in API group "" {where}'
