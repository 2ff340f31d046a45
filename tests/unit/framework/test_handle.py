"""`bayplan.framework.handle`: what a plugin may reach beyond its arguments."""

from __future__ import annotations

import pytest

from bayplan.testing import Harness


def test_the_old_name_of_the_cluster_answers_with_a_warning_that_names_the_new_one() -> None:
    plugin = Harness(nodes=["n1"]).plugin("NodeName")

    with pytest.warns(DeprecationWarning, match=r"handle\.cluster"):
        assert plugin.handle.snapshot is plugin.handle.cluster
