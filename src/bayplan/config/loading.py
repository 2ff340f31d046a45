"""A configuration text or file into a `SchedulerConfig`, or into one error with every problem.

The order: text to data with lines, version, fields and types, defaults, rules, then v1beta2 to v1. Problems carry the
paths and lines of the document as it was written. Plugins are not known here: whether a name exists and what its
arguments mean is settled by `bayplan.config.profiles`, which has the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from bayplan.api.documents import Document, DocumentError, Table, parse_documents
from bayplan.config.errors import ConfigError, Problem, Problems
from bayplan.config.model import (
    API_VERSION,
    ClientConnection,
    ConfigDocument,
    ExtenderConfig,
    LeaderElection,
    ProfileConfig,
    SchedulerConfig,
    Source,
)
from bayplan.config.own import OWN_KIND
from bayplan.config.reading import Reader
from bayplan.config.validation import Checker, validate, validate_queue_sort
from bayplan.config.versions import check_header, check_version_fields, from_v1beta2, hint_for_unknown

__all__ = ["default_config", "load_config", "load_config_file", "only_document", "read_config_text"]

DEFAULT_SCHEDULER_NAME = "default-scheduler"
_WEIGHED = ("score", "multiPoint", "placementScore")


def default_config() -> SchedulerConfig:
    """What runs without a configuration file."""
    return load_config({"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"})


def load_config(given: str | Path | Mapping[str, Any], *, source: str = "configuration") -> SchedulerConfig:
    """A configuration from its text (YAML or JSON), from a `Path`, or from data. Raises `ConfigError`.

    `source` is the name of a text or of data in messages; use `load_config_file` for a file named by a string.
    """
    if isinstance(given, Path):
        return load_config_file(given)
    try:
        return _load(only_document(given, source, example=f"apiVersion: {API_VERSION}"), source)
    except RecursionError:
        raise ConfigError([Problem("", "is nested too deeply")], source=source) from None


def load_config_file(path: str | Path) -> SchedulerConfig:
    return load_config(read_config_text(path), source=str(path))


def read_config_text(path: str | Path) -> str:
    """Raises `ConfigError`."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([Problem("", f"not UTF-8 text (byte {error.start})")], source=str(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError([Problem("", f"cannot be read: {reason}")], source=str(path)) from None


def only_document(given: str | Mapping[str, Any], source: str, *, example: str) -> Table:
    """The one document of a text, or data as it would be read from one. Raises `ConfigError`."""
    if not isinstance(given, str):
        return _as_table(given)
    try:
        documents: list[Document] = []
        for document in parse_documents(given):
            documents.append(document)
            if len(documents) > 1:
                problem = Problem("", "expected one document, found a second", _hint_for(document), document.line)
                raise ConfigError([problem], source=source)
    except DocumentError as error:
        raise ConfigError([Problem("", error.message, line=error.line)], source=source) from None
    if not documents:
        raise ConfigError([Problem("", "is empty", f"write at least `{example}`")], source=source)
    value = documents[0].value
    if not isinstance(value, Table):
        raise ConfigError([Problem("", "expected a mapping, found something else", line=1)], source=source)
    return value


def _hint_for(second: Document) -> str:
    is_ours = isinstance(second.value, Table) and second.value.get("kind") == OWN_KIND
    return "give it as a file of its own with --bayplan-config" if is_ours else "keep the first alone"


def _as_table(data: Mapping[str, Any]) -> Table:
    table = Table()
    table.update({str(key): value for key, value in data.items()})
    return table


def _load(document: Table, source: str) -> SchedulerConfig:
    problems = Problems()
    version = check_header(document, problems)
    problems.raise_if_any(source)
    reader = Reader(problems, unknown_hint=hint_for_unknown)
    read = reader.read(check_version_fields(document, version, problems), ConfigDocument)
    if read is None:
        problems.raise_if_any(source)
        raise ConfigError([Problem("", "cannot be read")], source=source)
    config = _completed(read)
    check = Checker(problems, reader.lines)
    validate(config, check)
    converted = config.profiles
    if version == "v1beta2":
        converted = tuple(from_v1beta2(profile) for profile in config.profiles)
    validate_queue_sort(converted, check)
    problems.raise_if_any(source)
    return SchedulerConfig(
        **{name: getattr(config, name) for name in config.__struct_fields__ if name not in ("profiles", "api_version")},
        api_version=API_VERSION,
        profiles=converted,
        sources=_sources(reader.lines, source, config.profiles, converted),
        warnings=_warnings(config, version, check),
    )


def _completed(config: ConfigDocument) -> ConfigDocument:
    """Defaults that depend on other values, and zero values that stand for the default as they do in Go."""
    profiles = config.profiles or (ProfileConfig(),)
    if len(profiles) == 1 and not profiles[0].scheduler_name:
        profiles = (msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    contention = config.enable_contention_profiling
    return msgspec.structs.replace(
        config,
        profiles=profiles,
        leader_election=_nonzero(config.leader_election, LeaderElection()),
        client_connection=_nonzero(config.client_connection, ClientConnection()),
        extenders=tuple(_nonzero(extender, ExtenderConfig(), only="http_timeout") for extender in config.extenders),
        enable_contention_profiling=config.enable_profiling if contention is None else contention,
    )


def _nonzero(given: Any, defaults: Any, *, only: str = "") -> Any:
    zero = ("", 0, 0.0, timedelta(0))
    names = [only] if only else [name for name in given.__struct_fields__ if name != "leader_elect"]
    changes = {name: getattr(defaults, name) for name in names if getattr(given, name) in zero}
    return msgspec.structs.replace(given, **changes)


def _sources(
    lines: Mapping[str, int],
    file: str,
    written: tuple[ProfileConfig, ...],
    converted: tuple[ProfileConfig, ...],
) -> Mapping[str, Source]:
    """By path of the loaded form. Lists that conversion rearranged are matched by plugin name."""
    sources = {path: Source(file, line) for path, line in lines.items() if path}
    for index, (before, after) in enumerate(zip(written, converted, strict=True)):
        if before is not after:
            _rearrange(sources, f"profiles[{index}].plugins", before, after)
    return MappingProxyType(sources)


def _rearrange(sources: dict[str, Source], path: str, before: ProfileConfig, after: ProfileConfig) -> None:
    old = {key: sources.pop(key) for key in list(sources) if key.startswith(f"{path}.")}
    kinds: tuple[Literal["enabled", "disabled"], ...] = ("enabled", "disabled")
    for kind in kinds:
        written = {(point, plugin.name): place for point, place, plugin in before.plugins.entries(kind)}
        for point, place, plugin in after.plugins.entries(kind):
            was = f"{path}.{written.get((point, plugin.name), '-')}"
            is_now = f"{path}.{place}"
            sources.update({is_now + key[len(was) :]: value for key, value in old.items() if key.startswith(was)})


def _warnings(config: ConfigDocument, version: str, check: Checker) -> tuple[Problem, ...]:
    found = []
    if version != "v1":
        message = f"{version} is deprecated; it is read as v1"
        found.append(Problem("apiVersion", message, "rewrite it with --write-config-to", check.line_of("apiVersion")))
    for index, profile in enumerate(config.profiles):
        for point, place, plugin in profile.plugins.entries("enabled"):
            if plugin.weight and point not in _WEIGHED:
                path = f"profiles[{index}].plugins.{place}.weight"
                hint = "set it at `score` or `multiPoint`"
                found.append(Problem(path, "a weight has no effect here", hint, check.line_of(path)))
    return tuple(found)
