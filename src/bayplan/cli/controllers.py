"""`bayplan controllers`: keep the status of PodGroups and ElasticQuotas up to date."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from bayplan.cli.options import Names, option, path_of, verbosity_option
from bayplan.cli.output import CommandError

__all__ = ["controllers"]

EXAMPLES = """\
{program} controllers
{program} controllers --leader-elect --kubeconfig ~/.kube/staging
{program} controllers --kind PodGroup
"""


def controllers(
    *,
    kind: Annotated[Names, option("--kind", metavar="KIND", about="PodGroup or ElasticQuota (both)")] = None,
    kubeconfig: Annotated[str | None, option("--kubeconfig", metavar="FILE", about="kubeconfig of the cluster")] = None,
    context: Annotated[str | None, option("--context", metavar="NAME", about="context in the kubeconfig")] = None,
    leader_elect: Annotated[bool, option("--leader-elect", about="elect a leader among replicas")] = False,
    lease_name: Annotated[
        str, option("--leader-elect-resource-name", metavar="NAME", about="name of the Lease")
    ] = "sched-plugins-controllers",
    lease_namespace: Annotated[
        str, option("--leader-elect-resource-namespace", metavar="NAME", about="namespace of the Lease")
    ] = "kube-system",
    qps: Annotated[float, option("--kube-api-qps", metavar="NUMBER", about="requests a second (5)")] = 5.0,
    burst: Annotated[int, option("--kube-api-burst", metavar="NUMBER", about="requests in a burst (10)")] = 10,
    logging_format: Annotated[
        Literal["text", "json"], option("--logging-format", metavar="FORMAT", about="log format: text or json")
    ] = "text",
    verbosity: Annotated[int, verbosity_option("log verbosity, 0 to 10 (2)")] = 2,
) -> int:
    """Write the status of PodGroups and ElasticQuotas until they are stopped.

    Coscheduling and CapacityScheduling work without it; it shows how many pods of a group run and what a
    quota has in use. Definitions that are not installed yet are waited for.
    """
    from bayplan.app.controllers.process import ControllersProcessOptions, run_controllers
    from bayplan.cli.run import run_on_fast_loop
    from bayplan.client.errors import ClientError

    options = ControllersProcessOptions(
        kubeconfig=path_of(kubeconfig or None),
        context=context,
        leader_elect=leader_elect,
        kinds=_kinds(kind),
        lease_name=lease_name,
        lease_namespace=lease_namespace,
        qps=qps,
        burst=burst,
        logging_format=logging_format,
        verbosity=verbosity,
        environment=dict(os.environ),
    )
    try:
        return run_on_fast_loop(run_controllers(options))
    except ClientError as error:
        raise CommandError(str(error).split("\nhint:")[0], hint=getattr(error, "hint", "")) from error


def _kinds(names: Names) -> tuple[type[Any], ...]:
    from bayplan.app.controllers.status_controllers import WATCHES

    known = {kind.__name__: kind for kind in WATCHES}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise CommandError(f"--kind {unknown[0]}: no controller writes its status; there are {' and '.join(known)}")
    return tuple(kind for name, kind in known.items() if not names or name in names)
