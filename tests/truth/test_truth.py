"""The proof on one case of each cause; `make truth` does it on hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from bayplan.explain.claims import pods as claims
from bayplan.explain.claims.wording import WORDS
from tests.truth.causes import CAUSES
from tests.truth.executors import EXECUTORS
from tests.truth.proof import Proof, prove


def test_every_claim_has_words_and_an_executor() -> None:
    """A claim that nobody can execute must not be made."""
    kinds = set(get_args(claims.Claim))

    assert kinds == set(WORDS) == set(EXECUTORS)


@pytest.fixture(scope="module")
def everything() -> Iterator[Proof]:
    """What all cases of this module came to; checked once they are done."""
    proof = Proof()
    yield proof
    assert proof.cases < len(CAUSES) or proof.gaps() == []


@pytest.mark.e2e
@pytest.mark.parametrize("number", range(len(CAUSES)), ids=list(CAUSES))
async def test_every_sentence_about_a_case_is_true_and_falsified_ones_are_caught(
    number: int, everything: Proof
) -> None:
    proof = Proof()
    await prove(1, number, proof)
    everything.add(proof)

    assert proof.problems == []
    assert proof.executed.total() >= 1
