"""Access and identity reviews: the kinds of authorization.k8s.io and authentication.k8s.io."""

from __future__ import annotations

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.identity import ApiUser, TokenIssuer
from bayplan.apiserver.server.authorization import ApiAuthorizer, Attributes


class Reviews:
    """Answers reviews; stores nothing."""

    def __init__(self, authorizer: ApiAuthorizer, tokens: TokenIssuer) -> None:
        self._authorizer = authorizer
        self._tokens = tokens

    def answer(self, kind: ServedKind, namespace: str, review: Json, user: ApiUser) -> Json:
        if kind.kind == "SelfSubjectReview":  # has no spec
            review["status"] = {"userInfo": _user_info(user)}
            return review
        spec = review.setdefault("spec", {})
        if kind.kind == "TokenReview":
            review["status"] = self._token(spec)
        elif kind.kind == "SelfSubjectRulesReview":
            review["spec"], review["status"] = {}, self._rules(user, spec.get("namespace", ""))
        elif kind.kind == "SelfSubjectAccessReview":
            review["status"] = self._access(kind, user, spec)
        else:
            review["status"] = self._access(kind, _subject(kind, spec), spec)
        if kind.namespaced:
            review.setdefault("metadata", {}).setdefault("namespace", namespace)
        return review

    def _access(self, kind: ServedKind, user: ApiUser, spec: Json) -> Json:
        resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (resource is None) == (other is None):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            cause = errors.invalid_value("spec.resourceAttributes", "", detail)
            raise errors.invalid(kind.kind, "", [cause], group=kind.group)
        if other is not None:
            attributes = Attributes(verb=other.get("verb", ""), path=other.get("path", ""))
        else:
            asked = resource or {}
            attributes = Attributes(
                verb=asked.get("verb", ""),
                group=asked.get("group", ""),
                resource=asked.get("resource", ""),
                subresource=asked.get("subresource", ""),
                namespace=asked.get("namespace", ""),
                name=asked.get("name", ""),
            )
        return {"allowed": self._authorizer.allows(user, attributes)}

    def _token(self, spec: Json) -> Json:
        user = self._tokens.user(spec.get("token", ""))
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": _user_info(user), "audiences": [self._tokens.audience]}

    def _rules(self, user: ApiUser, namespace: str) -> Json:
        rules = self._authorizer.rules_for(user, namespace)
        return {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }


def _subject(kind: ServedKind, spec: Json) -> ApiUser:
    if not spec.get("user") and not spec.get("groups"):
        cause = errors.invalid_value("spec.user", "", "at least one of user or group must be specified")
        raise errors.invalid(kind.kind, "", [cause], group=kind.group)
    return ApiUser(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))


def _user_info(user: ApiUser) -> Json:
    info: Json = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
