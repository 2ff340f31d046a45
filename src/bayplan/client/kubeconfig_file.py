"""Reads and merges kubeconfig files, and reports what is wrong with them.

The rules are kubectl's: KUBECONFIG is a list of files; of two entries with one name the first file's wins; files that
do not exist are skipped unless a file was named outright; paths inside a file are relative to that file. This module
defines the shape of the document; `kubeconfig` resolves a context into an access.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bayplan.api.documents import DocumentError, read_plain
from bayplan.client.errors import KubeconfigError

JsonValue = object
"""A value of a parsed YAML document, of unknown shape until it is converted."""


class ClusterEntry(msgspec.Struct, rename="kebab", omit_defaults=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[Extension] = []


class Extension(msgspec.Struct):
    name: str
    extension: JsonValue = None


class ExecEnvVar(msgspec.Struct):
    name: str
    value: str = ""


class Exec(msgspec.Struct, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] = []
    env: list[ExecEnvVar] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(msgspec.Struct):
    name: str = ""


class UserEntry(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None

    def __repr__(self) -> str:
        return "User(<not shown>)"


class ContextEntry(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct):
    name: str
    cluster: ClusterEntry


class NamedUser(msgspec.Struct):
    name: str
    user: UserEntry = msgspec.field(default_factory=UserEntry)


class NamedContext(msgspec.Struct):
    name: str
    context: ContextEntry


class KubeconfigDocument(msgspec.Struct, rename="kebab"):
    """One file."""

    clusters: list[NamedCluster] = []
    users: list[NamedUser] = []
    contexts: list[NamedContext] = []
    current_context: str = ""


class Merged(msgspec.Struct):
    """All files as one, each entry with the folder that its relative paths start from."""

    clusters: dict[str, tuple[ClusterEntry, Path]]
    users: dict[str, tuple[UserEntry, Path]]
    contexts: dict[str, ContextEntry]
    current_context: str
    files: list[Path]


def kubeconfig_paths(environment: Mapping[str, str]) -> list[Path]:
    """The files kubectl would read: those of KUBECONFIG, else ~/.kube/config."""
    listed = [entry for entry in environment.get("KUBECONFIG", "").split(os.pathsep) if entry]
    if listed:
        return [Path(entry) for entry in dict.fromkeys(listed)]
    home = environment.get("HOME") or os.path.expanduser("~")
    return [Path(home, ".kube", "config")]


def read_merged(paths: Sequence[Path], *, named_by: str = "") -> Merged:
    """Read and merge. A missing file is an error if an option or a field, `named_by`, names it; else it is skipped."""
    merged = Merged(clusters={}, users={}, contexts={}, current_context="", files=[])
    for path in paths:
        document = _read_document(path, named_by)
        if document is not None:
            _merge(merged, document, path)
    return merged


def _merge(merged: Merged, document: KubeconfigDocument, path: Path) -> None:
    folder = path.absolute().parent
    for cluster in document.clusters:
        merged.clusters.setdefault(cluster.name, (cluster.cluster, folder))
    for user in document.users:
        merged.users.setdefault(user.name, (user.user, folder))
    for context in document.contexts:
        merged.contexts.setdefault(context.name, context.context)
    merged.current_context = merged.current_context or document.current_context
    merged.files.append(path)


def _read_document(path: Path, named_by: str) -> KubeconfigDocument | None:
    try:
        text = path.read_bytes()
    except FileNotFoundError as error:
        if not named_by:
            return None
        raise KubeconfigError(
            f"the kubeconfig `{path}` does not exist", hint=f"check {named_by}, or leave it out to use KUBECONFIG"
        ) from error
    except OSError as error:
        raise KubeconfigError(
            f"cannot read the kubeconfig `{path}`: {error.strerror}", hint="check the file's owner and permissions"
        ) from error
    document = _converted(_parsed(text, path), path)
    _refuse_duplicates(document, path)
    return document


def _parsed(text: bytes, path: Path) -> JsonValue:
    """The YAML value. The error names the line and never quotes it: lines of a kubeconfig are secrets."""
    try:
        return _without_nulls(read_plain(text).value)
    except DocumentError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise KubeconfigError(
            f"the kubeconfig `{place}` is not YAML", hint="open it at that place; `kubectl config view` reads it too"
        ) from None


def _converted(value: JsonValue, path: Path) -> KubeconfigDocument:
    try:
        return msgspec.convert(value if value is not None else {}, KubeconfigDocument)
    except msgspec.ValidationError as error:
        raise KubeconfigError(
            f"the kubeconfig `{path}` is not as expected: {error}",
            hint="compare with `kubectl config view`; names and values must be text, lists must be lists",
        ) from None


def _without_nulls(value: JsonValue) -> JsonValue:
    """kubectl writes `users: null` for an empty list, and reads null as absent everywhere."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


_Named = TypeVar("_Named", NamedCluster, NamedUser, NamedContext)


def _refuse_duplicates(document: KubeconfigDocument, path: Path) -> None:
    for section, names in (
        ("clusters", _names(document.clusters)),
        ("users", _names(document.users)),
        ("contexts", _names(document.contexts)),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise KubeconfigError(
                f"the kubeconfig `{path}` has `{twice[0]}` more than once under `{section}`",
                hint="remove or rename one of the entries",
            )


def _names(entries: Iterable[_Named]) -> list[str]:
    return [entry.name for entry in entries]
