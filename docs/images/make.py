"""The pictures of the documentation: what commands really print, recorded as SVG, and the dashboard as PNG.

    python docs/images/make.py [--dashboard]

Run it from the repository after a change to the tables, and with `--dashboard` after one to the pages (needs Chromium);
the pictures are committed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console

from bayplan.cli.evaluate import evaluate_files
from bayplan.cli.output import print_pieces
from bayplan.explain.terminal.explanations import draw_evaluated

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
WIDTH = 106
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def evaluate_picture(scenario: str) -> str:
    """`bayplan evaluate` on the example cluster, as it looks on a terminal."""
    console = Console(
        record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    console.print(f"[dim]$[/dim] bayplan evaluate -f examples/cluster.yaml --pod examples/{scenario}.yaml")
    for report in evaluate_files([str(EXAMPLES / "cluster.yaml")], [str(EXAMPLES / f"{scenario}.yaml")]):
        print_pieces(console, draw_evaluated(report, width=WIDTH))
    picture = console.export_svg(title="bayplan evaluate", unique_id=f"bayplan-{scenario}")
    # Readers' own monospaced font will do; a picture must not fetch anything.
    picture = _FONT_FACE.sub("", picture).replace("Fira Code", "ui-monospace, Menlo, Consolas")
    return re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE).rstrip() + "\n"


def main() -> None:
    for scenario in ("pod", "urgent"):
        (HERE / f"evaluate-{scenario}.svg").write_text(evaluate_picture(scenario))
    if "--dashboard" in sys.argv:
        # The test takes the pictures of a cluster whose pages it checks.
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "e2e", "tests/browser/test_pictures.py"]
        subprocess.run(command, check=True, env={**os.environ, "BAYPLAN_SCREENSHOTS": str(HERE)})


if __name__ == "__main__":
    main()
