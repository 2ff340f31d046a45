"""What of a pod may change once it is there, by an update and by the subresource `resize`, as the real server has it.

An update may change images, shorten a deadline, add tolerations and take gates away; while a pod has gates, it may also
tighten the node selector and the required node affinity. A resize may change CPU and memory of containers.
"""

from __future__ import annotations

from bayplan.apiserver.kinds.pod_admission import quality_of_service
from bayplan.apiserver.kinds.pod_resources import amounts_of
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue
from bayplan.apiserver.protocol.errors import Cause

__all__ = ["validate_resize", "validate_update"]

_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_GROUPS = ("containers", "initContainers")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MIRROR = "kubernetes.io/config.mirror"
_RESIZABLE = ("cpu", "memory")
_THERE_OR_NOT = ("podAffinity", "podAntiAffinity")


def validate_update(new: Json, old: Json) -> list[Cause]:
    """Of two specs of one pod."""
    for group in _GROUPS:
        if len(new.get(group) or ()) != len(old.get(group) or ()):
            return [errors.forbidden_field(f"spec.{group}", "pod updates may not add or remove containers")]
    causes = [*_deadline(new, old), *_tolerations(new, old), *_gates(new, old)]
    compared = _with_changeable_of(new, old)
    if _gate_names(old):
        causes += _tightened(compared, old)
        compared = _with(compared, "nodeSelector", old.get("nodeSelector"))
        affinity = _with(
            compared.get("affinity") or {}, "nodeAffinity", (old.get("affinity") or {}).get("nodeAffinity")
        )
        compared = _with(compared, "affinity", affinity)
    if _without_nothing(compared) != _without_nothing(old):
        causes.append(errors.forbidden_field("spec", _FORBIDDEN))
    return causes


def _with_changeable_of(new: Json, old: Json) -> Json:
    """The new spec with what may change as it was."""
    compared = new
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        compared = _with(compared, name, old.get(name))
    for group in _GROUPS:
        pairs = zip(new.get(group) or (), old.get(group) or (), strict=True)
        compared = _with(compared, group, [_with(one, "image", other.get("image")) for one, other in pairs])
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        compared = _with(compared, "terminationGracePeriodSeconds", old["terminationGracePeriodSeconds"])
    # They are set by a subresource of their own; an update leaves them as they are.
    return _with(compared, "ephemeralContainers", old.get("ephemeralContainers"))


def _with(document: Json, name: str, value: JsonValue) -> Json:
    return {**document, name: value}


def _without_nothing(value: JsonValue) -> JsonValue:
    """Without what is absent, empty or null, which are the same to the server; but for parts that are there or not."""
    if isinstance(value, dict):
        kept = {name: _without_nothing(part) for name, part in value.items()}
        return {
            name: part
            for name, part in kept.items()
            if part not in (None, {}, []) or (part == {} and name in _THERE_OR_NOT)
        }
    return [_without_nothing(part) for part in value] if isinstance(value, list) else value


def _deadline(new: Json, old: Json) -> list[Cause]:
    wanted, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if wanted is None:
        detail = "must not update from a positive integer to nil value"
        return [errors.invalid_value(path, None, detail)] if before is not None else []
    if not 0 <= wanted <= 2**31 - 1:
        return [errors.invalid_value(path, wanted, "must be between 0 and 2147483647, inclusive")]
    if before is not None and before < wanted:
        return [errors.invalid_value(path, wanted, "must be less than or equal to previous value")]
    return []


def _tolerations(new: Json, old: Json) -> list[Cause]:
    left = [_with(each, "tolerationSeconds", None) for each in new.get("tolerations") or ()]
    if all(_with(each, "tolerationSeconds", None) in left for each in old.get("tolerations") or ()):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [errors.forbidden_field("spec.tolerations", detail)]


def _gates(new: Json, old: Json) -> list[Cause]:
    added = _gate_names(new) - _gate_names(old)
    if not added:
        return []
    detail = f"only deletion is allowed, but found new scheduling gate '{min(added)}'"
    return [errors.forbidden_field("spec.schedulingGates", detail)]


def _gate_names(spec: Json) -> set[str]:
    return {gate.get("name", "") for gate in spec.get("schedulingGates") or []}


def _tightened(new: Json, old: Json) -> list[Cause]:
    """Whether a gated pod selects no other nodes than fewer of those that it selected."""
    causes = []
    selector, before = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if not before.items() <= selector.items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        causes.append(errors.invalid_value("spec.nodeSelector", selector, detail))
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms, old_terms = _terms(new), _terms(old)
    if old_terms and len(terms) != len(old_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*causes, errors.invalid_value(path, terms, detail)]
    for place, (term, old_term) in enumerate(zip(terms, old_terms, strict=False)):
        if not _has_only_additions(term, old_term):
            detail = "only additions are allowed (no mutations or deletions)"
            causes.append(errors.invalid_value(f"{path}[{place}]", term, detail))
    return causes


def _terms(spec: Json) -> list[Json]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []


def _has_only_additions(term: Json, old: Json) -> bool:
    parts = [(term.get(name) or [], old.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(before for _, before in parts):
        return not any(now for now, _ in parts)
    return all(now[: len(before)] == before for now, before in parts)


def validate_resize(new: Json, old: Json) -> list[Cause]:
    """Of two versions of one pod, which differ in resources of containers."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [errors.forbidden_field("", "static pods cannot be resized")]
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return [errors.forbidden_field("", "windows pods cannot be resized")]
    causes = []
    quality = quality_of_service(new["spec"])
    if quality != quality_of_service(old["spec"]):
        causes.append(errors.invalid_value("spec", quality, "Pod QOS Class may not change as a result of resizing"))
    for group in _GROUPS:
        pairs = zip(new["spec"].get(group) or (), old["spec"].get(group) or (), strict=True)
        for place, (one, other) in enumerate(pairs):
            causes += _resized(one.get("resources") or {}, other.get("resources") or {}, group, place)
    return causes


def _resized(new: Json, old: Json, group: str, place: int) -> list[Cause]:
    """The resources of one container."""
    causes = []
    is_other = False
    for part in ("requests", "limits"):
        now, before = amounts_of(new.get(part)), amounts_of(old.get(part))
        if set(before) - set(now):
            path = f"spec.{group}[{place}].resources.{part}"
            causes.append(errors.forbidden_field(path, f"resource {part} cannot be removed"))
        is_other |= any(now.get(name) != before.get(name) for name in {*now, *before} - set(_RESIZABLE))
    if is_other and group == "containers":
        causes.append(errors.forbidden_field("spec", "only cpu and memory resources are mutable"))
    elif is_other:
        detail = "only cpu and memory resources for init or sidecar containers are mutable"
        causes.append(errors.forbidden_field(f"spec.{group}[{place}]", detail))
    return causes
