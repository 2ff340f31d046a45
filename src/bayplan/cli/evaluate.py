"""`bayplan evaluate`: what the scheduler would do with a pod, without a cluster.

Two ways in: manifests (`-f`, `--pod`), shown as tables or written as JSON or YAML; and case files (`--cases`), one JSON
object a line in and out. The decision is the scheduler's own; this module only carries things to it and shows them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from bayplan.cli.field_validation import Validate
from bayplan.cli.options import Names, counting_option, option, path_of, plugin_option
from bayplan.cli.output import CommandError, WideFormat, note, print_pieces, print_value, progress, result_console

if TYPE_CHECKING:
    from bayplan.app.settings import Settings
    from bayplan.cli.manifests import Manifests
    from bayplan.explain.offline.evaluating import Evaluated

__all__ = ["evaluate", "evaluate_files"]

EXAMPLES = """\
{program} evaluate -f cluster.yaml --pod pod.yaml
kubectl get nodes,pods -A -o yaml | {program} evaluate -f - --pod default/web-0
{program} evaluate -f cluster.yaml --plugin score_by_label.py --config c.yaml
{program} evaluate --cases cases.jsonl.gz > results.jsonl
"""
NOT_SCHEDULABLE = 1


def evaluate(
    *,
    filename: Annotated[Names, option("--filename", "-f", metavar="FILE", about="cluster objects; - is stdin")] = None,
    pod: Annotated[Names, option("--pod", metavar="POD", about="a file, or NAMESPACE/NAME of a waiting pod")] = None,
    config: Annotated[str | None, option("--config", metavar="FILE", about="a KubeSchedulerConfiguration")] = None,
    plugin: Annotated[Names, plugin_option("load")] = None,
    cases: Annotated[str | None, option("--cases", metavar="FILE", about="cases, one a line; - is stdin")] = None,
    output: Annotated[
        WideFormat | None, option("--output", "-o", metavar="FORMAT", about="table by default; wide: more nodes")
    ] = None,
    top: Annotated[int, counting_option("--top", about="how many of the best nodes to show (5)")] = 5,
    validate: Validate = "strict",
    require_schedulable: Annotated[
        bool, option("--require-schedulable", about="exit with 1 if a pod finds no node")
    ] = False,
) -> int:
    """Say what the scheduler would do with a pod, and why, without a cluster.

    Several pods are placed one after the other, each counted on the node it got. Without --pod, all pods that wait in
    the files are placed, in the order of the queue. Exit status: 0 evaluated, 1 see --require-schedulable, 2 bad input.
    """
    from bayplan.cli.stderr_log import log_to_stderr

    log_to_stderr()
    if cases is not None:
        return _evaluate_cases(cases, filename or pod, config, plugin or (), output, require_schedulable)
    if not filename:
        raise CommandError(
            "no cluster to place pods on", hint="name its objects with -f FILE, or a case file with --cases"
        )
    shown = top if output in (None, "table") else None
    reports = evaluate_files(filename, pod or (), config=config, plugins=plugin or (), validate=validate, most=shown)
    _print(reports, output or "table", top)
    return NOT_SCHEDULABLE if require_schedulable and not all(report.is_scheduled for report in reports) else 0


def evaluate_files(
    files: Sequence[str],
    pods: Sequence[str],
    *,
    config: str | None = None,
    plugins: Sequence[str] = (),
    validate: str = "strict",
    most: int | None = None,
) -> list[Evaluated]:
    """What the command prints, before it is printed; with `most`, of so many of the best nodes."""
    from bayplan.cli.manifests import read_manifests

    settings = _settings(config, plugins)
    names = dict.fromkeys(name for profile in settings.profiles for name in profile.plugin_names)
    watched = [kind for name in names for kind in settings.registry.get(name).watches]
    return _decide(read_manifests(files, pods, watched=watched, validate=validate), settings, most)


def _decide(manifests: Manifests, settings: Settings, most: int | None) -> list[Evaluated]:
    from bayplan.app.offline import OfflineScheduler
    from bayplan.explain.offline.evaluating import EVERY_NODE, Evaluator

    with progress("deciding", total=len(manifests.pods)) as done:
        scheduler = OfflineScheduler(settings.profiles, settings.registry, manifests.objects)
        session = Evaluator(scheduler, most=EVERY_NODE if most is None else most)
        ordered = manifests.pods if manifests.are_named else session.in_queue_order(manifests.pods)
        reports = []
        for pod in ordered:
            reports.append(session.evaluate(pod))
            done.step()
    return reports


def _settings(config: str | None, plugins: Sequence[str]) -> Settings:
    """Plugins that are named without a configuration are meant to take part."""
    from bayplan.app.settings import load_settings

    settings = load_settings(path_of(config), plugins, enable=True)
    for problem in settings.config.warnings:
        note(f"{config}: {problem}")
    for caution in settings.cautions:
        note(str(caution))
    return settings


def _print(reports: Sequence[Evaluated], form: WideFormat, top: int) -> None:
    from bayplan.explain.offline.evaluating import machine_form

    if form == "table" or form == "wide":
        _print_tables(reports, top, is_wide=form == "wide")
        return
    values = [machine_form(report) for report in reports]
    print_value(values[0] if len(values) == 1 else values, form)


def _print_tables(reports: Sequence[Evaluated], top: int, *, is_wide: bool) -> None:
    from bayplan.explain.terminal.explanations import draw_evaluated, draw_summary

    console = result_console(is_wide=is_wide)
    for report in reports:
        print_pieces(console, draw_evaluated(report, top=sys.maxsize if is_wide else top, width=console.width))
        console.print()
    if len(reports) > 1:
        console.print(draw_summary(reports))


def _evaluate_cases(
    source: str,
    manifests: object,
    config: str | None,
    plugins: Sequence[str],
    output: WideFormat | None,
    require_schedulable: bool,
) -> int:
    from bayplan.cli.case_lines import evaluate_lines
    from bayplan.explain.offline.cases import CaseEvaluator

    if manifests:
        raise CommandError("--cases brings its own clusters and pods; leave out -f and --pod")
    if output not in (None, "json"):
        raise CommandError(f"--cases writes JSON lines; leave out `-o {output}`")
    settings = _settings(config, plugins)
    evaluator = CaseEvaluator(settings.registry, config=settings.config)
    return evaluate_lines(source, evaluator, require_schedulable=require_schedulable)
