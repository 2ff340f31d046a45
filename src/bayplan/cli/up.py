"""`bayplan up`: a cluster in this process, with simulated nodes and the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bayplan.cli.options import Names, named_path, option, path_of, plugin_option, verbosity_option
from bayplan.cli.output import CommandError, note, print_error, progress
from bayplan.cli.own_flags import OwnConfig, OwnFlags, Record
from bayplan.cli.scheduler_client import EXTENSION

if TYPE_CHECKING:
    from bayplan.apiserver.simulation.devices import DeviceModel
    from bayplan.app.settings import Settings
    from bayplan.config.own import BayplanConfig
    from bayplan.config.profiles import ResolvedProfile
    from bayplan.observe.logs import Log
    from bayplan.sim.local import LocalCluster, LocalOptions

__all__ = ["up"]

MOST_NODES = 100_000
_DEFAULT_SCHEDULER = "default-scheduler"
EXAMPLES = """\
{program} up --nodes 20
{program} up --nodes 20 --devices gpu.example.com=8
{program} up --plugin score_by_label.py --watch
{program} up --from dump.yaml --config scheduler.yaml
"""


def up(
    *,
    nodes: Annotated[int | None, option("--nodes", metavar="NUMBER", about="number of simulated nodes (3)")] = None,
    node_file: Annotated[str | None, option("--node-file", metavar="FILE", about="manifests of the nodes")] = None,
    dump: Annotated[
        str | None, option("--from", metavar="FILE", about="start from a `kubectl get -o yaml` dump")
    ] = None,
    from_kubeconfig: Annotated[
        str | None, option("--from-kubeconfig", metavar="FILE", about="start from a real cluster, which is only read")
    ] = None,
    devices: Annotated[
        Names,
        option("--devices", metavar="DEVICES", about="of all nodes: DRIVER=COUNT, or a FILE about them"),
    ] = None,
    config: Annotated[str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration")] = None,
    plugin: Annotated[Names, plugin_option("enable")] = None,
    watch: Annotated[bool, option("--watch", about="reload plugins and configuration when a file is saved")] = False,
    kubeconfig_out: Annotated[
        str | None, option("--kubeconfig-out", metavar="FILE", about="kubeconfig to write")
    ] = None,
    data_dir: Annotated[
        str | None, option("--data-dir", metavar="FOLDER", about="keep the objects in this folder across restarts")
    ] = None,
    address: Annotated[
        str, option("--address", metavar="ADDRESS", about="address to listen on (127.0.0.1)")
    ] = "127.0.0.1",
    port: Annotated[int, option("--port", metavar="PORT", about="port of the API server (any free one)")] = 0,
    dashboard_port: Annotated[
        int, option("--dashboard-port", metavar="PORT", about="port of the dashboard (any free one); -1 for none")
    ] = 0,
    own: OwnConfig = None,
    record: Record = None,
    seed: Annotated[int | None, option("--seed", metavar="NUMBER", about="seed of random choices (0)")] = None,
    quiet: Annotated[bool, option("--quiet", about="do not print decisions")] = False,
    verbosity: Annotated[int | None, verbosity_option()] = None,
) -> int:
    """Start a cluster in this process, with simulated nodes and the scheduler, until Ctrl-C.

    kubectl, Helm and client libraries can use it like any cluster. Nothing leaves this machine.
    """
    from bayplan.app.settings import SettingsError, load_settings
    from bayplan.cli.run import recorder_of, run_on_fast_loop
    from bayplan.sim.local import LocalOptions

    own_config = OwnFlags(file=own, record=record).config()
    plugins = [*own_config.plugins, *(plugin or [])]
    _check_numbers(nodes=nodes, port=port, dashboard_port=dashboard_port)
    log = _configure_log(verbosity)
    folder = path_of(data_dir or None)
    try:
        settings = load_settings(path_of(config), plugins, enable=True)
    except SettingsError as error:
        raise CommandError(*error.problems) from error
    for caution in settings.cautions:
        note(str(caution))
    documents = _documents(settings, node_file, dump, from_kubeconfig)
    has_nodes = any(document.get("kind") == "Node" for document in documents) or _is_restart(folder)
    options = LocalOptions(
        nodes=(0 if has_nodes else 3) if nodes is None else nodes,
        objects=documents,
        data_dir=folder,
        host=address,
        port=port,
        seed=own_config.seed if seed is None else seed,
        devices=_device_models(devices or []),
    )
    with _problems_as_lines(), recorder_of(own_config, plugins) as recorder:
        serving = _serve(
            settings,
            replace(options, recorder=recorder),
            _kubeconfig_path(kubeconfig_out, folder),
            config=config,
            plugins=plugins,
            own=own_config,
            log=log,
            watch=watch,
            quiet=quiet,
            dashboard_port=dashboard_port,
        )
        return run_on_fast_loop(serving)


def _configure_log(verbosity: int | None) -> Log:
    """Without -v, of the scheduler itself only warnings: the operator's log would hide what a new user needs."""
    from bayplan.observe.logs import LogSettings, configure_logging

    try:
        return configure_logging(LogSettings(verbosity=verbosity or 0, is_own_quiet=verbosity is None))
    except ValueError as error:
        raise CommandError(f"-v: {error}") from error


