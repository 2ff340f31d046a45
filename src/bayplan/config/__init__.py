"""SETTINGS: KubeSchedulerConfiguration v1, v1beta3 and v1beta2, and BayplanConfiguration beside it.

    config = load_config_file("scheduler.yaml")
    profiles = resolve_profiles(config, registry)

`load_config` checks all that needs no plugins, `resolve_profiles` the rest. Either succeeds whole, or raises one
`ConfigError` with every problem.
"""

from bayplan.config.errors import ConfigError, Problem
from bayplan.config.loading import default_config, load_config, load_config_file
from bayplan.config.model import ExtenderConfig, ProfileConfig, SchedulerConfig, Source
from bayplan.config.own import BayplanConfig
from bayplan.config.own_loading import load_own_config, load_own_config_file
from bayplan.config.profiles import ResolvedProfile, resolve_profile, resolve_profiles

__all__ = [
    "BayplanConfig",
    "ConfigError",
    "ExtenderConfig",
    "Problem",
    "ProfileConfig",
    "ResolvedProfile",
    "SchedulerConfig",
    "Source",
    "default_config",
    "load_config",
    "load_config_file",
    "load_own_config",
    "load_own_config_file",
    "resolve_profile",
    "resolve_profiles",
]
