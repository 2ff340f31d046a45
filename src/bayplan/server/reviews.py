"""TokenReviews and SubjectAccessReviews by the API server, with a cache.

Answers are cached for some seconds, as kube-scheduler does, so that a scraper costs two reviews in ten seconds. Equal
reviews at the same time are sent once, and the number in flight is limited, so that a flood of invalid tokens does not
reach the API server. The cache holds a keyed hash of a token, never the token.

No answer, or a malformed one, is `ReviewUnavailable`: the request is refused, and nothing is cached.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

from bayplan.observe.clock import Clock
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions, PodAccess, Review
from bayplan.server.users import User

__all__ = ["AccessReviews", "ReviewUnavailable", "TokenReviews"]

_log = logging.getLogger(__name__)
_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_MOST_REMEMBERED = 4096
_MOST_AT_ONCE = 8
_MOST_WAITING = 64

Answer = TypeVar("Answer")


class ReviewUnavailable(Exception):
    """The API server did not answer. The message is for the log, not for the client."""


class TokenReviews:
    """Authenticates bearer tokens by TokenReview."""

    def __init__(self, review: Review, options: AuthenticationOptions, clock: Clock) -> None:
        self._review = review
        self._timeout = options.review_timeout_seconds
        self._salt = secrets.token_bytes(32)
        self._remembered = _Remembered[User | None](clock, lambda _: options.token_cache_seconds)

    async def user(self, token: str) -> User | None:
        """The user, or None for a token that is not valid."""
        key = hashlib.blake2b(token.encode("latin-1", "replace"), key=self._salt).digest()
        return await self._remembered.get(key, lambda: self._ask(token))

    async def _ask(self, token: str) -> User | None:
        question = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        status = await _status_of(self._review, _TOKEN_REVIEWS, question, self._timeout)
        return _user_from(status) if status.get("authenticated") is True else None


class AccessReviews:
    """Authorises users by SubjectAccessReview."""

    def __init__(
        self, review: Review, options: AuthorizationOptions, clock: Clock, *, timeout_seconds: float = 10.0
    ) -> None:
        self._review = review
        self._timeout = timeout_seconds
        self._remembered = _Remembered[bool](
            clock, lambda is_allowed: options.allowed_cache_seconds if is_allowed else options.denied_cache_seconds
        )

    async def may_request(self, user: User, *, verb: str, path: str) -> bool:
        key = (user.identity(), verb, path)
        attributes = {"nonResourceAttributes": {"path": path, "verb": verb}}
        return await self._remembered.get(key, lambda: self._ask(user, attributes))

    async def may_read(self, user: User, pods: PodAccess) -> bool:
        """As if the user asked the API server for these pods."""
        what = {"version": "v1", "resource": "pods", **pods._asdict()}
        attributes = {"resourceAttributes": {field: value for field, value in what.items() if value}}
        return await self._remembered.get((user.identity(), pods), lambda: self._ask(user, attributes))

    async def _ask(self, user: User, attributes: Mapping[str, Any]) -> bool:
        question = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {key: list(values) for key, values in user.extra.items()},
                **attributes,
            },
        }
        status = await _status_of(self._review, _ACCESS_REVIEWS, question, self._timeout)
        return status.get("allowed") is True and status.get("denied") is not True


async def _status_of(review: Review, path: str, question: Mapping[str, Any], timeout: float) -> Mapping[str, Any]:
    try:
        async with asyncio.timeout(timeout):
            answer = await review(path, question)
    except TimeoutError as error:
        raise ReviewUnavailable(f"no answer from {path} within {timeout:g} s") from error
    except Exception as error:
        raise ReviewUnavailable(f"{path}: {type(error).__name__}: {error}") from error
    status = answer.get("status") if isinstance(answer, Mapping) else None
    if not isinstance(status, Mapping):
        raise ReviewUnavailable(f"the answer from {path} has no status")
    return status


def _user_from(status: Mapping[str, Any]) -> User:
    user = status.get("user")
    if not isinstance(user, Mapping) or not isinstance(user.get("username"), str) or not user["username"]:
        raise ReviewUnavailable("a token review said `authenticated` and named no user")
    extra = user.get("extra")
    return User(
        name=user["username"],
        uid=str(user.get("uid") or ""),
        groups=_texts(user.get("groups")),
        extra={str(k): _texts(v) for k, v in extra.items()} if isinstance(extra, Mapping) else {},
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()


class _Remembered(Generic[Answer]):
    """A cache with expiry and LRU eviction; equal keys in flight share one request."""

    def __init__(self, clock: Clock, seconds_for: Callable[[Answer], float]) -> None:
        self._monotonic = clock.monotonic
        self._seconds_for = seconds_for
        self._answers: OrderedDict[Hashable, tuple[float, Answer]] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Future[Answer]] = {}
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        known = self._answers.get(key)
        if known is not None and self._monotonic() < known[0]:
            self._answers.move_to_end(key)
            return known[1]
        shared = self._under_way.get(key)
        if shared is not None:
            return await asyncio.shield(shared)
        if len(self._under_way) >= _MOST_WAITING:
            raise ReviewUnavailable(f"{_MOST_WAITING} questions to the API server are waiting already")
        return await self._ask_for_all(key, ask)

    async def _ask_for_all(self, key: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        shared: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._under_way[key] = shared
        try:
            async with self._places:
                answer = await ask()
        except BaseException as error:
            # The tasks that share the request must be woken in any case, also when only this one was cancelled.
            failure = error if isinstance(error, ReviewUnavailable) else ReviewUnavailable("the question was dropped")
            shared.set_exception(failure)
            shared.exception()
            raise
        else:
            self._remember(key, answer)
            shared.set_result(answer)
            return answer
        finally:
            del self._under_way[key]

    def _remember(self, key: Hashable, answer: Answer) -> None:
        self._answers[key] = (self._monotonic() + self._seconds_for(answer), answer)
        self._answers.move_to_end(key)
        if len(self._answers) > _MOST_REMEMBERED:
            self._answers.popitem(last=False)
