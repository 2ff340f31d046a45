"""From a profile as configured to a profile as it runs: which plugins, where, in what order, with what weight and args.

Step A lays the configuration over the default multiPoint list; step B expands multiPoint over the extension points.
Both follow kube-scheduler to the letter, errors included where it has a text for them. This is the only place where
configuration and plugins meet; the registry is an argument, no plugin is imported here and none is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.api.suggest import did_you_mean
from bayplan.config.args import decode_args
from bayplan.config.errors import Problem, Problems
from bayplan.config.model import DEFAULT, ExtenderConfig, PluginRef, PluginSet, ProfileConfig, SchedulerConfig, Source
from bayplan.config.versions import RETIRED_PLUGINS, merge_sets
from bayplan.framework.args import PluginArgs
from bayplan.framework.errors import PluginError, UnknownPlugin
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, extends
from bayplan.framework.registry import Registry

__all__ = ["ResolvedProfile", "resolve_profile", "resolve_profiles"]

_PLACEMENT = ("placementGenerate", "placementScore")


@dataclass(frozen=True, kw_only=True)
class ResolvedProfile:
    """Everything the runtime needs to build one profile."""

    scheduler_name: str
    percentage_of_nodes_to_score: int
    """The profile's own, else that of the configuration. 100, which is every node, where neither asks for a sample."""
    points: Mapping[ExtensionPoint, tuple[str, ...]]
    """Plugin names in the order they run; every extension point is there."""
    weights: Mapping[str, int]
    """Of the plugins at Score."""
    args: Mapping[str, PluginArgs]
    """Of every plugin that runs anywhere."""
    multi_point: PluginSet = field(default_factory=PluginSet)
    """The multiPoint set after merging with the defaults, as /configz shows it."""
    warnings: tuple[Problem, ...] = ()

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Every plugin that runs, once, in the order of first appearance."""
        return tuple(dict.fromkeys(name for names in self.points.values() for name in names))


def resolve_profiles(config: SchedulerConfig, registry: Registry) -> tuple[ResolvedProfile, ...]:
    """Every profile of a configuration. Raises one `ConfigError` with the problems of all of them."""
    problems = Problems()
    resolved = []
    for index, profile in enumerate(config.profiles):
        work = _Resolution(
            profile,
            registry,
            path=f"profiles[{index}]",
            extenders=config.extenders,
            problems=problems,
            sources=config.sources,
            share_of_nodes=config.percentage_of_nodes_to_score,
        )
        resolved.append(work.result())
    _compare_queue_sort(resolved, problems)
    files = {source.file for source in config.sources.values()}
    problems.raise_if_any(files.pop() if len(files) == 1 else "")
    return tuple(resolved)


def resolve_profile(
    profile: ProfileConfig,
    registry: Registry,
    *,
    extenders: Iterable[ExtenderConfig] = (),
    path: str = "profiles[0]",
    sources: Mapping[str, Source] | None = None,
) -> ResolvedProfile:
    """One profile. `path` and `sources` are its position in messages. Raises `ConfigError`."""
    problems = Problems()
    work = _Resolution(
        profile, registry, path=path, extenders=tuple(extenders), problems=problems, sources=sources or {}
    )
    result = work.result()
    problems.raise_if_any()
    return result


def _compare_queue_sort(profiles: Sequence[ResolvedProfile], problems: Problems) -> None:
    """One queue serves all profiles, so its order must not depend on the profile, however it was configured."""
    first = profiles[0].points[ExtensionPoint.QUEUE_SORT]
    for index, profile in enumerate(profiles[1:], start=1):
        path, other = f"profiles[{index}].plugins.queueSort", profile.points[ExtensionPoint.QUEUE_SORT]
        if other != first:
            message = f"different queue sort plugins for profile `{profile.scheduler_name}`: {_list(other)}"
            problems.add(path, message, hint=f"all profiles share one queue; profiles[0] has {_list(first)}")
        elif any(profile.args.get(name) != profiles[0].args.get(name) for name in first):
            message = f"different queue sort plugin args for profile `{profile.scheduler_name}`"
            problems.add(path, message, hint="make them equal to those of profiles[0]")


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


class _Resolution:
    """The work on one profile; problems go to a collector that outlives it."""

    def __init__(
        self,
        profile: ProfileConfig,
        registry: Registry,
        *,
        path: str,
        extenders: Sequence[ExtenderConfig],
        problems: Problems,
        sources: Mapping[str, Source],
        share_of_nodes: int = 0,
    ) -> None:
        self.profile, self.registry, self.path = profile, registry, path
        self.problems, self.sources = problems, sources
        own_share = profile.percentage_of_nodes_to_score
        self.share_of_nodes = (share_of_nodes if own_share is None else own_share) or 100
        self.warnings: list[Problem] = []
        self.sets = profile.plugins.sets()
        defaults = tuple(PluginRef(name=name, weight=weight) for name, weight in registry.defaults)
        self.multi_point = merge_sets(defaults, self.sets["multiPoint"])
        self.ignored = [r.name for e in extenders for r in e.managed_resources if r.ignored_by_scheduler]
        self._classes: dict[str, type[Plugin] | None] = {}
        self._failures: dict[str, str] = {}
        self._before = len(problems)

    def result(self) -> ResolvedProfile:
        self._check_disabled()
        self._check_placement()
        listed = {point: self._listed(point) for point in ExtensionPoint}
        shared = self._shared()
        points = {point: self._expanded(point, listed[point], shared) for point in ExtensionPoint}
        self._check_counts(points)
        return ResolvedProfile(
            scheduler_name=self.profile.scheduler_name,
            percentage_of_nodes_to_score=self.share_of_nodes,
            points=points,
            weights=self._weights(points[ExtensionPoint.SCORE]),
            args=self._args(points),
            multi_point=self.multi_point,
            warnings=tuple(self.warnings),
        )

    # Which plugins there are

    def _class(self, name: str) -> type[Plugin] | None:
        """The class of a plugin; None when there is none or it does not load (`_refuse_missing` reports it)."""
        if name not in self._classes:
            try:
                self._classes[name] = self.registry.get(name)
            except UnknownPlugin:
                self._classes[name] = None
            except PluginError as error:
                self._classes[name] = None
                self._failures[name] = str(error)
        return self._classes[name]

    def _refuse(self, place: str, message: str, *, hint: str = "") -> None:
        self.problems.add(place, message, hint=hint, line=self._line(place))

    def _refuse_missing(self, place: str, name: str, message: str) -> None:
        if name in self._failures:
            self._refuse(place, self._failures[name])
        else:
            self._refuse(place, message, hint=self._unknown_hint(name))

    def _line(self, place: str) -> int:
        return self.sources.get(place, DEFAULT).line

    def _unknown_hint(self, name: str) -> str:
        return (
            RETIRED_PLUGINS.get(name) or did_you_mean(name, self.registry.names()) or "is its file loaded (--plugin)?"
        )

    def _listed(self, point: ExtensionPoint) -> tuple[str, ...]:
        """What the point's own `enabled` names, in order."""
        names: list[str] = []
        kind = f"{point.label}Plugin"
        for index, plugin in enumerate(self.sets[point.config_name].enabled):
            place = f"{self.path}.plugins.{point.config_name}.enabled[{index}]"
            cls = self._class(plugin.name)
            if cls is None:
                self._refuse_missing(place, plugin.name, f'{kind} "{plugin.name}" does not exist')
            elif not extends(cls, point):
                hint = f"it extends {_list([p.config_name for p in ExtensionPoint if extends(cls, p)])}"
                self._refuse(place, f'plugin "{plugin.name}" does not extend {kind} plugin', hint=hint)
            elif plugin.name in names:
                self._refuse(place, f'plugin "{plugin.name}" already registered as "{kind}"', hint="keep one")
            else:
                names.append(plugin.name)
        return tuple(names)

    def _shared(self) -> tuple[str, ...]:
        """What multiPoint enables, in order."""
        names: list[str] = []
        given = self.sets["multiPoint"].enabled
        for plugin in self.multi_point.enabled:
            place = f"{self.path}.plugins.multiPoint"
            if plugin in given:
                place += f".enabled[{len(given) - 1 - given[::-1].index(plugin)}]"
            cls = self._class(plugin.name)
            if cls is None:
                self._refuse_missing(place, plugin.name, f'PreFilterPlugin "{plugin.name}" does not exist')
            elif plugin.name in names:
                kind = next(point.label for point in ExtensionPoint if extends(cls, point))
                self._refuse(place, f'plugin "{plugin.name}" already registered as "{kind}Plugin"', hint="keep one")
            else:
                names.append(plugin.name)
        return tuple(names)

    # Where they run

    def _expanded(self, point: ExtensionPoint, listed: tuple[str, ...], shared: tuple[str, ...]) -> tuple[str, ...]:
        """First what is listed and shared, in the order of the list; then the rest of shared; then of the list."""
        disabled = {plugin.name for plugin in self.sets[point.config_name].disabled}
        if "*" in disabled:
            return listed
        fitting = [name for name in shared if name not in disabled and self._extends(name, point)]
        overriding = [name for name in listed if name in fitting]
        rest = [name for name in listed if name not in fitting]
        return (*overriding, *(name for name in fitting if name not in listed), *rest)

    def _extends(self, name: str, point: ExtensionPoint) -> bool:
        cls = self._class(name)
        return cls is not None and extends(cls, point)

    def _check_counts(self, points: Mapping[ExtensionPoint, tuple[str, ...]]) -> None:
        if len(self.problems) > self._before:
            return  # a plugin that was refused above may be the one that is missing here
        name, sorts = self.profile.scheduler_name, points[ExtensionPoint.QUEUE_SORT]
        if len(sorts) != 1:
            message = (
                f'only one queue sort plugin required for profile with scheduler name "{name}", but got {len(sorts)}'
            )
            hint = f"found {_list(sorts)}; disable the others" if sorts else self._default_at(ExtensionPoint.QUEUE_SORT)
            self._refuse(f"{self.path}.plugins.queueSort", message, hint=hint)
        if not points[ExtensionPoint.BIND]:
            message = f'at least one bind plugin is needed for profile with scheduler name "{name}"'
            self._refuse(f"{self.path}.plugins.bind", message, hint=self._default_at(ExtensionPoint.BIND))

    def _default_at(self, point: ExtensionPoint) -> str:
        """A hint that names the plugin of the default profile at a point."""
        names = [name for name, _ in self.registry.defaults if self._extends(name, point)]
        return f"enable one, such as {names[0]}" if names else "enable one"

    def _check_disabled(self) -> None:
        """A name that disables nothing is probably misspelt, unless it is a plugin that is gone."""
        for _, inner, plugin in self.profile.plugins.entries("disabled"):
            place = f"{self.path}.plugins.{inner}"
            if plugin.name == "*" or plugin.name in self.registry:
                continue
            if plugin.name in RETIRED_PLUGINS:
                message = f"plugin `{plugin.name}` does not exist any more, so disabling it has no effect"
                self.warnings.append(Problem(place, message, "remove it", self._line(place)))
            else:
                hint = did_you_mean(plugin.name, self.registry.names()) or "remove it"
                self._refuse(place, f"plugin `{plugin.name}` does not exist, so it cannot be disabled", hint=hint)

    def _check_placement(self) -> None:
        for point in _PLACEMENT:
            for index, _ in enumerate(self.sets[point].enabled):
                message = "belongs to workload-aware scheduling, an alpha feature that is off"
                self._refuse(f"{self.path}.plugins.{point}.enabled[{index}]", message, hint="remove it")

    # With what weights and arguments

    def _weights(self, names: Iterable[str]) -> dict[str, int]:
        """The first entry that names a plugin decides, of those at score and then those of multiPoint; 0 means 1."""
        first: dict[str, PluginRef] = {}
        for plugin in (*self.sets["score"].enabled, *self.multi_point.enabled):
            first.setdefault(plugin.name, plugin)
        return {name: first[name].weight or 1 for name in names}

    def _args(self, points: Mapping[ExtensionPoint, tuple[str, ...]]) -> dict[str, PluginArgs]:
        """Arguments of every plugin that runs; those of plugins that do not run are checked all the same."""
        running = dict.fromkeys(name for names in points.values() for name in names)
        decoded: dict[str, PluginArgs] = {}
        for index, config in enumerate(self.profile.plugin_config):
            place = f"{self.path}.pluginConfig[{index}]"
            args = self._configured(config.name, config.args, place)
            if args is not None:
                decoded.setdefault(config.name, args)
        given = {config.name for config in self.profile.plugin_config}
        for name in running:
            cls = self._class(name)
            if name not in given and cls is not None:
                args = self._defaulted(cls)
                if args is not None:
                    decoded[name] = args
        return {name: decoded[name] for name in sorted(running) if name in decoded}

    def _configured(self, name: str, given: object, place: str) -> PluginArgs | None:
        cls = self._class(name)
        if cls is None:
            self._refuse_missing(place, name, f"there is no plugin `{name}` to configure")
            return None
        where = f"{place}.args"
        args = decode_args(cls, given, path=where, problems=self.problems, line=self._line(where) or self._line(place))
        return self._with_ignored(args)

    def _defaulted(self, cls: type[Plugin]) -> PluginArgs | None:
        problems = Problems()
        args = decode_args(cls, None, path=f"{self.path}.pluginConfig[{cls.name}].args", problems=problems)
        self.problems.extend(
            Problem(p.path, p.message, f"add `- name: {cls.name}` with its `args` to pluginConfig")
            for p in problems.sorted()
        )
        return self._with_ignored(args)

    def _with_ignored(self, args: PluginArgs | None) -> PluginArgs | None:
        """The arguments with the resources that extenders manage and the scheduler is to ignore."""
        return args if args is None or not self.ignored else args.ignoring(self.ignored)
