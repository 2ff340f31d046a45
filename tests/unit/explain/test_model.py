"""The published JSON Schema, and what is put out under it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.unit.explain.schema_check import problems
from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.model import VERSION, PodExplanation
from bayplan.explain.schemas import OUTPUTS, schema
from bayplan.explain.whatif.scenario import AddedNodes, Scenario

PUBLISHED = Path(__file__).parents[3] / "docs" / "reference"
REQUIRED = {"time", "node", "total", "points", "runnerUp", "ties", "feasible", "nodes", "funnel", "victims"}


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_published_schema_is_that_of_the_model(output: str) -> None:
    """`python -m bayplan.explain.schemas docs/reference` writes it."""
    published = json.loads((PUBLISHED / f"{output}.schema.json").read_text())

    assert published == json.loads(json.dumps(schema(output)))
    assert schema(output)["title"] == VERSION


@pytest.mark.parametrize(
    ("path", "value"), [("verdict", 3), ("state", None), ("decision", {"time": "now"}), ("suggestions", [{}])]
)
def test_what_is_not_as_the_schema_says_is_found(path: str, value: object) -> None:
    good = msgspec.to_builtins(PodExplanation(pod="a/b", state="pending", verdict="v"))
    assert problems(good, schema(), schema()) == []

    assert problems({**good, path: value}, schema(), schema())


async def test_every_output_is_as_the_schema_says() -> None:
    async with staged() as stage:
        await stage.create(
            raw_pod("web"),
            raw_pod("big", cpu="900"),
            raw_pod("later", schedulingGates=[{"name": "quota"}]),
            raw_pod("lost", schedulerName="nobody"),
        )
        await stage.settled(bound=1, failed=1)
        await stage.until(lambda: stage.local.live.watching.pod("default", "lost") is not None)
        service, found = stage.explaining.service, {}
        for name in ("web", "big", "later", "lost"):
            explanation = service.explain_pod(f"default/{name}", in_full=True)
            if name != "lost":
                changes = await service.changes(f"default/{name}")
                explanation.suggestions, explanation.nearest = changes.suggestions, changes.nearest
            found[name] = json.loads(msgspec.json.encode(explanation))

        name = found["web"]["node"]
        others = {
            "pending": await service.pending(with_change=True),
            "explain-node": service.explain_node(name),
            "whatif": await service.whatif(Scenario(add_nodes=[AddedNodes(like=name)])),
        }

    for name, answer in others.items():
        text = json.loads(msgspec.json.encode(answer))
        assert problems(text, schema(name), schema(name)) == [], name
        assert text["version"] == VERSION and text["claim"]["claim"]
    for name, output in found.items():
        assert problems(output, schema(), schema()) == [], name
        assert msgspec.convert(output, PodExplanation).verdict
    assert found["web"]["decision"].keys() >= REQUIRED
    assert found["web"]["decision"]["points"]["NodeResourcesFit"].keys() >= {"raw", "normalized", "weighted"}
    assert found["web"]["decision"]["runnerUp"]["points"]["NodeResourcesFit"].keys() >= {"raw", "normalized"}
    assert found["big"]["suggestions"][0]["sentence"] and "edits" in found["big"]["suggestions"][0]
    assert found["big"]["now"]["nodes"] == 4
