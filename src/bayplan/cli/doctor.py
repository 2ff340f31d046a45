"""`bayplan doctor`: compare a configuration and its plugins with a live cluster, and report what to fix."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from bayplan.cli.options import Names, option, path_of, plugin_option
from bayplan.cli.output import CommandError, Format, print_value, result_console

if TYPE_CHECKING:
    from bayplan.client.http_transport import HttpTransport
    from bayplan.deploy.doctor import Finding

__all__ = ["doctor"]

EXAMPLES = """\
{program} doctor --config scheduler.yaml
{program} doctor --config scheduler.yaml --service-account kube-system/scorebylabel
{program} doctor --config scheduler.yaml --plugin score_by_label.py --strict -o json
"""
UNHEALTHY = 1


def doctor(
    *,
    config: Annotated[str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration")] = None,
    plugin: Annotated[Names, plugin_option("load")] = None,
    name: Annotated[
        str | None, option("--name", metavar="NAME", about="name of the deployment, as in `bayplan render manifests`")
    ] = None,
    namespace: Annotated[
        str, option("--namespace", "-n", metavar="NAME", about="namespace of the scheduler (kube-system)")
    ] = "kube-system",
    service_account: Annotated[
        str | None, option("--service-account", metavar="NAMESPACE/NAME", about="service account to check")
    ] = None,
    kubeconfig: Annotated[str | None, option("--kubeconfig", metavar="FILE", about="kubeconfig of the cluster")] = None,
    context: Annotated[str | None, option("--context", metavar="NAME", about="context in the kubeconfig")] = None,
    strict: Annotated[bool, option("--strict", about="warnings count as errors")] = False,
    output: Annotated[Format | None, option("--output", "-o", metavar="FORMAT", about="output format (table)")] = None,
) -> int:
    """Check a live cluster for what keeps a scheduler from working.

    It checks the connection, the permissions of the scheduler and its plugins, definitions of custom resources, the
    leader's lease, and pods that name no running scheduler. Exit status: 0 healthy, 1 something is wrong.
    """
    findings = _findings(config, plugin, name, namespace, _user(service_account), kubeconfig, context)
    _print(findings, output or "table")
    bad = ("error", "warning") if strict else ("error",)
    return UNHEALTHY if any(finding.level.value in bad for finding in findings) else 0


def _user(service_account: str | None) -> str | None:
    if service_account is None:
        return None
    namespace, slash, name = service_account.partition("/")
    if not (namespace and slash and name):
        raise CommandError(f"--service-account {service_account}: write NAMESPACE/NAME")
    return f"system:serviceaccount:{namespace}:{name}"


def _findings(
    config: str | None,
    plugins: Names,
    name: str | None,
    namespace: str,
    user: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> list[Finding]:
    from bayplan.app.settings import SettingsError
    from bayplan.deploy.bundle import load_bundle
    from bayplan.deploy.doctor import Examination, Finding, Level, examine
    from bayplan.observe.clock import SystemClock

    try:
        bundle = load_bundle(path_of(config), plugins or (), name=name)
    except SettingsError as error:
        why, fix = "the scheduler does not start with it", f"edit {config or 'the plugin'} as the message says"
        return [Finding(Level.ERROR, "config", problem, why, fix) for problem in error.problems]
    given = Examination(bundle=bundle, namespace=namespace, user=user, now=SystemClock().now())

    async def work() -> list[Finding]:
        transport = _transport(kubeconfig, context)
        try:
            return await examine(transport, given)
        finally:
            await transport.close()

    return asyncio.run(work())


def _transport(kubeconfig: str | None, context: str | None) -> HttpTransport:
    import os
    import random

    from bayplan.client.errors import ClientError
    from bayplan.client.http_transport import HttpTransport
    from bayplan.client.kubeconfig import find_access
    from bayplan.observe.clock import SystemClock

    path = path_of(kubeconfig or None)
    try:
        access = find_access(clock=SystemClock(), environment=dict(os.environ), kubeconfig=path, context=context)
    except ClientError as error:
        raise CommandError(str(error).split("\nhint:")[0], hint=getattr(error, "hint", "")) from error
    return HttpTransport(access, draw=random.Random().random)


def _print(findings: list[Finding], form: Format) -> None:
    if form != "table":
        print_value([{**finding._asdict(), "level": finding.level.value} for finding in findings], form)
        return
    from rich.text import Text

    from bayplan.explain.claims.phrases import counted

    console = result_console()
    marks = {"error": ("✗", "red"), "warning": ("!", "yellow"), "ok": ("✓", "green")}
    for finding in findings:
        mark, style = marks[finding.level.value]
        for line in _lines(finding, console.width):
            shown = Text(line) if line.startswith(" ") else Text.assemble((mark, f"bold {style}"), line[1:])
            console.print(shown, soft_wrap=True)
    counts = {level: sum(finding.level.value == level for finding in findings) for level in ("error", "warning")}
    console.print(f"\n{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}")


def _lines(finding: Finding, width: int) -> Iterator[str]:
    """With a place for the mark; what does not fit on a line goes on below its beginning."""
    parts = [("* ", finding.what), ("    why: ", finding.why), ("    fix: ", finding.fix)]
    for beginning, text in parts:
        if text:
            yield from textwrap.wrap(
                text,
                width,
                initial_indent=beginning,
                subsequent_indent=" " * len(beginning),
                break_long_words=False,
                break_on_hyphens=False,
            )
