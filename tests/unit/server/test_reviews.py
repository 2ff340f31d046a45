from __future__ import annotations

import asyncio

import pytest

from bayplan.observe.clock import VirtualClock
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions
from bayplan.server.reviews import AccessReviews, ReviewUnavailable, TokenReviews
from bayplan.server.users import User

from .support import Reviewer


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def tokens(reviewer: Reviewer, clock: VirtualClock, **options: float) -> TokenReviews:
    return TokenReviews(reviewer, AuthenticationOptions(**options), clock)  # type: ignore[arg-type]  # only numbers


async def test_a_token_stands_for_the_user_that_the_api_server_names(clock: VirtualClock) -> None:
    user = await tokens(Reviewer(), clock).user("token-of-reader")

    assert user == User(name="reader", uid="uid-reader", groups=("monitoring", "system:authenticated"))


async def test_an_answer_counts_for_ten_seconds_good_or_bad(clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviews = tokens(reviewer, clock)
    for _ in range(3):
        assert await reviews.user("token-of-reader") is not None
        assert await reviews.user("made-up") is None
    assert len(reviewer.asked) == 2
    clock.advance(10.0)
    del reviewer.users["reader"]

    assert await reviews.user("token-of-reader") is None


async def test_equal_questions_at_the_same_time_are_asked_once(clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviews = tokens(reviewer, clock)
    users = await asyncio.gather(*(reviews.user("token-of-reader") for _ in range(9)))

    assert len(reviewer.asked) == 1
    assert [user.name for user in users if user] == ["reader"] * 9


async def test_a_flood_of_tokens_reaches_the_api_server_as_a_trickle(clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviewer.hold = asyncio.Event()
    reviews = tokens(reviewer, clock)
    flood = [asyncio.create_task(reviews.user(f"made-up-{number}")) for number in range(200)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(reviewer.asked) == 8
    reviewer.hold.set()
    answers = await asyncio.gather(*flood, return_exceptions=True)

    assert sum(isinstance(answer, ReviewUnavailable) for answer in answers) == 136
    assert sum(answer is None for answer in answers) == 64


async def test_a_failure_is_remembered_by_nobody(clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviewer.fault = ConnectionError("refused")
    reviews = tokens(reviewer, clock)
    with pytest.raises(ReviewUnavailable, match="ConnectionError: refused"):
        await reviews.user("token-of-reader")
    reviewer.fault = None

    assert await reviews.user("token-of-reader") is not None


async def test_those_who_share_a_question_share_its_failure(clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviewer.hold = asyncio.Event()
    reviews = tokens(reviewer, clock)
    first = asyncio.create_task(reviews.user("token-of-reader"))
    second = asyncio.create_task(reviews.user("token-of-reader"))
    await asyncio.sleep(0)
    first.cancel()
    answers = await asyncio.gather(first, second, return_exceptions=True)

    assert [type(answer) for answer in answers] == [asyncio.CancelledError, ReviewUnavailable]


async def test_an_api_server_that_does_not_answer_is_given_up_on(clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviewer.hold = asyncio.Event()
    with pytest.raises(ReviewUnavailable, match="no answer"):
        await tokens(reviewer, clock, review_timeout_seconds=0.01).user("token-of-reader")


NONSENSE: list[dict[str, object]] = [
    {},
    {"status": None},
    {"status": []},
    {"status": {"authenticated": True}},
    {"status": {"authenticated": True, "user": {"username": ""}}},
    {"status": {"authenticated": True, "user": 3}},
]


@pytest.mark.parametrize("answer", NONSENSE)
async def test_an_answer_that_makes_no_sense_lets_nobody_in(answer: dict[str, object], clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviewer.answer = answer
    with pytest.raises(ReviewUnavailable):
        await tokens(reviewer, clock).user("token-of-reader")


@pytest.mark.parametrize("said", [False, None, "true", 1])
async def test_only_a_plain_yes_is_a_yes(said: object, clock: VirtualClock) -> None:
    reviewer = Reviewer()
    reviewer.answer = {"status": {"authenticated": said, "allowed": said, "user": {"username": "x"}}}
    access = AccessReviews(reviewer, AuthorizationOptions(), clock)

    assert await tokens(reviewer, clock).user("x") is None
    assert not await access.may_request(User(name="x"), verb="get", path="/metrics")


async def test_permission_is_asked_by_user_verb_and_path_and_kept_for_ten_seconds(clock: VirtualClock) -> None:
    reviewer = Reviewer()
    access = AccessReviews(reviewer, AuthorizationOptions(), clock)
    reader = User(name="reader", groups=("monitoring",), extra={"scopes": ("a",)})
    for _ in range(2):
        assert await access.may_request(reader, verb="get", path="/metrics")
        assert not await access.may_request(reader, verb="get", path="/configz")
        assert not await access.may_request(User(name="other"), verb="get", path="/metrics")
    assert len(reviewer.asked) == 3
    assert reviewer.asked[0]["spec"] == {
        "user": "reader",
        "uid": "",
        "groups": ["monitoring"],
        "extra": {"scopes": ["a"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }
    reviewer.may.clear()
    clock.advance(10.0)

    assert not await access.may_request(reader, verb="get", path="/metrics")


async def test_tokens_are_not_kept_in_memory(clock: VirtualClock) -> None:
    reviews = tokens(Reviewer(), clock)
    await reviews.user("token-of-reader")

    assert "token-of-reader" not in repr(vars(reviews._remembered))
