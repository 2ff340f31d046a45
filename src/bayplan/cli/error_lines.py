"""Turns exceptions about the input into error lines. Exceptions that are not listed here are internal errors.

Imports the packages of these exceptions, so it is imported only after a failure.
"""

from __future__ import annotations

import errno

from cyclopts import CycloptsError

from bayplan.api.decode import InputError
from bayplan.api.quantity import QuantityError
from bayplan.app.settings import SettingsError
from bayplan.cli.usage_errors import usage_lines
from bayplan.config.errors import ConfigError
from bayplan.explain.offline.case import UnknownProfile
from bayplan.explain.offline.cases import CaseError
from bayplan.framework.errors import PluginError
from bayplan.sim.engine.simulation import SimulationError
from bayplan.sim.sweep import SweepError

__all__ = ["error_lines", "usage_of"]


_NAMES_OF_FILES = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES)
"""What asking whether a file is there may end with."""


def error_lines(error: BaseException) -> list[str]:
    """A line for each problem, with the file and the path where there are some; none for anything unexpected."""
    if isinstance(error, SettingsError):
        # Its own lines name the file once for all problems; each problem should stand alone here.
        return (error_lines(error.__cause__) if error.__cause__ else []) or list(error.problems)
    if isinstance(error, ConfigError):
        prefix = f"{error.source}: " if error.source else ""
        return [f"{prefix}{problem}" for problem in error.problems]
    if isinstance(error, PluginError):
        return [f"{error.subject}: {problem}" for problem in error.problems]
    if isinstance(error, QuantityError):
        return [str(error)]
    if isinstance(error, CycloptsError):
        return usage_lines(error)
    if isinstance(error, InputError | CaseError | UnknownProfile | SimulationError | SweepError):
        return [str(error)]
    if isinstance(error, OSError) and error.errno in _NAMES_OF_FILES and error.filename:
        return [f"{error.filename}: {error.strerror}"]
    if isinstance(error, OverflowError):
        return ["a number in the input is larger than the 64 bits that Kubernetes has for it"]
    return []


def usage_of(error: BaseException, command: str) -> str:
    """The command, with those below it, whose help says what it takes; empty where its line is not what is wrong."""
    return " ".join(error.command_chain or (command,)) if isinstance(error, CycloptsError) else ""
