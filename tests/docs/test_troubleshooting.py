"""Messages that the page about troubles quotes are those that the code writes."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.docs.markdown import ROOT

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
SOURCES = "\n".join(path.read_text() for end in ("py", "js") for path in sorted((ROOT / "src").rglob(f"*.{end}")))
QUOTED = [found for found in re.findall(r"^\| `([^`]+)`", PAGE, re.MULTILINE) if not found.startswith("bayplan ")]


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_written_somewhere(message: str) -> None:
    text = re.sub(r'"\s*\n\s*f?"', "", SOURCES)  # a string that is continued on the next line

    assert message in text or message.replace("(401)", "({status})") in text


def test_every_alert_is_listed_for_operators() -> None:
    listed = (ROOT / "docs/operations.md").read_text()
    alerts = yaml.safe_load((ROOT / "src/bayplan/deploy/templates/monitoring/alerts.yaml").read_text())
    rules = alerts["groups"][0]["rules"]

    assert all(rule["alert"] in listed for rule in rules)
