"""The outcomes of the last recorded runs, in `results/`, and the tables of the documentation that are made from them.

A run of a part of the tests (`--group`, `--focus`, `--package`) replaces the outcomes of that part alone.
`python -m tests.upstream.record` writes the tables anew; a test checks that they are those of the recorded outcomes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

REPOSITORY = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results")
SPECS = RESULTS / "specs.json"
LEAVES = RESULTS / "leaves.json"
LEFT_OUT = Path(__file__).with_name("left_out.yaml")
PAGES = {"kubernetes-e2e": REPOSITORY / "docs/cluster.md", "upstream": REPOSITORY / "docs/internals/upstream.md"}

# Specs: by group and text, `verdict` (pass, fail, left out) and, where it did not pass, `why`; `real` is the verdict on
# the real control plane without kubelets.
# Leaves: by package, scheduler and leaf, the verdict.
Outcomes: TypeAlias = dict[str, dict[str, Any]]
# `packages` with a reason each, `leaves` by package and pattern, `causes` of leaves that fail.
LeftOut: TypeAlias = dict[str, dict[str, Any]]

_SUBJECTS = ("bayplan", "kube-scheduler")
# Verdicts on leaves that say nothing about a program, as the documentation has them.
_SILENT = {
    "needs Go plugins": "the test brings plugins written in Go, which run in its own process",
    "skip": "the test skips itself",
    "starts no scheduler": "the test starts no scheduler: it calls the Go code, or is about the API server alone",
}


def load(path: Path) -> Outcomes:
    """What was recorded last; nothing if there is no record yet."""
    return json.loads(path.read_text()) if path.exists() else {}


def keep(path: Path, outcomes: Outcomes) -> None:
    """Record the outcomes, and write the tables that show them."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(outcomes, indent=1) + "\n")
    write_tables()


def merge_specs(old: Outcomes, new: Outcomes, existing: Mapping[str, Collection[str]]) -> Outcomes:
    """The recorded outcomes with those of a run in their place, and without specs that exist no more."""
    merged: Outcomes = {}
    for group, specs in existing.items():
        before, after = old.get(group, {}), new.get(group, {})
        merged[group] = {
            spec: {name: value for name, value in before.get(spec, {}).items() if name == "real"} | outcome
            for spec, outcome in (before | after).items()
            if spec in specs
        }
    return merged


def merge_real(old: Outcomes, new: Outcomes, existing: Mapping[str, Collection[str]]) -> Outcomes:
    """The recorded outcomes with those of a run on the real control plane beside them."""
    return {
        group: {
            spec: outcome | ({"real": new[group][spec]["verdict"]} if spec in new.get(group, {}) else {})
            for spec, outcome in old.get(group, {}).items()
            if spec in specs
        }
        for group, specs in existing.items()
    }


def merge_leaves(old: Outcomes, new: Outcomes, packages: Iterable[str]) -> Outcomes:
    """The recorded verdicts with those of a run in their place, leaf by leaf."""
    merged: Outcomes = {}
    for package in packages:
        before, after = old.get(package, {}), new.get(package, {})
        subjects = {subject: before.get(subject, {}) | after.get(subject, {}) for subject in before | after}
        if subjects:
            merged[package] = subjects
    return merged


def specs_table(outcomes: Outcomes) -> str:
    """By group: how many specs there are, how many need more than a simulated cluster has, and what the others did,
    also on the real control plane without kubelets."""
    lines = ["| group | specs | need more | run | pass | fail | real |", "|---|---|---|---|---|---|---|"]
    total: Counter[str] = Counter()
    for group, specs in outcomes.items():
        verdicts = Counter(outcome["verdict"] for outcome in specs.values())
        ran = [outcome for outcome in specs.values() if outcome["verdict"] != "left out"]
        verdicts.update("real" for outcome in ran if outcome.get("real") == "pass")
        verdicts.update("not tried" for outcome in ran if "real" not in outcome)
        total += verdicts
        lines.append(_specs_row(group, verdicts))
    return "\n".join([*lines, _specs_row("all", total)])


def _specs_row(group: str, verdicts: Counter[str]) -> str:
    run = verdicts["pass"] + verdicts["fail"]
    real = "-" if verdicts["not tried"] else str(verdicts["real"])
    return (
        f"| {group} | {run + verdicts['left out']} | {verdicts['left out']} "
        f"| {run} | {verdicts['pass']} | {verdicts['fail']} | {real} |"
    )


def specs_reasons(outcomes: Outcomes) -> str:
    """Why specs are not run, with how many; then each spec that fails, with the cause."""
    every = [(spec, outcome) for specs in outcomes.values() for spec, outcome in specs.items()]
    reasons = Counter(outcome["why"] for _, outcome in every if outcome["verdict"] == "left out")
    lines = [f"- {count}: {why}" for why, count in reasons.most_common()]
    failing = [f"- `{_short(spec)}`: {outcome['why']}" for spec, outcome in every if outcome["verdict"] == "fail"]
    return "\n".join(
        ["What the specs that are not run need:", "", *lines]
        + (["", "What fails, and why:", "", *failing] if failing else [])
    )


