"""`python -m bayplan.cli`: the same as the installed command."""

from bayplan.cli.main import run

run()
