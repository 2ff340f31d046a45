"""Case files: one JSON object a line, each a cluster with a pending pod, evaluated one after the other."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from bayplan.api.kinds import kind_named
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profile
from bayplan.explain.case import JsonObject, evaluate_one, evaluate_sequence
from bayplan.plugins.intree import default_registry

__all__ = ["CaseError", "evaluate_case"]

K = TypeVar("K", bound=KubeObject)


class CaseError(ValueError):
    """A case that cannot be read."""


def evaluate_case(case: JsonObject) -> JsonObject | list[JsonObject]:
    """The result of one case: an object for a single pod, a list for a sequence."""
    registry = default_registry()
    config = load_config(msgspec.json.encode(case["config"]).decode())
    profiles = [resolve_profile(profile, registry) for profile in config.profiles]
    objects = [_object(item, f"objects[{place}]") for place, item in enumerate(case["objects"])]
    scheduler = OfflineScheduler(profiles, registry, objects)
    if "pods" in case:
        return evaluate_sequence(scheduler, [_pod(item, f"pods[{i}]") for i, item in enumerate(case["pods"])])
    return evaluate_one(scheduler, _pod(case["pod"], "pod"))


def _object(item: Any, path: str) -> KubeObject:
    kind = kind_named(item.get("apiVersion", ""), item.get("kind", "")) if isinstance(item, dict) else None
    if kind is None:
        raise CaseError(f"{path}: not an object of a kind that scheduling reads")
    return _convert(item, kind.type, path)


def _pod(item: Any, path: str) -> Pod:
    return _convert(item, Pod, path)


def _convert(item: Any, type_: type[K], path: str) -> K:
    try:
        return msgspec.convert(item, type_)
    except msgspec.ValidationError as error:
        raise CaseError(f"{path}: {error}") from error