def _device_models(given: Sequence[str]) -> list[DeviceModel]:
    from bayplan.api.documents import DocumentError, parse_documents
    from bayplan.apiserver.simulation.devices import UnusableModel, read_models

    try:
        described: list[Any] = []
        for text in given:
            if "=" in text:
                described.append(text)
                continue
            for document in parse_documents(named_path(text).read_text(encoding="utf-8")):
                described += document.value if isinstance(document.value, list) else [document.value]
        return read_models(described)
    except (UnusableModel, DocumentError, UnicodeDecodeError) as error:
        raise CommandError(f"--devices: {error}") from error
    except OSError as error:
        raise CommandError(f"--devices: {error.filename}: {error.strerror}") from error


def _check_numbers(*, nodes: int | None, port: int, dashboard_port: int) -> None:
    if nodes is not None and not 0 <= nodes <= MOST_NODES:
        raise CommandError(f"--nodes is a number from 0 to {MOST_NODES:,}, not {nodes}")
    for name, number, least in (("--port", port, 0), ("--dashboard-port", dashboard_port, -1)):
        if not least <= number <= 65535:
            raise CommandError(f"{name} is a number from {least} to 65535, not {number}")


@contextlib.contextmanager
def _problems_as_lines() -> Iterator[None]:
    """Turn errors about files, addresses and other clusters into error lines."""
    from bayplan.apiserver.cluster import UnsafeAddress
    from bayplan.apiserver.server.own_objects import RefusedObject
    from bayplan.apiserver.storage.persistence import UnusableDataDir
    from bayplan.client.errors import ClientError
    from bayplan.server.options import ServingError

    try:
        yield
    except (RefusedObject, UnsafeAddress, UnusableDataDir, ClientError) as problem:
        what, _, hint = str(problem).partition("\nhint: ")
        raise CommandError(what, hint=hint) from problem
    except BrokenPipeError:
        raise  # of standard output
    except ServingError as problem:
        what, _, hint = str(problem).partition("\nhint: ")
        raise CommandError(f"--dashboard-port: {what}", hint=hint) from problem
    except OSError as problem:
        hint = "check --address, --port, --data-dir and --kubeconfig-out"
        # Of two names the second is the one that was wanted; the first is written before it takes its place.
        name = problem.filename2 or problem.filename
        what = problem.strerror or str(problem)
        raise CommandError(f"{name}: {what}" if name else what, hint=hint) from problem


def _is_restart(folder: Path | None) -> bool:
    """Whether the data directory is in use already: it has its own nodes then, and none are generated."""
    return folder is not None and (folder / "objects.sqlite3").is_file()


def _kubeconfig_path(given: str | None, folder: Path | None) -> Path:
    return (path_of(given or None) or _default_kubeconfig(folder)).absolute()


