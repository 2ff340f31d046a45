"""Custom resources as Python types: declare the class once, get a typed lister, events, RBAC and the CRD.

    class LicensePool(CustomResource, group="licensing.example.com", version="v1", plural="licensepools"):
        spec: LicensePoolSpec

    class LicenseFit(Plugin):
        watches = (LicensePool,)

        def filter(self, state, pod, node):
            pool = self.handle.resources(LicensePool).get(node.name)

Fields are typed as in any msgspec struct; nested structs derive from `ResourcePart`. What an object holds beyond the
declared fields is skipped, and an object that does not fit its type is reported by name and left out. This module
reads and writes nothing; `bayplan.app` follows the objects and `bayplan.deploy` renders the CRD, if the type has
`owned=True`. A type without it describes a resource that another project defines.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform

import msgspec

from bayplan.api.kinds import ObjectKind
from bayplan.api.meta import KubeObject, Struct
from bayplan.api.suggest import closest
from bayplan.cluster.objects import Objects
from bayplan.framework.args import FieldsByName
from bayplan.framework.events import ALL, ActionType, ClusterEvent

__all__ = [
    "CustomResource",
    "ObjectLister",
    "PrinterColumn",
    "ResourceInfo",
    "ResourcePart",
    "object_kinds",
    "resource_info",
]

R = TypeVar("R", bound="CustomResource")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


class PrinterColumn(NamedTuple):
    """A column of `kubectl get`, from a field of the object."""

    name: str
    path: str
    """As in `.status.phase`."""
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"


class ResourceInfo(NamedTuple):
    """Where a custom resource lives in the API, and how it is shown."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    is_namespaced: bool
    short_names: tuple[str, ...]
    columns: tuple[PrinterColumn, ...] = ()
    approved_by: str = ""
    """Where the definition was reviewed; groups of Kubernetes itself ask for it."""
    is_owned: bool = False
    """Whether the package of the type defines the resource. Only then `bayplan render` writes its definition: a schema
    that is derived from a type may be narrower than the one of another project."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def path(self) -> str:
        """The collection over all namespaces."""
        return f"/apis/{self.group}/{self.version}/{self.plural}"

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def event_name(self) -> str:
        """How cluster events name it, as in kube-scheduler: `<plural>.<version>.<group>`."""
        return f"{self.plural}.{self.version}.{self.group}"


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class ResourcePart(Struct, metaclass=FieldsByName):
    """Base of the structs inside a custom resource: camelCase in YAML, snake_case in Python, unknown fields skipped."""


class _ResourceType(FieldsByName):
    """Takes the API coordinates from the class line; msgspec takes the rest."""

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        group: str = "",
        version: str = "",
        plural: str = "",
        kind: str = "",
        singular: str = "",
        scope: Literal["Namespaced", "Cluster"] = "Namespaced",
        short_names: tuple[str, ...] = (),
        columns: tuple[PrinterColumn, ...] = (),
        approved_by: str = "",
        owned: bool = False,
        **options: Any,
    ) -> Any:
        _check_options(name, options)
        made: Any = super().__new__(mcs, name, bases, namespace, **options)
        if group or version or plural:
            kind = kind or name
            info = ResourceInfo(
                group=group,
                version=version,
                plural=plural,
                kind=kind,
                singular=singular or kind.lower(),
                is_namespaced=scope == "Namespaced",
                short_names=tuple(short_names),
                columns=tuple(columns),
                approved_by=approved_by,
                is_owned=owned,
            )
            _check(name, info, scope)
            made.__resource__ = info
        return made


_OPTIONS = ("group", "version", "plural", "kind", "singular", "scope", "short_names", "columns", "approved_by", "owned")
_OF_STRUCTS = set(inspect.signature(msgspec.defstruct).parameters) - {"name", "fields", "bases", "module"}
_OTHER_WORDS = {"namespaced": 'scope="Namespaced"', "is_namespaced": 'scope="Namespaced"', "cluster": 'scope="Cluster"'}


def _check_options(name: str, options: dict[str, Any]) -> None:
    for option in options.keys() - _OF_STRUCTS:
        like = _OTHER_WORDS.get(option) or closest(option, _OPTIONS)
        if option in _OTHER_WORDS and options[option] is False:
            like = 'scope="Cluster"'
        hint = f"write `{like}`" if like else f"it takes {', '.join(_OPTIONS)}"
        raise TypeError(f"custom resource `{name}`: `{option}` is not an option; {hint}")


def _check(name: str, info: ResourceInfo, scope: str) -> None:
    problems = []
    if not _GROUP.fullmatch(info.group):
        problems.append(f'group `{info.group}` is not a domain name; write group="scheduling.example.com"')
    if not _LABEL.fullmatch(info.version):
        problems.append(f'version `{info.version}` is not a version; write version="v1alpha1"')
    if not _LABEL.fullmatch(info.plural):
        problems.append(f'plural `{info.plural}` is not lower case; write plural="{info.kind.lower()}s"')
    if not _KIND.fullmatch(info.kind):
        problems.append(f"kind `{info.kind}` must start with a capital letter")
    if scope not in ("Namespaced", "Cluster"):
        problems.append(f'scope `{scope}` is unknown; write scope="Namespaced" or scope="Cluster"')
    if problems:
        raise TypeError(f"custom resource `{name}`: " + "; ".join(problems))


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class CustomResource(KubeObject, metaclass=_ResourceType):
    """Base of custom resource types; see the module. `metadata` is there already, add `spec` and `status`."""

    @classmethod
    def changes(cls, action: ActionType = ALL) -> ClusterEvent:
        """The cluster event that a change of such an object is; for `events_to_register`."""
        return ClusterEvent(resource_info(cls).event_name, action)


def resource_info(kind: type[Any]) -> ResourceInfo:
    """Where the type lives in the API. Raises TypeError for a class that does not say."""
    info: ResourceInfo | None = getattr(kind, "__resource__", None)
    if info is None:
        raise TypeError(
            f"`{kind.__name__}` is not a custom resource; write "
            f'`class {kind.__name__}(CustomResource, group="...", version="v1", plural="...")`'
        )
    return info


def object_kinds(watched: Iterable[type[Any]]) -> dict[tuple[str, str], ObjectKind]:
    """Custom resource types by `apiVersion` and `kind`, as `bayplan.api.decode` reads them."""
    infos = [(kind, resource_info(kind)) for kind in watched]
    return {
        (info.api_version, info.kind): ObjectKind(kind, info.group, info.version, info.plural, info.is_namespaced)
        for kind, info in infos
    }


class ObjectLister:
    """A synced, typed view of one custom resource: `framework.handle.ResourceLister` over the cluster."""

    def __init__(self, objects: Objects, kind: type[Any]) -> None:
        self._objects = objects
        self._kind = kind

    def get(self, name: str, namespace: str = "") -> Any:
        """The object, or None when there is none (or it did not fit its type)."""
        return self._objects.get(self._kind, f"{namespace}/{name}" if namespace else name)

    def list(self, namespace: str | None = None) -> list[Any]:
        """All of them, or those of one namespace, by name."""
        return sorted(self._objects.list(self._kind, namespace), key=lambda item: item.key)

    def on_change(self, callback: Callable[[Any, Any], None]) -> None:
        """Call back with (old, new) after each change. Methods are held weakly, so a replaced plugin can be freed."""
        self._objects.on_change(self._kind, callback)
