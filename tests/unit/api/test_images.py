"""Image names without a tag mean the latest."""

from __future__ import annotations

import pytest

from bayplan.api.node import normalized_image_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("app", "app:latest"),
        ("app:1", "app:1"),
        ("registry:5000/app", "registry:5000/app:latest"),
        ("registry:5000/app:2", "registry:5000/app:2"),
        ("app@sha256:12", "app@sha256:12"),
        ("", ":latest"),
    ],
)
def test_a_colon_before_the_last_slash_is_a_port_not_a_tag(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected
