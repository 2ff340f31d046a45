"""`bayplan run`: the scheduler as a process, with kube-scheduler's flags where they mean the same."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bayplan.cli.options import Names, option
from bayplan.cli.output import CommandError

if TYPE_CHECKING:
    from bayplan.app.settings import Settings
    from bayplan.explain.process import Explaining
    from bayplan.observe.clock import Clock

__all__ = ["run"]

EXAMPLES = """\
{program} run --config scheduler.yaml
{program} run --config scheduler.yaml --plugin score_by_label.py --kubeconfig ~/.kube/staging
{program} run --config scheduler.yaml --write-config-to effective.yaml
"""

_LeaseName = Annotated[str | None, option("--leader-elect-resource-name", metavar="NAME", about="name of the Lease")]
_LeaseNamespace = Annotated[
    str | None, option("--leader-elect-resource-namespace", metavar="NAME", about="namespace of the Lease")
]
_Qps = Annotated[
    float | None, option("--kube-api-qps", metavar="NUMBER", about="requests a second; negative: no limit")
]
_LongestWait = Annotated[
    float,
    option(
        "--pod-max-in-unschedulable-pods-duration",
        metavar="SECONDS",
        about="after which a pod is tried again without an event (300)",
    ),
]


def run(
    *,
    config: Annotated[str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration")] = None,
    plugin: Annotated[Names, option("--plugin", metavar="PLUGIN", about="FILE.py or MODULE:CLASS to load")] = None,
    kubeconfig: Annotated[str | None, option("--kubeconfig", metavar="FILE", about="how to reach the cluster")] = None,
    context: Annotated[str | None, option("--context", metavar="NAME", about="context of the kubeconfig")] = None,
    leader_elect: Annotated[bool | None, option("--leader-elect", about="lead before scheduling")] = None,
    lease_name: _LeaseName = None,
    lease_namespace: _LeaseNamespace = None,
    qps: _Qps = None,
    burst: Annotated[int | None, option("--kube-api-burst", metavar="NUMBER", about="requests above that")] = None,
    pod_max_in_unschedulable: _LongestWait = 300.0,
    bind_address: Annotated[
        str, option("--bind-address", metavar="ADDRESS", about="of health and metrics (127.0.0.1)")
    ] = "127.0.0.1",
    secure_port: Annotated[int, option("--secure-port", metavar="PORT", about="their port (10259); 0: none")] = 10259,
    cert_file: Annotated[str | None, option("--tls-cert-file", metavar="FILE", about="their certificate")] = None,
    key_file: Annotated[str | None, option("--tls-private-key-file", metavar="FILE", about="its key")] = None,
    logging_format: Annotated[
        Literal["text", "json"], option("--logging-format", metavar="FORMAT", about="text or json")
    ] = "text",
    verbosity: Annotated[int, option("--v", "-v", metavar="NUMBER", about="0 says little, 10 everything (2)")] = 2,
    write_config_to: Annotated[
        str | None, option("--write-config-to", metavar="FILE", about="write the effective configuration and exit")
    ] = None,
    decision_file: Annotated[
        str | None, option("--decision-file", metavar="FILE", about="append every decision to this file, rotated")
    ] = None,
    with_controllers: Annotated[
        bool, option("--with-controllers", about="also write the status of PodGroups and ElasticQuotas")
    ] = False,
    seed: Annotated[int, option("--seed", metavar="NUMBER", about="of every random choice (0)")] = 0,
) -> int:
    """Run the scheduler against a cluster until told to stop.

    SIGTERM and Ctrl-C finish the bindings under way and hand the lease over. SIGHUP reads the configuration and the
    plugins again, and keeps the old ones if the new ones are bad. Without --kubeconfig: the one that the configuration
    names, KUBECONFIG, ~/.kube/config, or the service account of the pod.
    """
    from bayplan.app.run import RunOptions, run_scheduler
    from bayplan.app.settings import SettingsError, load_settings
    from bayplan.client.errors import ClientError

    plugins = plugin or []
    try:
        if write_config_to is not None:
            return _write_config(load_settings(_path(config), plugins), write_config_to)
        options = RunOptions(
            config_path=_path(config),
            kubeconfig=_path(kubeconfig),
            context=context,
            plugins=plugins,
            leader_elect=leader_elect,
            lease_name=lease_name,
            lease_namespace=lease_namespace,
            qps=qps,
            burst=burst,
            pod_max_in_unschedulable_seconds=pod_max_in_unschedulable,
            bind_address=bind_address,
            secure_port=secure_port,
            tls_cert_file=_path(cert_file),
            tls_private_key_file=_path(key_file),
            logging_format=logging_format,
            verbosity=verbosity,
            seed=seed,
            with_controllers=with_controllers,
            environment=dict(os.environ),
            extras=partial(_explaining, decision_file=_path(decision_file)),
        )
        return run_on_fast_loop(run_scheduler(options))
    except SettingsError as error:
        raise CommandError(*error.problems) from error
    except ClientError as error:
        raise CommandError(str(error).split("\nhint:")[0], hint=getattr(error, "hint", "")) from error


def _explaining(clock: Clock, settings: Callable[[], Settings], *, decision_file: Path | None) -> Explaining:
    from bayplan.explain.process import Explaining

    return Explaining(clock, settings=settings, decision_file=decision_file)


def _path(given: str | None) -> Path | None:
    return None if given is None else Path(given).expanduser()


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
        Path(target).write_text(text)
    return 0
