"""What an image is made of: exact versions of everything that is needed at run time, and a list of it."""

from __future__ import annotations

import re
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

from bayplan.deploy.components import bill_of_materials

ROOT = Path(__file__).parents[3]
CONSTRAINTS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)


def needed(name: str, found: set[str]) -> set[str]:
    """A package and all that it needs here, by normalised name."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key not in found:
        found.add(key)
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed(requirement.name, found)
    return found


def test_every_package_that_is_needed_at_run_time_has_one_version() -> None:
    assert needed("bayplan", set()) - {"bayplan"} <= CONSTRAINTS.keys()
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in CONSTRAINTS.values())


def test_the_image_is_built_from_them_and_lists_what_it_has() -> None:
    text = (ROOT / "Dockerfile").read_text()

    assert re.search(r"^ARG PYTHON=python:\d+\.\d+\.\d+-", text, re.M)
    assert "-c constraints.txt ." in text
    assert "bayplan.deploy.components > /opt/bayplan/components.cdx.json" in text


def test_components_are_named_with_version_address_and_licence() -> None:
    document = bill_of_materials([*distributions(), distribution("msgspec")])
    found = {component["name"]: component for component in document["components"]}

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert found["bayplan"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert found["msgspec"]["purl"] == f"pkg:pypi/msgspec@{distribution('msgspec').version}"
    assert len({component["bom-ref"] for component in document["components"]}) == len(document["components"])
