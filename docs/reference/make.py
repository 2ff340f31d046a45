"""The plugin reference, written from the classes by `python docs/reference/make.py`; a test compares it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec

from bayplan.framework.args import NoArgs
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, extends
from bayplan.framework.resources import resource_info
from bayplan.plugins.intree import INTREE, default_registry
from bayplan.plugins.shipped import COMMUNITY

HERE = Path(__file__).parent
_SECTION = re.compile(r"^\*([^*]+)\*:\s*", re.MULTILINE)
_NOTE = "<!-- Written by docs/reference/make.py from the classes; change those instead. -->\n"


def pages() -> dict[str, str]:
    """File name to content."""
    registry = default_registry()
    return {
        "intree.md": _page(
            "kube-scheduler's plugins",
            "The plugins of the default profile, with kube-scheduler's names, arguments, reasons and scores.",
            [registry.get(name) for name in INTREE],
        ),
        "community.md": _page(
            "Community plugins",
            "Plugins that other people described. A configuration may name them; none runs by itself.",
            [registry.get(name) for name in COMMUNITY],
        ),
    }


def _page(title: str, about: str, plugins: list[type[Plugin]]) -> str:
    index = "\n".join(f"- [{plugin.name}](#{plugin.name.lower()}): {_summary(plugin)}" for plugin in plugins)
    return "\n\n".join([f"{_NOTE}# {title}", about, index, *(_entry(plugin) for plugin in plugins)]) + "\n"


def _summary(plugin: type[Plugin]) -> str:
    return inspect.cleandoc(plugin.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _entry(plugin: type[Plugin]) -> str:
    text = inspect.cleandoc(plugin.__doc__ or "")
    body = text.partition("\n\n")[2]
    parts = _SECTION.split(body)
    sections = [f"- **{name}**: {_joined(said)}" for name, said in zip(parts[1::2], parts[2::2], strict=True)]
    facts = [
        ("Extension points", ", ".join(f"`{p.config_name}`" for p in ExtensionPoint if extends(plugin, p))),
        ("Reasons", "; ".join(f"`{reason}`" for reason in plugin.reasons)),
        ("Watches", ", ".join(f"`{resource_info(kind).crd_name}`" for kind in plugin.watches)),
        ("Permissions", "; ".join(_permission(each) for each in plugin.permissions)),
    ]
    lines = [*sections, *(f"- **{name}**: {said}" for name, said in facts if said)]
    return "\n\n".join([f"## {plugin.name}", _summary(plugin), "\n".join(lines), *_arguments(plugin)])


def _joined(text: str) -> str:
    return " ".join(text.split())


def _permission(permission: Any) -> str:
    group = f".{permission.group}" if permission.group else ""
    return f"{', '.join(permission.verbs)} `{permission.resource}{group}`"


def _arguments(plugin: type[Plugin]) -> list[str]:
    if plugin.Args is NoArgs:
        return []
    rows = ["| argument | default |", "|---|---|"]
    for field in msgspec.structs.fields(plugin.Args):
        default = field.default_factory() if callable(field.default_factory) else field.default
        shown = "required" if default is msgspec.NODEFAULT else f"`{_default(default)}`"
        rows.append(f"| `{field.encode_name}` | {shown} |")
    return ["\n".join(rows)]


def _default(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text)
        print(HERE / name)
