"""Flags for settings that kube-scheduler does not have: a BayplanConfiguration, and the common fields of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from bayplan.cli.options import option, path_of
from bayplan.cli.output import CommandError
from bayplan.cli.run_flags import duration_of

if TYPE_CHECKING:
    from bayplan.config.own import BayplanConfig

__all__ = ["OwnConfig", "OwnFlags", "Record", "read_own_config"]

OwnConfig = Annotated[
    str | None,
    option("--bayplan-config", metavar="FILE", about="a BayplanConfiguration: what kube-scheduler has no setting for"),
]


Record = Annotated[
    str | None,
    option("--record", metavar="FILE", about="append what is seen and decided to this file, to replay it later"),
]


@dataclass(frozen=True, kw_only=True)
class OwnFlags:
    """Each overrides a field of the BayplanConfiguration."""

    file: OwnConfig = None
    decision_file: Annotated[
        str | None, option("--decision-file", metavar="FILE", about="append every decision to this file, rotated")
    ] = None
    decision_memory: Annotated[
        str | None, option("--decision-memory", metavar="SIZE", about="memory for decisions to explain (64Mi)")
    ] = None
    record: Record = None
    stall_limit: Annotated[
        str | None,
        option(
            "--stall-limit",
            metavar="DURATION",
            about="time after which a scheduler that stands still ends (1m); 0: never",
        ),
    ] = None
    with_controllers: Annotated[
        bool | None, option("--with-controllers", about="also write the status of PodGroups and ElasticQuotas")
    ] = None
    seed: Annotated[int | None, option("--seed", metavar="NUMBER", about="seed of random choices (0)")] = None

    def config(self) -> BayplanConfig:
        """The file with these flags in place of its fields. Raises CommandError with every problem."""
        from bayplan.config.errors import ConfigError
        from bayplan.config.own_loading import load_own_config

        document = read_own_config(self.file).to_dict()
        for field, value in self._overrides().items():
            section, _, name = field.rpartition(".")
            (document.setdefault(section, {}) if section else document)[name] = value
        try:
            return load_own_config(document, source="flags")
        except ConfigError as error:
            raise CommandError(
                *(f"{_FLAGS.get(each.path, each.path)}: {each.message}" for each in error.problems)
            ) from error

    def _overrides(self) -> dict[str, Any]:
        limit = None
        if self.stall_limit is not None:
            try:
                limit = f"{duration_of(self.stall_limit):f}s"
            except ValueError as error:
                raise CommandError(f"--stall-limit: {error}") from error
        target, recording = path_of(self.decision_file), path_of(self.record)
        given = {
            "decisions.file": None if target is None else str(target),
            "decisions.memory": self.decision_memory,
            "recording.file": None if recording is None else str(recording),
            "watchdog.endAfter": limit,
            "withControllers": self.with_controllers,
            "seed": self.seed,
        }
        return {field: value for field, value in given.items() if value is not None}


_FLAGS = {"decisions.memory": "--decision-memory", "watchdog.endAfter": "--stall-limit", "seed": "--seed"}


def read_own_config(file: str | None) -> BayplanConfig:
    """The file's settings, or the defaults. Raises CommandError with every problem."""
    from bayplan.config.errors import ConfigError
    from bayplan.config.own import BayplanConfig
    from bayplan.config.own_loading import load_own_config_file

    path = path_of(file)
    try:
        return BayplanConfig() if path is None else load_own_config_file(path)
    except ConfigError as error:
        raise CommandError(*(f"{error.source}: {problem}" for problem in error.problems)) from error
