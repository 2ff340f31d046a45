"""`bayplan plugin`: what is known of a plugin before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App

from bayplan.cli.options import option, path_of
from bayplan.cli.output import CommandError, Format, note, one_line, print_value

if TYPE_CHECKING:
    from bayplan.app.settings import Settings
    from bayplan.framework.description import PluginDescription
    from bayplan.framework.plugin import Plugin
    from bayplan.framework.registry import Registry

__all__ = ["app", "show"]

app = App(help="Look into plugins.", version_flags=())


@app.command
def show(
    plugin: str,
    /,
    *,
    config: Annotated[
        str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration with the plugin's arguments")
    ] = None,
    output: Annotated[Format, option("--output", "-o", metavar="FORMAT", about="table by default")] = "table",
) -> None:
    """Say what a plugin extends, what its answers depend on, and what the author could change.

    PLUGIN is FILE.py, FOLDER, MODULE:CLASS or the name of a plugin that is installed. What Filter and Score depend on
    is derived from their code where the author states nothing: the less, the longer answers are kept. Nothing of the
    plugin is called but `setup`.
    """
    import msgspec

    found = _described(plugin, config)
    if output != "table":
        values = [msgspec.to_builtins(each) for each in found]
        print_value(values[0] if len(values) == 1 else values, output)
        return
    print("\n\n".join("\n".join(_lines(each)) for each in found))


def _described(spec: str, config: str | None) -> list[PluginDescription]:
    from bayplan.app.settings import SettingsError, load_settings, resolve_settings
    from bayplan.framework.description import describe

    registry, names, is_installed = _named(spec)
    try:
        settings = load_settings(path_of(config), [] if is_installed else [spec], enable=True)
        settings = resolve_settings(settings.config, settings.registry, enable=names)
    except SettingsError as error:
        if config is not None:
            raise CommandError(*error.problems) from error
        return [describe(registry.get(name)) for name in names]  # two plugins that exclude each other, or required args
    built = _built(settings)
    return [describe(built.get(name) or settings.registry.get(name), settings.cautions) for name in names]


def _named(spec: str) -> tuple[Registry, list[str], bool]:
    """A registry, the names of the plugins in it that are meant, and whether they were there before."""
    from bayplan.framework.errors import PluginError
    from bayplan.plugins.intree import default_registry

    registry = default_registry()
    is_name = ":" not in spec and not spec.endswith(".py") and not Path(spec).exists()
    try:
        return registry, [cls.name for cls in registry.load(spec)], is_name
    except PluginError as error:
        raise CommandError(*str(error).splitlines()) from error


def _built(settings: Settings) -> dict[str, Plugin]:
    """The plugins with their arguments; none where `setup` needs a cluster, and then values count as constants."""
    from bayplan.app.offline import OfflineScheduler
    from bayplan.framework.errors import PluginError

    try:
        scheduler = OfflineScheduler(settings.profiles, settings.registry, ())
    except Exception as error:
        # A failure of `setup` comes as one that names the plugin; its cause is what the author wants to see.
        cause = error.__cause__ if isinstance(error, PluginError) and error.__cause__ is not None else error
        note(f"not built, as `setup` fails without a cluster: {type(cause).__name__}: {cause}")
        return {}
    return {name: plugin for each in scheduler.deciders.values() for name, plugin in each.framework.plugins.items()}


def _lines(found: PluginDescription) -> list[str]:
    facts = [
        ("extends", ", ".join(found.points)),
        *(("argument", each) for each in found.arguments),
        *(("watches", each) for each in found.watches),
    ]
    for each in found.answers:
        facts.append((each.method, f"depends on {each.depends} ({each.origin}): {each.kept}"))
        facts += [("", reason) for reason in each.reasons]
        facts += [("", f"advice: {each.advice}")] if each.advice else []
    facts += [("caution", each) for each in found.cautions]
    width = max(len(name) for name, _ in facts) + 2
    title = f"{found.name}: {found.summary}" if found.summary else found.name
    return [one_line(title), *(f"  {name:<{width}}{one_line(value)}" for name, value in facts)]
