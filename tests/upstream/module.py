"""Kubernetes' own tests as programs: its module is copied into a cache folder, patched, and compiled there.

Nothing of Kubernetes is part of this repository. The module comes from the Go module proxy at the version of the
control plane; a few edits and two files of ours let an external program take the scheduler's place in the integration
tests.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.controlplane.programs import ProgramMissing

GO = Path(__file__).with_name("go")
MODULE = "k8s.io/kubernetes"
# Raise this when the way of building changes but the files under go/ do not: it is part of the cache key.
_RECIPE = 1
_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-p", "2", "-ldflags", "-s -w")

_QUEUEING = "test/integration/scheduler/queueing"
# Files of ours, each added to a package of the copy as external.go.
_ADDED = {"external/external.go": "pkg/scheduler", "queueing/external.go": _QUEUEING}
# What is replaced in the copy: the file, the text, which must occur once, and what takes its place.
_EDITS = (
    ("pkg/scheduler/scheduler.go", "func (sched *Scheduler) Run(", "func (sched *Scheduler) runInProcess("),
    (
        "pkg/scheduler/scheduler.go",
        "\treturn sched, nil\n}",
        "\trememberOptions(sched, options)\n\treturn sched, nil\n}",
    ),
    (
        "pkg/scheduler/schedule_one.go",
        "func (sched *Scheduler) ScheduleOne(",
        "func (sched *Scheduler) scheduleOneInProcess(",
    ),
    (
        f"{_QUEUEING}/queue.go",
        "\tswitch tt.ExpectedInitialRejectingPhase {\n",
        "\tif testCtx.Scheduler.IsExternal() {\n\t\trunExternally(t, testCtx, tt)\n\t\treturn\n\t}\n"
        "\tswitch tt.ExpectedInitialRejectingPhase {\n",
    ),
    # Tests of claims run side by side and share one scheduler: each says that it uses it.
    (
        "test/integration/dra/dra.go",
        "\tscheduler.start(tCtx, config)\n",
        '\tfmt.Printf("EXTERNAL-SCHEDULER serves %s\\n", tCtx.Name())\n\tscheduler.start(tCtx, config)\n',
    ),
)
# A scheduler that runs beside the test, in all packages: the test waits until the program has read the cluster.
_RUNS = re.compile(r"\bgo (\w+\.Scheduler|sched)\.Run\(")
_TESTS = ("util", "scheduler", "volumescheduling", "dra")


class BuildFailed(Exception):
    """The Go tool could not build a program; the message says which."""


def cache_folder() -> Path:
    """The folder that holds the copy of the module and the programs built from it."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(repr((_RECIPE, _ADDED, _EDITS, _RUNS, _TESTS)).encode())
    for path in sorted(path for path in GO.rglob("*") if path.is_file()):
        digest.update(path.relative_to(GO).as_posix().encode() + b"\0" + path.read_bytes())
    return root / "bayplan" / "upstream" / digest.hexdigest()[:12]


def build(package: str, name: str) -> Path:
    """The test program of one package, compiled unless it is in the cache."""
    folder = _prepared()
    program = folder / "programs" / name
    if not program.exists():
        _say(f"building {name} (minutes, once)")
        program.parent.mkdir(exist_ok=True)
        scratch = program.with_suffix(".building")
        _go(folder, "test", "-c", "-vet=off", *_FLAGS, "-o", str(scratch), package)
        scratch.replace(program)
    return program


def source(package: str) -> Path:
    """The folder of a package in the copy: its tests read files beside them."""
    return _prepared() / "kubernetes" / package.removeprefix(MODULE).strip("/")


def paths() -> dict[str, str]:
    """The variables by which a program that was built with trimmed paths finds the data of its packages."""
    return {"TEST_SRCDIR": str(cache_folder().parent), "TEST_WORKSPACE": cache_folder().name}


def _prepared() -> Path:
    """The cache folder with the patched copy; it appears whole or not at all."""
    folder = cache_folder()
    if (folder / "go.mod").exists():
        return folder
    if shutil.which("go") is None:
        raise ProgramMissing("Go is needed to build Kubernetes' tests\nhint: install Go 1.26 or newer")
    _say(f"copying {MODULE} into {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    downloaded = _downloaded()
    shutil.copytree(downloaded, scratch / "kubernetes", copy_function=shutil.copyfile)
    # Under its name in trimmed paths, by which tests look for their data: see `paths`.
    (scratch / MODULE).parent.mkdir()
    (scratch / MODULE).with_name(downloaded.name).symlink_to("../kubernetes")
    for path in (scratch / "kubernetes").rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    _patch(scratch / "kubernetes")
    shutil.copytree(GO / "e2e", scratch / "e2e")
    shutil.copyfile(GO / "go.sum", scratch / "go.sum")
    text = (GO / "go.mod").read_text()
    (scratch / "go.mod").write_text(f"{text}\nreplace {MODULE} => ./kubernetes\n")
    scratch.rename(folder)
    return folder


def _downloaded() -> Path:
    _go(GO, "mod", "download", MODULE)
    answer = _go(GO, "list", "-m", "-f", "{{.Dir}}", MODULE)
    return Path(answer.strip())


def _patch(kubernetes: Path) -> None:
    """Let the external program take the scheduler's place: see go/external and go/queueing."""
    for name, folder in _ADDED.items():
        shutil.copyfile(GO / name, kubernetes / folder / "external.go")
    for place, old, new in _EDITS:
        path = kubernetes / place
        text = path.read_text()
        if text.count(old) != 1:
            raise BuildFailed(f"{place} of {MODULE} is not as expected: {old!r} occurs {text.count(old)} times")
        path.write_text(text.replace(old, new))
    for path in (path for name in _TESTS for path in (kubernetes / "test/integration" / name).rglob("*.go")):
        text = path.read_text()
        if _RUNS.search(text):
            path.write_text(_RUNS.sub(r"\1.Start(", text))


def _go(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"GOWORK": "off", "CGO_ENABLED": "0"}
    done = subprocess.run(
        ["nice", "-n", "10", "go", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildFailed(f"`go {' '.join(arguments[:2])}` failed in {folder}; the lines above are its own")
    return done.stdout


def _say(text: str) -> None:
    print(f"upstream: {text}", file=sys.stderr, flush=True)
