"""A configuration with its plugins, read once and adapted to run inside a cluster.

How plugins reach the cluster is in `bayplan.deploy.plugin_files`. The configuration is kept as its author wrote it,
version included, except for what is wrong inside a pod: the path of a kubeconfig, and the lease of the default
scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bayplan.api.documents import read_plain
from bayplan.app.settings import Settings, SettingsError, load_settings
from bayplan.config.errors import ConfigError
from bayplan.config.loading import load_config
from bayplan.config.model import API_VERSION
from bayplan.config.own_loading import load_own_config_file
from bayplan.config.profiles import resolve_profiles
from bayplan.deploy.plugin_files import PluginFiles, collect_plugins
from bayplan.deploy.rbac import Lease
from bayplan.framework.errors import PluginError
from bayplan.framework.plugin import Plugin
from bayplan.plugins.intree import default_registry

__all__ = ["Bundle", "load_bundle"]

DEFAULT_SCHEDULER = "default-scheduler"
CONFIG_FILE = "config.yaml"
OWN_CONFIG_FILE = "bayplan.yaml"
Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Configuration, plugins and the files that carry them."""

    name: str
    settings: Settings
    config: Document
    """As written, or generated when there was none."""
    carried: PluginFiles
    """The files of the plugins."""
    own: Document
    """The BayplanConfiguration as written, without plugins, which are carried; empty without one."""
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
        return self.settings.plugins

    @property
    def watches(self) -> list[type[Any]]:
        """The custom resource types of those plugins."""
        return self.settings.watches

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

    @property
    def own_text(self) -> str:
        return yaml.safe_dump(self.own, sort_keys=False, allow_unicode=True, width=120)

    def run_arguments(self, folder: str, *, archives: str | None = None) -> list[str]:
        """Arguments of `bayplan run` for this bundle in a folder, with its zips and wheels in another one."""
        carried = self.carried
        texts = [f"{folder}/{name}" for name in sorted(carried.texts)]
        zips = [f"{archives or folder}/{name}" for name in sorted(carried.archives)]
        own = [f"--bayplan-config={folder}/{OWN_CONFIG_FILE}"] if self.own else []
        plugins = [f"--plugin={plugin}" for plugin in (*texts, *zips, *carried.modules)]
        return [f"--config={folder}/{CONFIG_FILE}", *own, *plugins]


def load_bundle(
    config: Path | None, plugins: Sequence[str], *, name: str | None = None, own_config: Path | None = None
) -> Bundle:
    """Read and check everything. Without a configuration, one profile of that name runs the plugins beside the default
    ones. Raises `SettingsError`."""
    own, own_plugins = _own(own_config)
    plugins = [*own_plugins, *plugins]
    if config is None:
        document, settings = _made_up(name or "bayplan", plugins)
    else:
        settings = load_settings(config, plugins)
        document = read_plain(config.read_bytes()).value
    first = settings.profiles[0].scheduler_name
    return Bundle(
        name=name or ("bayplan" if first == DEFAULT_SCHEDULER else first),
        settings=settings,
        config=document,
        carried=collect_plugins(plugins),
        own=own,
        source=config,
        specs=tuple(plugins),
    )


def _own(path: Path | None) -> tuple[Document, tuple[str, ...]]:
    """The BayplanConfiguration as written but for its plugins, and these."""
    if path is None:
        return {}, ()
    try:
        loaded = load_own_config_file(path)
    except ConfigError as error:
        raise SettingsError(str(error).splitlines()) from error
    document = read_plain(path.read_bytes()).value
    return {field: value for field, value in document.items() if field != "plugins"}, loaded.plugins


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
