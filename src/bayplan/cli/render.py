"""`bayplan render`: manifests, definitions, a chart and the files of a static pod, out of what plugins declare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App

from bayplan.cli.options import Names, named_path, option, path_of, plugin_option
from bayplan.cli.output import CommandError, note, print_value
from bayplan.cli.own_flags import OwnConfig

if TYPE_CHECKING:
    from bayplan.deploy.bundle import Bundle
    from bayplan.deploy.plugin_files import PluginFiles

__all__ = ["app", "chart", "crds", "image", "manifests", "static_pod"]

app = App(help="Write what a cluster needs to run this configuration with these plugins.", version_flags=())

Config = Annotated[str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration")]
Plugins = Annotated[Names, plugin_option("deploy")]
Name = Annotated[str | None, option("--name", metavar="NAME", about="name of the objects (that of the first profile)")]
Image = Annotated[str | None, option("--image", metavar="IMAGE", about="image with bayplan (bayplan:VERSION)")]
MemoryLimit = Annotated[
    str, option("--memory-limit", metavar="SIZE", about="memory limit of the scheduler (2Gi); empty for none")
]
Volume = Annotated[
    str,
    option("--plugin-volume", metavar="CLAIM", about="claim of the volume with zips and wheels of --plugin (none)"),
]
Folder = Annotated[str, option("--output", "-o", metavar="FOLDER", about="folder to write to")]
Printed = Annotated[
    Literal["yaml", "json", "name"], option("--output", "-o", metavar="FORMAT", about="output format (yaml)")
]
Where = Annotated[
    Literal["none", "scheduler", "deployment"],
    option("--controllers", metavar="WHERE", about="where the PodGroup and ElasticQuota controllers run (none)"),
]
_DEFAULT_SCHEDULER = "default-scheduler"
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""Of RFC 1123; the name of a namespace is one."""
_MOST_IN_ANNOTATION = 190_000
"""`kubectl apply` keeps a copy in an annotation, and annotations hold 256 KiB together."""


@app.command
def manifests(
    *,
    config: Config = None,
    plugin: Plugins = None,
    name: Name = None,
    image: Image = None,
    namespace: Annotated[
        str, option("--namespace", "-n", metavar="NAME", about="namespace of the scheduler (kube-system)")
    ] = "kube-system",
    replicas: Annotated[
        int, option("--replicas", metavar="NUMBER", about="number of replicas (1); two or more elect a leader")
    ] = 1,
    controllers: Where = "none",
    own: OwnConfig = None,
    memory_limit: MemoryLimit = "2Gi",
    plugin_volume: Volume = "",
    output: Printed = "yaml",
) -> None:
    """Print the manifests of a second scheduler, for `kubectl apply -f -`.

    Service account, roles, definitions of custom resources that plugins own, configuration and deployment, each with
    what the enabled plugins declare and no more. Plugins that are files go into the ConfigMap, packages as a zip;
    MODULE:CLASS must be in the image. With --plugin-volume, zips and wheels are read from a volume instead, in whose
    root they have to be. --controllers says where the status of PodGroups and ElasticQuotas is written: nowhere, in
    the process of the scheduler, or in a deployment of their own.
    """
    from bayplan.app.settings import SettingsError
    from bayplan.deploy.manifests import DEFAULT_IMAGE, ManifestOptions
    from bayplan.deploy.manifests import manifests as documents

    if replicas < 1:
        raise CommandError(f"--replicas {replicas}: run one at least")
    _check_names(namespace, memory_limit)
    bundle = _bundle(config, plugin, name, own)
    if (bundle.config.get("clientConnection") or {}).get("kubeconfig"):
        note(f"{config}: clientConnection.kubeconfig is left out; inside the cluster a service account takes its place")
    if _DEFAULT_SCHEDULER in bundle.scheduler_names:
        note(
            "a profile is called default-scheduler, so this scheduler and the cluster's own would both place the same "
            "pods; give it a schedulerName of its own, or use `bayplan render static-pod` to take the default's place"
        )
    options = ManifestOptions(
        namespace=namespace,
        image=image or DEFAULT_IMAGE,
        replicas=replicas,
        controllers=controllers,
        memory_limit=memory_limit,
        plugin_volume=plugin_volume,
    )
    try:
        _print(documents(bundle, options), output)
    except SettingsError as error:
        raise CommandError(*error.problems) from error
    _note_carried(bundle.carried, plugin_volume)
    _note_foreign(bundle.watches, bundle.options)


def _note_carried(carried: PluginFiles, volume: str) -> None:
    """What to know about plugins in a ConfigMap or on a volume."""
    if carried.missing_dependencies:
        note(
            f"the zip holds the package alone; it depends on {', '.join(carried.missing_dependencies)}: install that "
            "into the image (`bayplan render image`), or make a zip that holds it (`pip install --target`)"
        )
    if volume and carried.archives:
        note(f"copy {', '.join(sorted(carried.archives))} into the root of the volume `{volume}`")
    elif carried.size_bytes > _MOST_IN_ANNOTATION:
        note(f"the plugins have {carried.size_bytes:,} bytes; apply them with `kubectl apply --server-side -f -`")


@app.command
def crds(
    *,
    config: Config = None,
    plugin: Plugins = None,
    name: Name = None,
    all_kinds: Annotated[bool, option("--all", about="include resources that other projects define")] = False,
    output: Printed = "yaml",
) -> None:
    """Print the definitions (CRDs) of the custom resources that plugins own, with their schemas.

    Of the plugins that the configuration enables; without one, of --plugin; without either, of all that come with
    bayplan. --all adds definitions of other projects, for clusters without them: applied over the project's own
    definition, a narrower schema makes the API server drop fields.
    """
    from bayplan.deploy.crds import SchemaError, crd_documents, owned_kinds

    bundle = _bundle(config, plugin, name) if config or plugin else None
    kinds = _shipped_watches() if bundle is None else bundle.watches
    try:
        _print(crd_documents(kinds if all_kinds else owned_kinds(kinds)), output)
    except SchemaError as error:
        raise CommandError(str(error)) from error
    if not all_kinds:
        _note_foreign(kinds, bundle.options if bundle else "")


def _note_foreign(kinds: list[type[Any]], options: str) -> None:
    from bayplan.deploy.crds import foreign_kinds
    from bayplan.framework.resources import resource_info

    names = sorted({resource_info(kind).crd_name for kind in foreign_kinds(kinds)})
    if names:
        note(
            f"{', '.join(names)}: defined by other projects and left out; for a cluster that lacks them, "
            f"`bayplan render crds --all{options}` prints them"
        )


def _shipped_watches() -> list[type[Any]]:
    from bayplan.plugins.intree import default_registry
    from bayplan.plugins.shipped import COMMUNITY

    registry = default_registry()
    return [kind for name in COMMUNITY for kind in registry.get(name).watches]


@app.command
def chart(
    *,
    output: Folder,
    config: Config = None,
    plugin: Plugins = None,
    name: Name = None,
    image: Image = None,
    own: OwnConfig = None,
) -> None:
    """Write a Helm chart into a folder.

    Its values are those of the scheduler-plugins chart: scheduler, plugins and pluginConfig. The plugins that are
    enabled there decide which permissions and definitions are installed.
    """
    from bayplan.deploy.chart import chart_files
    from bayplan.deploy.manifests import DEFAULT_IMAGE

    bundle = _bundle(config, plugin, name, own)
    _write(output, chart_files(bundle, image=image or DEFAULT_IMAGE))
    _note_carried(bundle.carried, "")


@app.command
def image(
    *,
    plugin: Plugins,
    base: Annotated[
        str | None,
        option(
            "--image", metavar="IMAGE", about="image with bayplan to build on (bayplan:VERSION); name@sha256:… pins it"
        ),
    ] = None,
) -> None:
    """Print a Dockerfile that adds plugin projects to an image with bayplan.

    For packages with dependencies. Run it in the folder that holds the project, and build there:
    bayplan render image --plugin . > Dockerfile, then docker build -t NAME .
    """
    from bayplan.app.settings import SettingsError
    from bayplan.deploy.image import dockerfile
    from bayplan.deploy.manifests import DEFAULT_IMAGE

    try:
        print(dockerfile(plugin or (), base=base or DEFAULT_IMAGE, context=Path.cwd()), end="")
    except SettingsError as error:
        raise CommandError(*error.problems) from error


@app.command
def static_pod(
    *, output: Folder, config: Config = None, plugin: Plugins = None, image: Image = None, own: OwnConfig = None
) -> None:
    """Write the files that put bayplan in the place of a cluster's own kube-scheduler.

    For clusters whose control plane runs as static pods, as kubeadm's does; the README.txt among the files says what
    goes where, and how to go back.
    """
    from bayplan.deploy.manifests import DEFAULT_IMAGE
    from bayplan.deploy.static_pod import static_pod_files

    bundle = _bundle(config, plugin, None if config else _DEFAULT_SCHEDULER, own)
    if _DEFAULT_SCHEDULER not in bundle.scheduler_names:
        note("no profile is called default-scheduler, so pods that name no scheduler would stay pending; add one")
    _write(output, static_pod_files(bundle, image=image or DEFAULT_IMAGE))
    _note_foreign(bundle.watches, bundle.options)


def _bundle(config: str | None, plugins: Names, name: str | None, own: str | None = None) -> Bundle:
    from bayplan.app.settings import SettingsError
    from bayplan.deploy.bundle import load_bundle

    try:
        return load_bundle(path_of(config), plugins or (), name=name, own_config=path_of(own))
    except SettingsError as error:
        raise CommandError(*error.problems) from error


def _print(documents: list[Any], form: Literal["yaml", "json", "name"]) -> None:
    if form == "json":
        print_value({"apiVersion": "v1", "kind": "List", "items": documents}, form)
    elif form == "name":
        for document in documents:
            print(f"{document['kind'].lower()}/{document['metadata']['name']}")
    else:
        _print_yaml(documents)


def _print_yaml(documents: list[Any]) -> None:
    import sys

    import yaml

    class Dumper(yaml.SafeDumper):
        """Texts of several lines as blocks, so that the configuration can be read; no anchors."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, block)
    yaml.dump_all(documents, sys.stdout, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def _check_names(namespace: str, memory_limit: str) -> None:
    """An API server would refuse the manifests, and name an object of them instead of the option."""
    from bayplan.api.quantity import QuantityError, value

    if not _LABEL.fullmatch(namespace):
        what = f"--namespace: expected lower case letters, digits and hyphens, found `{namespace}`"
        raise CommandError(what, hint="write a name such as kube-system")
    try:
        is_size = not memory_limit or value(memory_limit) > 0
    except QuantityError:
        is_size = False
    if not is_size:
        raise CommandError(f"--memory-limit: expected a size such as `2Gi`, found `{memory_limit}`")


def _write(folder: str, contents: dict[str, str | bytes]) -> None:
    """All files of a folder that is new, empty, or holds an earlier rendering."""
    target = named_path(folder)
    try:
        for name, content in contents.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise CommandError(f"cannot write {error.filename or target}: {error.strerror or error}") from error
    for name in contents:
        print(target / name)
