"""The packages that are installed beside Bayplan, as a CycloneDX document: the image carries one.

    python -m bayplan.deploy.components > components.cdx.json

Nothing is looked up elsewhere: names, versions and licences are those that the installed packages state.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from typing import Any

__all__ = ["bill_of_materials"]


def bill_of_materials(installed: Iterable[Distribution]) -> dict[str, Any]:
    """By name and version; a package that is found twice is listed once."""
    components = {component["purl"]: component for component in map(_component, installed)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": [components[purl] for purl in sorted(components)],
    }


def _component(package: Distribution) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    purl = f"pkg:pypi/{name}@{package.version}"
    found = {"type": "library", "bom-ref": purl, "name": name, "version": package.version, "purl": purl}
    stated = package.metadata.get_all("License-Expression") or []
    return found | ({"licenses": [{"expression": expression} for expression in stated]} if stated else {})


if __name__ == "__main__":
    json.dump(bill_of_materials(distributions()), sys.stdout, indent=1)
