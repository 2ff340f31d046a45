"""The configurations of the golden cases, with the real plugins: every one must load and resolve."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayplan.config import load_config, resolve_profiles
from bayplan.framework.registry import Registry
from bayplan.plugins.intree import intree_plugins

GOLDEN = sorted((Path(__file__).parents[2] / "parity" / "golden").glob("*.jsonl.gz"))


def configurations() -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for file in GOLDEN:
        with gzip.open(file, "rt") as lines:
            for line in lines:
                config = json.loads(line)["config"]
                text = json.dumps(config, sort_keys=True)
                if text not in seen:
                    seen.add(text)
                    yield config


def test_every_golden_configuration_loads_and_resolves() -> None:
    registry = Registry(intree_plugins(), use_installed=False)
    resolved = [resolve_profiles(load_config(config), registry) for config in configurations()]

    assert len(resolved) > 100
    assert all(profile.weights for profiles in resolved for profile in profiles)
