"""`bayplan run`: the scheduler as a process, with kube-scheduler's flags where they mean the same."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from bayplan.cli.options import Names, named_path, option, path_of, plugin_option, verbosity_option
from bayplan.cli.output import CommandError, note
from bayplan.cli.own_flags import OwnFlags
from bayplan.cli.run_flags import ElectionFlags, ServingFlags, duration_of, shown_flags

if TYPE_CHECKING:
    from bayplan.app.settings import Settings
    from bayplan.config.own import BayplanConfig, DecisionSettings
    from bayplan.explain.wiring import Explaining
    from bayplan.observe.clock import Clock
    from bayplan.server.options import ServerOptions
    from bayplan.sim.recording.writing import RecordingWriter

__all__ = ["recorder_of", "run", "run_on_fast_loop", "server_of"]

EXAMPLES = """\
{program} run --config scheduler.yaml
{program} run --config scheduler.yaml --plugin score_by_label.py --kubeconfig ~/.kube/staging
{program} run --config scheduler.yaml --write-config-to effective.yaml
"""

_Qps = Annotated[
    float | None, option("--kube-api-qps", metavar="NUMBER", about="limit of requests a second; negative for none")
]
_LONGEST_WAIT = "--pod-max-in-unschedulable-pods-duration"
_LongestWait = Annotated[
    str,
    option(
        _LONGEST_WAIT,
        metavar="DURATION",
        about="time after which a pod is retried without an event (5m)",
    ),
]
_LoggingFormat = Annotated[
    Literal["text", "json"], option("--logging-format", metavar="FORMAT", about="log format: text or json")
]


def run(
    *,
    config: Annotated[str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration")] = None,
    plugin: Annotated[Names, plugin_option("load")] = None,
    kubeconfig: Annotated[str | None, option("--kubeconfig", metavar="FILE", about="kubeconfig of the cluster")] = None,
    context: Annotated[str | None, option("--context", metavar="NAME", about="context in the kubeconfig")] = None,
    election: Annotated[ElectionFlags | None, Parameter(name="*")] = None,
    qps: _Qps = None,
    burst: Annotated[int | None, option("--kube-api-burst", metavar="NUMBER", about="requests in a burst")] = None,
    pod_max_in_unschedulable: _LongestWait = "5m",
    serving: Annotated[ServingFlags | None, Parameter(name="*")] = None,
    logging_format: _LoggingFormat = "text",
    verbosity: Annotated[int, verbosity_option()] = 0,
    write_config_to: Annotated[
        str | None, option("--write-config-to", metavar="FILE", about="write the effective configuration and exit")
    ] = None,
    own: Annotated[OwnFlags | None, Parameter(name="*")] = None,
) -> int:
    """Run the scheduler against a cluster until it is stopped.

    SIGTERM and Ctrl-C finish the bindings in flight and release the lease. SIGHUP reads the configuration and the
    plugins again, and keeps the old ones if the new ones are bad. SIGUSR2 compares the cache with the objects of the
    API server, and writes cache and queue to the log. Without --kubeconfig: the one that the configuration names,
    KUBECONFIG, ~/.kube/config, or the service account of the pod.
    """
    _load_structlog()
    from bayplan.app.run import run_scheduler
    from bayplan.app.run_options import RunOptions
    from bayplan.app.settings import SettingsError, load_settings
    from bayplan.client.errors import ClientError
    from bayplan.server.options import ServingError

    flags = shown_flags(run, locals())
    serving = serving or ServingFlags()
    own_config = (own or OwnFlags()).config()
    plugins = [*own_config.plugins, *(plugin or [])]
    try:
        options = RunOptions(
            config_path=path_of(config),
            kubeconfig=path_of(kubeconfig),
            context=context,
            plugins=plugins,
            election=(election or ElectionFlags()).overrides(),
            qps=qps,
            burst=burst,
            pod_max_in_unschedulable_seconds=_seconds(
                "--pod-max-in-unschedulable-pods-duration", pod_max_in_unschedulable
            ),
            server=server_of(serving.server_options(), own_config),
            authentication_kubeconfig=path_of(serving.authentication_kubeconfig),
            authorization_kubeconfig=path_of(serving.authorization_kubeconfig),
            skip_lookup=serving.skip_lookup,
            tolerate_lookup_failure=serving.tolerate_lookup_failure,
            disabled_metrics=serving.metrics_to_leave_out(),
            profiling=serving.profiling,
            logging_format=logging_format,
            verbosity=verbosity,
            own=own_config,
            environment=dict(os.environ),
            flags=flags,
            extras=partial(_explaining, decisions=own_config.decisions),
        )
        if write_config_to is not None:
            settings = options.applied_to(load_settings(options.config_path, plugins))
            return _write_config(settings, write_config_to)
        with recorder_of(own_config, plugins) as recorder:
            return run_on_fast_loop(run_scheduler(replace(options, recorder=recorder)))
    except SettingsError as error:
        raise CommandError(*error.problems) from error
    except ServingError as error:
        what, _, hint = str(error).partition("\nhint: ")
        raise CommandError(what, hint=hint) from error
    except ClientError as error:
        raise CommandError(str(error).split("\nhint:")[0], hint=getattr(error, "hint", "")) from error


def _load_structlog() -> None:
    """Import structlog without rich, which it would load for renderers that our log does not use."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # how Python spells a module that cannot be imported
    try:
        import structlog  # noqa: F401 - for the modules that come after
    finally:
        del sys.modules["rich"]


def _seconds(flag: str, text: str) -> float:
    try:
        return duration_of(text)
    except ValueError as error:
        raise CommandError(f"{flag}: {error}") from error


def server_of(server: ServerOptions, own: BayplanConfig) -> ServerOptions:
    """The server of the flags, with the limits and the reviews of our own configuration."""
    from bayplan.server.options import Limits

    serving = own.serving
    limits = Limits(connections=serving.connections, connections_per_peer=serving.connections_per_address)
    if serving.review_pods:
        from bayplan.explain.http.pod_access import pods_in

        server = replace(server, authorization=replace(server.authorization, pods_in=pods_in))
    return replace(server, limits=limits)


def _explaining(clock: Clock, settings: Callable[[], Settings], *, decisions: DecisionSettings) -> Explaining:
    from bayplan.explain.wiring import Explaining

    return Explaining(clock, settings=settings, decisions=decisions)


@contextmanager
def recorder_of(own: BayplanConfig, plugins: Sequence[str]) -> Iterator[RecordingWriter | None]:
    """The recording that the configuration asks for, complete at the end of the block. Raises RecordingError."""
    if not own.recording.file:
        yield None
        return
    from bayplan.observe.clock import SystemClock
    from bayplan.sim.recording.file import RecordingFile
    from bayplan.sim.recording.writing import RecordingWriter

    specs = [str(Path(spec).absolute()) if Path(spec).exists() else spec for spec in plugins]
    file = RecordingFile(Path(own.recording.file), limit_bytes=own.recording.size_bytes)
    if file.cut_bytes:
        note(f"{file.path}: {file.cut_bytes:,} bytes at its torn end are cut off")
    try:
        yield RecordingWriter(file, SystemClock(), plugins=specs)
    finally:
        file.close()


def run_on_fast_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end, on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def _write_config(settings: Settings, target: str) -> int:
    import yaml

    from bayplan.config.effective import effective_dict

    text = yaml.safe_dump(effective_dict(settings.config, settings.profiles, redact=False), sort_keys=False)
    if target == "-":
        print(text, end="")
    else:
        from bayplan.sim.report.files import write_whole

        write_whole(named_path(target), text.encode())
    return 0
