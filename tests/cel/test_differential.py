"""A part of the differential run against Kubernetes' own evaluation (`make e2e`; needs Go once, for the oracle)."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tests.cel.differential import run
from tests.cel.oracle import SOURCE, build

pytestmark = pytest.mark.e2e


def test_random_expressions_have_the_answers_of_kubernetes() -> None:
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCE.iterdir()))).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayplan" / "cel-oracle"
    cache.mkdir(parents=True, exist_ok=True)
    if not (cache / digest).exists() and shutil.which("go") is None:
        pytest.skip("the oracle is not built, and Go is not installed")

    differences, _ = run(build(cache / digest), count=3000, seed=2026, show=10)

    assert differences == 0
