"""The reference of plugins and settings, written from the classes by `docs/reference/make.py`; a test compares."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from bayplan.config.durations import format_duration
from bayplan.config.own import BayplanConfig
from bayplan.framework.args import NoArgs
from bayplan.framework.handle import ApiPort, Handle
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, extends
from bayplan.framework.promises import SpeedPromises
from bayplan.framework.resources import resource_info
from bayplan.plugins.intree import INTREE, default_registry
from bayplan.plugins.shipped import COMMUNITY

HERE = Path(__file__).parent
_SECTION = re.compile(r"^\*([^*]+)\*:\s*", re.MULTILINE)
_SETTINGS_ABOUT = """
Settings that kube-scheduler does not have, in a file of their own, so that the KubeSchedulerConfiguration beside it
stays one that kube-scheduler loads ([why](../decisions/0011-a-configuration-of-our-own.md)):

```sh
bayplan run --config scheduler.yaml --bayplan-config settings.yaml
```

```yaml
apiVersion: bayplan.dev/v1alpha1
kind: BayplanConfiguration
decisions:
  memory: 256Mi
watchdog:
  endAfter: 30s
```

`bayplan up` takes it too, and `bayplan render` puts it into the ConfigMap. Unknown fields and values that cannot be
right are reported all at once, with their lines. Relative paths are relative to the folder of the file. It is read at
the start: SIGHUP reads the other configuration and the plugins again, not this. `/configz` shows what is in force.
"""
_FLAGS = """
Flags of `bayplan run` win over the file: `--decision-file`, `--decision-memory`, `--record`,
`--stall-limit` (`watchdog.endAfter`), `--with-controllers` and `--seed`. `--plugin` adds to `plugins`.
"""
_NOT_FOR_AUTHORS = ("get_dry_run", "snapshot")
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
        "configuration.md": _settings_page(),
        "contract.md": _contract_page(),
    }


def _contract_page() -> str:
    """Everything on `Plugin` and on what its methods are given, from signatures and docstrings."""
    points = [_method(name) for point in ExtensionPoint for name in (*point.methods, *point.companions)]
    others = [_method(name) for name in ("setup", "teardown", "pod_gone", "events_to_register", "dry_copy", "grants")]
    speed = [f"- `{name}`: {said}" for name, said in _field_docs(SpeedPromises).items()]
    return (
        "\n\n".join(
            [
                f"{_NOTE}# The contract",
                "What a plugin may define and what it is given; [Write a plugin](../write-a-plugin.md) explains it.",
                "## Extension points, in the order in which they are called",
                *points,
                "## Further methods",
                *others,
                "## Attributes of the class",
                "\n".join(f"- `{name}`: {said}" for name, said in _field_docs(Plugin).items()),
                "## Promises that only save time",
                "\n".join(speed),
                "## `self.handle`",
                "\n".join(_members(Handle)),
                "## Requests to the API server (`self.handle.api`)",
                "\n".join(_members(ApiPort)),
            ]
        )
        + "\n"
    )


def _method(name: str) -> str:
    method = getattr(Plugin, name)
    kind = "async def" if inspect.iscoroutinefunction(method) else "def"
    body = inspect.cleandoc(method.__doc__ or "")
    return f"### `{name}`\n\n```python\n{kind} {name}{_signature(method)}\n```\n\n{body}"


def _signature(function: Any) -> str:
    """Annotations are texts, which would be shown in quotes."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))


def _members(cls: type) -> list[str]:
    """Public fields, properties and methods with the first sentence of what is said about them."""
    found = {name: f"`{name}`: {said}" for name, said in _field_docs(cls).items()}
    for name in getattr(cls, "__dataclass_fields__", {}):
        found.setdefault(name, f"`{name}`")
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or name in found or not inspect.isfunction(function):
            continue
        said = _joined(inspect.getdoc(function) or "").split(". ")[0].rstrip(".")
        call = "" if isinstance(member, property) else re.sub(r"\(self(, )?", "(", _signature(function))
        found[name] = f"`{name}{call}`" + (f": {said}." if said else "")
    return [f"- {found[name]}" for name in found if name not in _NOT_FOR_AUTHORS]


def _settings_page() -> str:
    rows = ["| field | default | |", "|---|---|---|", *_settings(BayplanConfig, "")]
    return (
        "\n\n".join([f"{_NOTE}# BayplanConfiguration", _SETTINGS_ABOUT.strip(), "\n".join(rows), _FLAGS.strip()]) + "\n"
    )


def _settings(struct: type[msgspec.Struct], path: str) -> list[str]:
    """A row for each field, sections opened up; the descriptions are the docstrings in the source."""
    said, rows = _field_docs(struct), []
    for field in msgspec.structs.fields(struct):
        name = f"{path}{field.encode_name}"
        if isinstance(field.default, msgspec.Struct):
            about = inspect.cleandoc(type(field.default).__doc__ or "")
            rows += [f"| **`{name}`** | | {_joined(about)} |", *_settings(type(field.default), f"{name}.")]
        elif name not in ("apiVersion", "kind"):
            rows.append(f"| `{name}` | `{_setting(field.default)}` | {said[field.name]} |")
    return rows


def _setting(value: Any) -> str:
    return format_duration(value) if isinstance(value, timedelta) else _default(value)


def _field_docs(struct: type) -> dict[str, str]:
    (definition,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in itertools.pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = _joined(ast.literal_eval(text.value))
    return found


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
