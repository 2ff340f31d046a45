from __future__ import annotations

import pytest

from bayplan.app.reviews import review_with
from bayplan.client.errors import ClientError
from bayplan.client.transport import Response

from .answering import Answering, answer

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


async def test_a_question_is_posted_and_its_answer_decoded() -> None:
    transport = Answering(answer(201, {"status": {"authenticated": True}}))
    said = await review_with(transport)(PATH, {"kind": "TokenReview"})

    assert said == {"status": {"authenticated": True}}
    assert transport.calls == [("POST", PATH, b'{"kind":"TokenReview"}')]


@pytest.mark.parametrize(
    "given", [answer(403, {"kind": "Status"}), answer(500, {}), Response(200, {}, b"[]"), Response(200, {}, b"no json")]
)
async def test_anything_else_is_an_error(given: Response) -> None:
    with pytest.raises(ClientError):
        await review_with(Answering(given))(PATH, {})
