"""The published JSON Schemas of what `explain`, `pending` and `whatif` put out with `-o json`, by their file names.

    python -m bayplan.explain.schemas docs/reference

writes them. A field that goes, or means something else, is another `VERSION`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from bayplan.explain.model import VERSION, NodeExplanation, PendingBoard, PodExplanation, WhatIf

__all__ = ["OUTPUTS", "schema"]

OUTPUTS: dict[str, type[msgspec.Struct]] = {
    "explain-pod": PodExplanation,
    "explain-node": NodeExplanation,
    "pending": PendingBoard,
    "whatif": WhatIf,
}


def schema(output: str = "explain-pod") -> dict[str, Any]:
    found = msgspec.json.schema(OUTPUTS[output])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": VERSION, **found}


def _write(folder: Path) -> None:
    for output in OUTPUTS:
        (folder / f"{output}.schema.json").write_text(json.dumps(schema(output), indent=2) + "\n")


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
