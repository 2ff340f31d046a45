"""The libraries of functions; `KUBERNETES` has those of the base environment of Kubernetes."""

from __future__ import annotations

from bayplan.cel.declarations import Library
from bayplan.cel.library.containers import BINDINGS, OPTIONALS, SETS, TWO_VARIABLES
from bayplan.cel.library.formats import FORMATS
from bayplan.cel.library.lists import KUBERNETES_LISTS, LISTS
from bayplan.cel.library.network import CIDRS, IPS
from bayplan.cel.library.quantity import QUANTITIES
from bayplan.cel.library.regular_expressions import REGULAR_EXPRESSIONS
from bayplan.cel.library.semver import SEMVERS
from bayplan.cel.library.strings import STRINGS

__all__ = ["KUBERNETES"]

KUBERNETES: tuple[Library, ...] = (
    REGULAR_EXPRESSIONS,
    KUBERNETES_LISTS,
    OPTIONALS,
    QUANTITIES,
    STRINGS,
    SETS,
    IPS,
    CIDRS,
    FORMATS,
    TWO_VARIABLES,
    SEMVERS,
    LISTS,
    BINDINGS,
)
"""In the order of Kubernetes, which is the order in which overloads are tried."""
