"""The core knows no plugin by class or name: what it needs of one is declared on the plugin.

Imports of `bayplan.plugins` and names of plugins in code (not in docstrings or comments) are searched in every room
that is part of scheduling. What has to name a plugin is listed here, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bayplan.plugins.intree import default_registry

PACKAGE = Path(__file__).parents[2] / "src" / "bayplan"
CORE = ("api", "app", "cache", "cluster", "config", "framework", "leader", "loop", "observe", "preemption", "queue")

MAY_IMPORT_PLUGINS: dict[str, str] = {
    "app/settings.py": "makes the registry of built-in plugins, which is the one list of them",
    "app/controllers/elastic_quota_status.py": "writes the status of CapacityScheduling's own resource",
    "app/controllers/pod_group_status.py": "writes the status of Coscheduling's own resource",
    "app/controllers/status_controllers.py": "runs these two",
}
MAY_NAME_PLUGINS: dict[str, str] = {
    "config/versions.py": "the default plugins and the defaults of older versions, as kube-scheduler publishes them",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for room in CORE:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def imports_plugins(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayplan.plugins"):
            return True
        if isinstance(node, ast.Import) and any(alias.name.startswith("bayplan.plugins") for alias in node.names):
            return True
    return False


def named_plugins(tree: ast.Module, names: set[str]) -> set[str]:
    """Names of plugins in string constants. Exports are left out: an API type may have the name of a plugin; so are
    docstrings, which may use one as an example."""
    exports = {
        id(each)
        for node in tree.body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        for each in ast.walk(node.value)
    }
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in exports | docstrings
    ]
    return {name for text in constants for name in names.intersection(re.findall(r"\w+", text))}


def test_the_core_imports_no_plugin() -> None:
    assert {name for name, tree in modules() if imports_plugins(tree)} == MAY_IMPORT_PLUGINS.keys()


def test_the_core_names_no_plugin() -> None:
    names = set(default_registry().names())
    found = {name: named for name, tree in modules() if (named := named_plugins(tree, names))}

    assert found.keys() == MAY_NAME_PLUGINS.keys(), found