def _short(spec: str) -> str:
    """The text of a spec without its tags."""
    return " ".join(re.sub(r"\[[^\]]*\]", "", spec).split())


def leaves_table(outcomes: Outcomes, known: LeftOut) -> str:
    """By package: its leaves, those that are left out, and how many of the others each scheduler passes."""
    lines = ["| package | leaves | left out | asked | Bayplan | kube-scheduler |", "|---|---|---|---|---|---|"]
    total: Counter[str] = Counter()
    for package, subjects in outcomes.items():
        reasons = _reasons(package, subjects, known)
        asked = {leaf for leaf, why in reasons.items() if not why}
        counts = Counter(leaves=len(reasons), left=len(reasons) - len(asked), asked=len(asked))
        for subject in subjects:
            counts[subject] = sum(subjects[subject].get(leaf) == "pass" for leaf in asked)
            counts[f"{subject} run"] = sum(subjects[subject].get(leaf) in ("pass", "fail") for leaf in asked)
        total += counts
        lines.append(_leaves_row(f"`{package}`", counts))
    return "\n".join([*lines, _leaves_row("all", total)])


def _leaves_row(name: str, counts: Counter[str]) -> str:
    """Where only some of the leaves were run, the row says how many."""
    passed = [
        f"{counts[subject]}" + (f" of {run} run" if (run := counts[f"{subject} run"]) < counts["asked"] else "")
        for subject in _SUBJECTS
    ]
    return f"| {name} | {counts['leaves']} | {counts['left']} | {counts['asked']} | {' | '.join(passed)} |"


def _reasons(package: str, subjects: Mapping[str, Mapping[str, str]], known: LeftOut) -> dict[str, str]:
    """Why each leaf of a package is left out; empty for those that are asked of a program."""
    found = {}
    for leaf in sorted(set().union(*subjects.values())):
        verdicts = {of[leaf] for of in subjects.values() if leaf in of}
        why = why_left_out(package, leaf, known)
        found[leaf] = why or ("" if verdicts & {"pass", "fail"} else _SILENT[min(verdicts)])
    return found


def left_out() -> LeftOut:
    """Leaves that say nothing about Bayplan, by package and a pattern of their names, each with its reason."""
    entries: LeftOut = yaml.safe_load(LEFT_OUT.read_text())
    return entries


def why_left_out(package: str, leaf: str, known: LeftOut) -> str:
    """The reason of the first pattern that matches the leaf, or none."""
    patterns = known["leaves"].get(package, {})
    return next((why for pattern, why in patterns.items() if re.search(pattern, leaf)), "")


def leaves_reasons(outcomes: Outcomes, known: LeftOut) -> str:
    """Why leaves and packages are left out, and the leaves that fail with either scheduler."""
    whys: Counter[str] = Counter()
    failing = []
    for package, subjects in outcomes.items():
        for leaf, why in _reasons(package, subjects, known).items():
            failed = [subject for subject in subjects if subjects[subject].get(leaf) == "fail"]
            if why:
                whys[why] += 1
            elif failed:
                failing.append(f"- `{package}` `{leaf}` ({' and '.join(failed)}){known['causes'].get(leaf, '')}")
    return "\n".join(
        ["Leaves that are left out, and why:", "", *(f"- {count}: {why}" for why, count in whys.most_common())]
        + ["", "Packages that are left out, and why:", ""]
        + [f"- `{package}`: {why}" for package, why in known["packages"].items()]
        + (["", "Leaves that fail:", "", *failing] if failing else ["", "No other leaf fails."])
    )


def tables() -> dict[str, str]:
    """The generated part of each page."""
    specs, leaves, known = load(SPECS), load(LEAVES), left_out()
    return {
        "kubernetes-e2e": f"{specs_table(specs)}\n\n{specs_reasons(specs)}",
        "upstream": f"{leaves_table(leaves, known)}\n\n{leaves_reasons(leaves, known)}",
    }


def page_with(name: str, text: str, table: str) -> str:
    """The page with the table between its two marks."""
    before, begin, rest = text.partition(f"<!-- {name}: written by `python -m tests.upstream.record` -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    if not (begin and end):
        raise ValueError(f"the page of {name} lacks its marks")
    return f"{before}{begin}\n{table}\n\n{end}{after}"


def write_tables() -> None:
    for name, table in tables().items():
        page = PAGES[name]
        page.write_text(page_with(name, page.read_text(), table))


if __name__ == "__main__":
    write_tables()
