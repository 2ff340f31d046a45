"""Case files: one JSON object a line, each a cluster with a pending pod, evaluated one after the other.

`CaseEvaluator` keeps what cases share (the registry, profiles of a configuration that comes up again), which is most of
the work on a small cluster. Cases are taken as an API server would serve them: nothing is defaulted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from bayplan.api.decode import InputError, decode_object
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.config import ResolvedProfile, SchedulerConfig, default_config, load_config, resolve_profiles
from bayplan.config.errors import ConfigError
from bayplan.explain.claims.base import JsonObject
from bayplan.explain.offline.case import UnknownProfile, evaluate_one, evaluate_sequence
from bayplan.explain.whatif.raw_objects import check_pod
from bayplan.framework.registry import Registry
from bayplan.plugins.intree import default_registry

__all__ = ["CaseError", "CaseEvaluator", "evaluate_case"]

_KEPT_CONFIGS = 64


class CaseError(ValueError):
    """A case that cannot be read or evaluated, in one line."""


class CaseEvaluator:
    """Evaluates cases one by one; complete after construction, and usable for any number of them."""

    def __init__(self, registry: Registry | None = None, *, config: SchedulerConfig | None = None) -> None:
        self._registry = default_registry() if registry is None else registry
        self._config = default_config() if config is None else config
        self._profiles = lru_cache(_KEPT_CONFIGS)(self._resolve)

    def evaluate(self, case: Any) -> JsonObject | list[JsonObject]:
        """An object for a single pod, a list for a sequence. Raises `CaseError`."""
        if not isinstance(case, dict):
            raise CaseError("expected an object with `objects` and `pod` or `pods`")
        try:
            return self._evaluate(case)
        except ConfigError as error:
            problems = "; ".join(f"config: {problem}" for problem in error.problems)
            raise CaseError(problems) from error
        except (InputError, UnknownProfile) as error:
            raise CaseError(str(error)) from error
        except OverflowError as error:
            raise CaseError("a number is larger than the 64 bits that Kubernetes has for it") from error

    def _evaluate(self, case: JsonObject) -> JsonObject | list[JsonObject]:
        profiles = self._profiles(msgspec.json.encode(case.get("config")))
        objects = [_object(item, f"objects[{place}]") for place, item in enumerate(_list_of(case, "objects"))]
        scheduler = OfflineScheduler(profiles, self._registry, objects)
        if "pods" in case:
            pods = [_pod(item, f"pods[{place}]") for place, item in enumerate(_list_of(case, "pods"))]
            _refuse_doubles(objects, pods)
            return evaluate_sequence(scheduler, pods)
        if "pod" not in case:
            raise CaseError("`pod` is missing; a case has a `pod`, or `pods` for a sequence")
        return evaluate_one(scheduler, _pod(case["pod"], "pod"))

    def _resolve(self, text: bytes) -> Sequence[ResolvedProfile]:
        given = msgspec.json.decode(text)
        if given is not None and not isinstance(given, dict):
            raise CaseError("config: expected a KubeSchedulerConfiguration")
        config = self._config if given is None else load_config(text.decode(), source="config")
        return resolve_profiles(config, self._registry)


def evaluate_case(case: Any) -> JsonObject | list[JsonObject]:
    """The result of one case, with the built-in plugins."""
    return _default_evaluator().evaluate(case)


@lru_cache(1)
def _default_evaluator() -> CaseEvaluator:
    return CaseEvaluator()


def _refuse_doubles(objects: Iterable[KubeObject], pods: Iterable[Pod]) -> None:
    """Each pod of a sequence is placed, so none may be there already."""
    there = {item.uid or item.key for item in objects if isinstance(item, Pod)}
    for place, pod in enumerate(pods):
        identity = pod.uid or pod.key
        if identity in there:
            raise CaseError(f"pods[{place}]: the pod `{pod.key}` is there already")
        there.add(identity)


def _list_of(case: JsonObject, name: str) -> list[Any]:
    given = case.get(name)
    if not isinstance(given, list):
        raise CaseError(f"{name}: expected a list, found {'something else' if name in case else 'nothing'}")
    return given


def _object(item: Any, path: str) -> KubeObject:
    decoded = decode_object(item, where=path)
    assert decoded is not None  # unread kinds are refused, not left out
    if isinstance(decoded, Pod):
        check_pod(decoded, where=path)
    return decoded


def _pod(item: Any, path: str) -> Pod:
    """Pending pods may leave out what kind of object they are."""
    decoded = decode_object(item, where=path, inherited={"apiVersion": "v1", "kind": "Pod"})
    if not isinstance(decoded, Pod):
        raise CaseError(f"{path}: expected a Pod, found a {type(decoded).__name__}")
    check_pod(decoded, where=path)
    return decoded
