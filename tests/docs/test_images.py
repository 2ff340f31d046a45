"""The pictures of the README are what the commands print today."""

from __future__ import annotations

import importlib.util

import pytest

from tests.docs.markdown import ROOT


@pytest.mark.parametrize("scenario", ["pod", "urgent"])
def test_pictures_are_up_to_date(scenario: str) -> None:
    path = ROOT / "docs" / "images" / "make.py"
    spec = importlib.util.spec_from_file_location("docs_images_make", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert (path.parent / f"evaluate-{scenario}.svg").read_text() == module.evaluate_picture(scenario), (
        "run `python docs/images/make.py`"
    )