def _own_definitions(settings: Settings, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Definitions of the custom resources that enabled plugins own and watch, where nothing given defines them."""
    from bayplan.deploy.crds import SchemaError, crd_documents, owned_kinds

    given = {each["metadata"]["name"] for each in documents if each.get("kind") == "CustomResourceDefinition"}
    try:
        made = crd_documents(owned_kinds(settings.watches))
        return [each for each in made if each["metadata"]["name"] not in given]
    except SchemaError as error:
        raise CommandError(str(error)) from error


def _default_kubeconfig(folder: Path | None) -> Path:
    if folder is not None:
        return folder / "kubeconfig"
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "bayplan" / "kubeconfig"


def _documents(
    settings: Settings, node_file: str | None, dump: str | None, from_kubeconfig: str | None
) -> list[dict[str, Any]]:
    """What the cluster starts with."""
    from bayplan.sim.dump_completion import completed, servable
    from bayplan.sim.sources import read_documents, read_live_objects

    documents: list[dict[str, Any]] = []
    for name in (node_file, dump):
        if name is not None:
            documents += read_documents(named_path(name))
    if from_kubeconfig is not None:
        with _problems_as_lines():
            documents += asyncio.run(read_live_objects(named_path(from_kubeconfig)))
    documents, left_out = servable(documents)
    for line in left_out:
        note(line)
    return [*_own_definitions(settings, documents), *completed(documents)]


async def _serve(
    settings: Any,
    options: LocalOptions,
    kubeconfig: Path,
    *,
    config: str | None,
    plugins: Sequence[str],
    own: BayplanConfig,
    log: Log,
    watch: bool,
    quiet: bool,
    dashboard_port: int,
) -> int:
    from bayplan.app.decision_logger import DecisionLogger
    from bayplan.app.serving import LocalMetrics
    from bayplan.explain.terminal.decision_printer import DecisionPrinter
    from bayplan.explain.wiring import Explaining
    from bayplan.observe.clock import SystemClock
    from bayplan.server.options import ServerOptions
    from bayplan.server.serving import serve
    from bayplan.sim.local import LocalCluster
    from bayplan.sim.reloading import Reloader

    clock = SystemClock()
    current = [settings]
    explaining = Explaining(clock, settings=lambda: current[0], decisions=own.decisions)
    stop = _stop_on_signals()
    lines = _DecisionLines(stop)
    printers = [] if quiet else [DecisionPrinter(lines.say)]
    metrics = LocalMetrics(clock)
    decision_log = DecisionLogger(log, slow_seconds=own.logging.slow_call.total_seconds())
    listening = (*options.observers, metrics.observer, *explaining.observers, *printers, decision_log)
    options = replace(options, observers=listening, on_move=decision_log.moved)
    log.show_plugins_in(settings.plugin_places)

    def put_to_work(fresh: Any) -> None:
        local.reload(fresh)
        current[0] = fresh
        log.show_plugins_in(fresh.plugin_places)
        for caution in fresh.cautions:
            note(str(caution))

    def report(what: str, problems: Sequence[str]) -> None:
        _report_reload(what, problems)
        explaining.note_reload(what, problems)

    token = secrets.token_urlsafe(24)
    pages = ServerOptions(is_plain_http=True, loopback_token=token, port=max(0, dashboard_port))
    pages = replace(pages, is_enabled=dashboard_port >= 0)
    dashboard = serve(pages, metrics.parts(explaining.routes()))
    async with contextlib.AsyncExitStack() as opened:
        count = options.nodes if isinstance(options.nodes, int) else len(options.nodes)
        with progress(f"starting a cluster of {count + len(options.objects)} objects"):
            starting = asyncio.create_task(opened.enter_async_context(LocalCluster(settings, options)))
            await _first_of(starting, stop)
        if starting.cancelled():
            note("stopped")
            return 0
        local = starting.result()
        serving = await opened.enter_async_context(dashboard)
        explaining.attach(local.live)
        decision_log.attach(local.live)
        metrics.live = local.live
        _write_kubeconfig(local, kubeconfig, {"server": serving.url, "token": token} if serving.url else {})
        _welcome(local, settings.profiles, kubeconfig, f"{serving.url}/?token={token}" if serving.url else "")
        waits: list[asyncio.Task[Any]] = [
            asyncio.create_task(stop.wait()),
            asyncio.create_task(local.ended()),
            asyncio.create_task(explaining.run()),
        ]
        if watch:
            file = path_of(config)
            reloader = Reloader(file, plugins, put_to_work=put_to_work, report=report, clock=clock)
            waits.append(asyncio.create_task(reloader.run()))
        await _until_one_ends(waits)
    if lines.is_closed:
        raise BrokenPipeError
    note("stopped")
    return 0


class _DecisionLines:
    """Standard output, each line at once, also into a pipe; a reader that has closed it ends the cluster."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self.is_closed = False

    def say(self, line: str) -> None:
        try:
            if not self.is_closed:
                print(line, flush=True)
        except BrokenPipeError:
            self.is_closed = True
            self._stop.set()


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _until_one_ends(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel the others then; raises what ended it."""
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()


async def _first_of(starting: asyncio.Task[LocalCluster], stop: asyncio.Event) -> None:
    """Wait for the start; a signal in the meantime cancels it."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
    stopping.cancel()


def _write_kubeconfig(local: LocalCluster, path: Path, scheduler: Mapping[str, str]) -> None:
    """The cluster entry also names the scheduler with its token, so that `bayplan explain` and `pending` find it."""
    import yaml

    from bayplan.apiserver.storage.private_files import write_private

    document = local.cluster.kubeconfig()
    if scheduler:
        extension = {"name": EXTENSION, "extension": dict(scheduler)}
        document["clusters"][0]["cluster"]["extensions"] = [extension]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())


def _welcome(local: LocalCluster, profiles: Sequence[ResolvedProfile], kubeconfig: Path, dashboard: str) -> None:
    """What to type next: the command must make a pod that one of the profiles schedules."""
    count = len(local.live.cache.cluster.nodes)
    print(f"a cluster of {count} nodes is up at {local.cluster.url}\n", flush=True)
    print(f"  export KUBECONFIG={kubeconfig}")
    names = [profile.scheduler_name for profile in profiles]
    if _DEFAULT_SCHEDULER not in names:
        override = f'{{"spec":{{"schedulerName":"{names[0]}"}}}}'
        print(f"  kubectl run web --image=nginx --overrides='{override}'")
    elif Path("examples/web.yaml").is_file():
        print("  kubectl apply -f examples/web.yaml      # or: bayplan apply -f examples/web.yaml")
    else:
        print("  kubectl create deployment web --image=nginx --replicas=5")
    print("  kubectl get pods -o wide --watch        # or: bayplan get pods -o wide")
    print(f"  open {dashboard}\n" if dashboard else "", flush=True)


def _report_reload(what: str, problems: Sequence[str]) -> None:
    if problems:
        print_error([what, *problems])
    else:
        note(what)
