"""The tables of kube-scheduler's allocator, with what its own code allocates (`allocator_facts`)."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.explain.offline.cases import evaluate_case
from tests.parity.allocator_facts import read_facts
from tests.parity.conformance import differences

_INVALID = "invalid resource pools were encountered"
"""An error of the allocator that the plugin turns into a reason why a node is refused."""


@pytest.mark.parametrize("fact", [pytest.param(fact, id=fact["id"]) for fact in read_facts()])
def test_claims_get_the_devices_that_kube_schedulers_allocator_gives(fact: dict[str, Any]) -> None:
    outcome = evaluate_case(fact)
    assert isinstance(outcome, dict)

    error = fact["expect"].get("error")
    if error == _INVALID:
        assert outcome["message"] == f"0/1 nodes are available: 1 {_INVALID}."
    elif error is not None:
        assert outcome["message"] == f'running "DynamicResources" filter plugin: {error}'
    else:
        given = {key.partition("/")[2]: each["allocation"] for key, each in outcome.get("allocations", {}).items()}
        assert differences(fact["expect"]["allocations"], given) == []
