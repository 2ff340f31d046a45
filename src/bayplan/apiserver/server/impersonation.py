"""Impersonation: whoever may, asks as somebody else (`kubectl --as`, `--as-group`, `--as-uid`).

The request is then authorised, admitted and recorded as that user's. Each part of the identity needs the verb
`impersonate` on a resource of its own, as in kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.identity import ANONYMOUS, ApiUser, service_account_user
from bayplan.apiserver.server.authorization import ApiAuthorizer, Attributes

__all__ = ["REPEATED", "impersonated"]

_PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_AUTHENTICATED = "system:authenticated"
_AUTHENTICATION = "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"
REPEATED = "\n"
"""Between the values of an impersonation header that is there several times; no value can contain it."""


def impersonated(user: ApiUser, headers: Mapping[str, str], authorizer: ApiAuthorizer) -> ApiUser:
    """Who a request is answered as: the user, or whom it impersonates. Raises 403 where the user may not."""
    asked = [name for name in headers if name.startswith(_PREFIX)]
    if not asked:
        return user
    name = headers.get("impersonate-user", "")
    if not name:
        raise errors.bad_request(f"requested {', '.join(sorted(asked))} without impersonating a user")
    groups = tuple(headers.get("impersonate-group", "").split(REPEATED)) if "impersonate-group" in headers else ()
    extra = {
        unquote(header[len(_EXTRA) :]): headers[header].split(REPEATED) for header in asked if header.startswith(_EXTRA)
    }
    wanted = ApiUser(name, groups, headers.get("impersonate-uid", ""), extra)
    result = ApiUser(name, _groups(wanted), wanted.uid, extra)
    if user == result:  # a request that waited for a webhook comes again
        return user
    for attributes in _needed(wanted):
        if not authorizer.allows(user, attributes):
            raise attributes.refusal(user)
    return result


def _needed(wanted: ApiUser) -> Iterator[Attributes]:
    account = _account(wanted.name)
    if account is not None:
        yield Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes("impersonate", resource="users", name=wanted.name)
    for group in wanted.groups:
        yield Attributes("impersonate", resource="groups", name=group)
    if wanted.uid:
        yield Attributes("impersonate", group=_AUTHENTICATION, resource="uids", name=wanted.uid)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(
                "impersonate", group=_AUTHENTICATION, resource="userextras", subresource=key.lower(), name=value
            )


def _groups(wanted: ApiUser) -> tuple[str, ...]:
    if wanted.name == ANONYMOUS.name:
        return wanted.groups or ANONYMOUS.groups
    account = _account(wanted.name)
    groups = wanted.groups
    if account is not None and not groups:
        groups = service_account_user(*account).groups
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user is."""
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    return (namespace, account) if name.startswith(_ACCOUNT) and namespace and account else None
