"""`--validate`: what becomes of fields that the kind of an object does not have: refused, reported or ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from bayplan.api.decode import InputError
from bayplan.apiserver.kinds.unknown_fields import unknown_fields
from bayplan.cli.documents import FoundObject
from bayplan.cli.options import option
from bayplan.cli.output import note

__all__ = ["FIELD_VALIDATION", "Validate", "check_fields"]

Validate = Annotated[
    Literal["strict", "warn", "ignore"],
    option("--validate", metavar="MODE", about="fields that a kind does not have: strict (refuse), warn, or ignore"),
]
FIELD_VALIDATION = {"strict": "Strict", "warn": "Warn", "ignore": "Ignore"}
"""The words of API servers."""


def check_fields(found: FoundObject, validate: str) -> None:
    """Refuse, report or ignore the fields of an object of a file that its kind does not have. Raises `InputError`."""
    problems = unknown_fields(found.item) if validate != "ignore" else []
    if problems and validate == "strict":
        raise InputError("; ".join(problems), source=found.source, where=found.where)
    for problem in problems:
        note(": ".join(part for part in (found.source, found.where, problem) if part))
