"""A configuration with its plugins, read once and adapted to run inside a cluster.

A plugin that is a file goes into the ConfigMap, so that trying one needs no image of its own; a plugin that is a
`module:Class` must be in the image. The configuration is kept as its author wrote it, version included, except for what
is wrong inside a pod: the path of a kubeconfig, and the lease of the default scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bayplan.app.settings import Settings, SettingsError, load_settings
from bayplan.config.errors import ConfigError
from bayplan.config.loading import load_config
from bayplan.config.model import API_VERSION
from bayplan.config.profiles import resolve_profiles
from bayplan.deploy.rbac import Lease
from bayplan.framework.errors import PluginError
from bayplan.framework.plugin import Plugin
from bayplan.plugins.intree import default_registry

__all__ = ["Bundle", "load_bundle"]

DEFAULT_SCHEDULER = "default-scheduler"
CONFIG_FILE = "config.yaml"
Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Configuration, plugins and the files that carry them."""

    name: str
    settings: Settings
    config: Document
    """As written, or generated when there was none."""
    plugin_files: dict[str, str]
    """File name to content."""
    plugin_modules: tuple[str, ...]
    source: Path | None = None
    """The configuration's file."""
    specs: tuple[str, ...] = ()
    """The plugins as they were named."""

    @property
    def options(self) -> str:
        """The command line options that name this configuration and these plugins."""
        config = f" --config {self.source}" if self.source else f" --name {self.name}"
        return config + "".join(f" --plugin {spec}" for spec in self.specs)

    @property
    def plugins(self) -> list[type[Plugin]]:
        """Every plugin class that some profile runs."""
        names = dict.fromkeys(name for profile in self.settings.profiles for name in profile.plugin_names)
        return [self.settings.registry.get(name) for name in names]

    @property
    def watches(self) -> list[type[Any]]:
        """The custom resource types of those plugins."""
        return list(dict.fromkeys(kind for plugin in self.plugins for kind in plugin.watches))

    @property
    def scheduler_names(self) -> list[str]:
        return [profile.scheduler_name for profile in self.settings.profiles]

    @property
    def elects(self) -> bool:
        return self.settings.config.leader_election.leader_elect

    def lease(self, namespace: str) -> Lease:
        """The lease of its own that a second scheduler uses, unless the configuration names one."""
        given = self.config.get("leaderElection") or {}
        return Lease(given.get("resourceName") or self.name, given.get("resourceNamespace") or namespace)

    def config_text(self, *, namespace: str, leader_elect: bool | None = None) -> str:
        """The configuration as it goes into the cluster."""
        document = dict(self.config)
        lease = self.lease(namespace)
        document["leaderElection"] = {
            **(document.get("leaderElection") or {}),
            "leaderElect": self.elects if leader_elect is None else leader_elect,
            "resourceName": lease.name,
            "resourceNamespace": lease.namespace,
        }
        connection = {k: v for k, v in (document.pop("clientConnection", None) or {}).items() if k != "kubeconfig"}
        if connection:
            document["clientConnection"] = connection
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)

    def run_arguments(self, folder: str) -> list[str]:
        """Arguments of `bayplan run` for this bundle in a folder."""
        plugins = [*(f"{folder}/{name}" for name in sorted(self.plugin_files)), *self.plugin_modules]
        return [f"--config={folder}/{CONFIG_FILE}", *(f"--plugin={plugin}" for plugin in plugins)]


def load_bundle(config: Path | None, plugins: Sequence[str], *, name: str | None = None) -> Bundle:
    """Read and check everything. Without a configuration, one profile of that name runs the plugins beside the default
    ones. Raises `SettingsError`."""
    files = _file_names(spec for spec in plugins if spec.endswith(".py"))
    if config is None:
        document, settings = _made_up(name or "bayplan", plugins)
    else:
        settings = load_settings(config, plugins)
        document = yaml.safe_load(config.read_text(encoding="utf-8-sig"))
    first = settings.profiles[0].scheduler_name
    return Bundle(
        name=name or ("bayplan" if first == DEFAULT_SCHEDULER else first),
        settings=settings,
        config=document,
        plugin_files={file: path.read_text(encoding="utf-8") for file, path in files.items()},
        plugin_modules=tuple(spec for spec in plugins if not spec.endswith(".py")),
        source=config,
        specs=tuple(plugins),
    )


def _file_names(specs: Iterable[str]) -> dict[str, Path]:
    """A name for each plugin file in one flat folder; a package's `__init__.py` takes the package's name."""
    named: dict[str, Path] = {}
    for spec in specs:
        path = Path(spec)
        name = f"{path.resolve().parent.name}.py" if path.name == "__init__.py" else path.name
        if name in named:
            raise SettingsError([f"{spec}: another plugin file is called `{name}` too; rename one of them"])
        named[name] = path
    return named


def _made_up(name: str, plugins: Sequence[str]) -> tuple[Document, Settings]:
    try:
        registry = default_registry()
        enabled = [{"name": cls.name} for spec in plugins for cls in registry.load(spec)]
        profile: Document = {"schedulerName": name}
        if enabled:
            profile["plugins"] = {"multiPoint": {"enabled": enabled}}
        document: Document = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
        config = load_config(document)
        return document, Settings(config=config, profiles=resolve_profiles(config, registry), registry=registry)
    except (ConfigError, PluginError) as error:
        raise SettingsError(str(error).splitlines()) from error
